//! Where ranges begin. Boundaries are about equal work only: whatever they are, they cover all keys, and workers that
//! disagree about them are kept apart by row locks.

use crate::plan::Table;
use crate::sql::{KEY, NUMBER, Numbered, Sql};
use crate::{Key, KeyValue, PartitionBackend, PartitionError};
use diesel::connection::LoadConnection;
use diesel::result::QueryResult;

/// Ranges with more rows than this are all the same to the one who looks for the largest.
const ENOUGH: i64 = 2_000;

/// The first step through text keys; it doubles as the table turns out to be longer.
const STEP: usize = 16;

/// Finds where ranges begin, about `wanted` of them. Every look is served by the key's index.
pub(crate) fn find<DB, C>(conn: &mut C, table: &Table, wanted: usize) -> Result<Vec<KeyValue>, PartitionError>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    match table.kind {
        Key::Integer | Key::Uuid => split(conn, table, wanted),
        Key::Text => sample(conn, table, wanted),
    }
}

/// A block of 2^`bits` places, of which the first is a multiple of that.
#[derive(Clone, Copy)]
struct Block {
    first: u128,
    bits: u32,
    /// How many rows it has, or `ENOUGH`.
    rows: i64,
}

impl Block {
    fn last(&self) -> u128 {
        self.first | 1_u128.checked_shl(self.bits).map_or(u128::MAX, |size| size - 1)
    }
}

/// Halves the block with the most rows, again and again: places are aligned to powers of two, so that workers who look at
/// different times, while rows are added, mostly find the same ones. Gaps cost nothing, and dense keys are split finely.
fn split<DB, C>(conn: &mut C, table: &Table, wanted: usize) -> Result<Vec<KeyValue>, PartitionError>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    let (Some(min), Some(max)) = (end(conn, table, "ASC")?, end(conn, table, "DESC")?) else {
        return Ok(Vec::new());
    };
    let (min, max) = (min.place().unwrap_or(0), max.place().unwrap_or(0));
    let bits = u128::BITS - (min ^ max).leading_zeros();
    let mut whole = Block {
        first: min,
        bits,
        rows: 0,
    };
    whole.first = if bits == u128::BITS {
        0
    } else {
        min >> bits << bits
    };
    whole.rows = rows_in(conn, table, &whole)?;
    let mut blocks = vec![whole];
    while blocks.len() < wanted {
        let splittable = blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| block.rows > 1 && block.bits > 0);
        let Some((at, block)) = splittable.max_by_key(|(_, block)| (block.rows, block.bits)) else {
            break;
        };
        let half = |first| Block {
            first,
            bits: block.bits - 1,
            rows: 0,
        };
        let (mut left, mut right) = (half(block.first), half(block.first | 1 << (block.bits - 1)));
        left.rows = rows_in(conn, table, &left)?;
        right.rows = match block.rows {
            ENOUGH => rows_in(conn, table, &right)?,
            exact => exact - left.rows,
        };
        blocks.splice(at..=at, [left, right].into_iter().filter(|half| half.rows > 0));
        if blocks.is_empty() {
            break; // All rows were deleted meanwhile.
        }
    }
    Ok(blocks
        .iter()
        .skip(1)
        .filter_map(|block| table.kind.at(block.first))
        .collect())
}

/// The first or the last key.
fn end<DB, C>(conn: &mut C, table: &Table, direction: &str) -> Result<Option<KeyValue>, PartitionError>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    let mut sql = select_key::<DB>(table);
    sql.text(format!(" ORDER BY {} {direction} LIMIT 1", table.key));
    first_key(conn, table, sql)
}

fn rows_in<DB, C>(conn: &mut C, table: &Table, block: &Block) -> QueryResult<i64>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    let (Some(first), Some(last)) = (table.kind.at(block.first), table.kind.at(block.last())) else {
        return Ok(0);
    };
    let mut sql = Sql::new(format!(
        "SELECT '' AS {KEY}, CAST(count(*) AS {}) AS {NUMBER} FROM (SELECT 1 AS found FROM {} WHERE {} >= ",
        DB::BIGINT,
        table.name,
        table.key
    ));
    DB::push_key(&mut sql, &first, &table.key_type);
    sql.text(format!(" AND {} <= ", table.key));
    DB::push_key(&mut sql, &last, &table.key_type);
    // Without the order a planner may prefer to scan the table for so many rows.
    sql.text(format!(" ORDER BY {} LIMIT {ENOUGH}) AS some_rows", table.key));
    let counts = in_transaction(conn, sql)?;
    Ok(counts.first().map_or(0, |count| count.number))
}

/// Walks through the keys in steps. When there are twice as many samples as are wanted, every second one goes, and the step
/// doubles: one walk, whatever the table's size.
fn sample<DB, C>(conn: &mut C, table: &Table, wanted: usize) -> Result<Vec<KeyValue>, PartitionError>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    let mut samples: Vec<KeyValue> = Vec::new();
    let mut step = STEP;
    loop {
        let mut sql = select_key::<DB>(table);
        if let Some(last) = samples.last() {
            sql.text(format!(" WHERE {} > ", table.key));
            DB::push_key(&mut sql, last, &table.key_type);
        }
        sql.text(format!(" ORDER BY {} LIMIT 1 OFFSET {}", table.key, step - 1));
        match first_key(conn, table, sql)? {
            Some(key) => samples.push(key),
            None => break,
        }
        if samples.len() >= wanted * 2 {
            samples = samples.into_iter().skip(1).step_by(2).collect();
            step *= 2;
        }
    }
    if samples.len() >= wanted {
        let count = samples.len();
        samples = (1..wanted)
            .map(|at| samples[at * count / wanted].clone())
            .collect();
    }
    Ok(samples)
}

fn select_key<DB: PartitionBackend>(table: &Table) -> Sql {
    Sql::new(format!(
        "SELECT {} AS {KEY}, CAST(0 AS {}) AS {NUMBER} FROM {}",
        DB::key_as_text(table.kind, &table.key),
        DB::BIGINT,
        table.name
    ))
}

fn first_key<DB, C>(conn: &mut C, table: &Table, sql: Sql) -> Result<Option<KeyValue>, PartitionError>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    let found = in_transaction(conn, sql)?;
    found
        .into_iter()
        .next()
        .map(|row| table.parse(&row.key))
        .transpose()
}

/// A statement that is prepared and executed in two steps must have one session for both, also behind a proxy.
fn in_transaction<DB, C>(conn: &mut C, sql: Sql) -> QueryResult<Vec<Numbered>>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    DB::read(conn, |conn| DB::numbered(conn, sql))
}

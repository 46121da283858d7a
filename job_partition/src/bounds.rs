//! Where ranges begin. Boundaries are about equal work only: whatever they are, they cover all keys, and workers that
//! disagree about them are kept apart by row locks.

use crate::blocks::{self, Block, ENOUGH};
use crate::sql::{KEY, NUMBER, Numbered, Sql};
use crate::table::Table;
use crate::trail::Trail;
use crate::{KeyValue, PartitionBackend, PartitionError};
use diesel::connection::LoadConnection;
use diesel::result::QueryResult;

/// The first step through text keys; it doubles as the table turns out to be longer.
const STEP: usize = 16;

/// Finds where ranges begin, about `wanted` of them. Every look is served by the key's index.
pub(crate) fn find<DB, C>(conn: &mut C, table: &Table, wanted: usize) -> Result<Vec<KeyValue>, PartitionError>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    let Some((min, max)) = ends(conn, table)? else {
        return Ok(Vec::new());
    };
    match (min.place(), max.place()) {
        (Some(min), Some(max)) => split(conn, table, wanted, min, max),
        _ => sample(conn, table, wanted),
    }
}

/// The first and the last key; `None` where there is none. Values that are no such keys are found there, on a database that sorts
/// them by their class.
pub(crate) fn ends<DB, C>(conn: &mut C, table: &Table) -> Result<Option<(KeyValue, KeyValue)>, PartitionError>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    Ok(end(conn, table, "ASC")?.zip(end(conn, table, "DESC")?))
}

/// Halves blocks of keys: places are aligned to powers of two, so that workers who look at different times, while rows are
/// added, mostly find the same ones. Gaps cost nothing, and dense keys are split finely.
fn split<DB, C>(
    conn: &mut C,
    table: &Table,
    wanted: usize,
    min: u128,
    max: u128,
) -> Result<Vec<KeyValue>, PartitionError>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    let starts = blocks::starts(min, max, wanted, |blocks| count(conn, table, blocks))?;
    Ok(starts
        .into_iter()
        .filter_map(|start| table.kind.at(start))
        .collect())
}

/// How many rows each block has, or [`ENOUGH`], in one statement.
fn count<DB, C>(conn: &mut C, table: &Table, blocks: &[Block]) -> Result<Vec<i64>, PartitionError>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    let mut sql = Sql::new("");
    for (number, block) in blocks.iter().enumerate() {
        let (Some(first), Some(last)) = (table.kind.at(block.first), table.kind.at(block.last())) else {
            unreachable!("keys that are texts have no blocks");
        };
        sql.text(format!(
            "{}SELECT '{number}' AS {KEY}, CAST(count(*) AS {}) AS {NUMBER} FROM (SELECT 1 AS found FROM {} WHERE {} >= ",
            if number == 0 { "" } else { " UNION ALL " },
            DB::BIGINT,
            table.name,
            table.key
        ));
        DB::push_key(&mut sql, &first, &table.key_type);
        sql.text(format!(" AND {} <= ", table.key));
        DB::push_key(&mut sql, &last, &table.key_type);
        // Without the order a planner may prefer to scan the table for so many rows.
        sql.text(format!(
            " ORDER BY {} LIMIT {ENOUGH}) AS some_rows_{number}",
            table.key
        ));
    }
    let mut counts = vec![0; blocks.len()];
    for row in in_transaction(conn, sql)? {
        if let Some(count) = row
            .key
            .ok()
            .flatten()
            .and_then(|key| key.parse().ok())
            .and_then(|at: usize| counts.get_mut(at))
        {
            *count = row.number;
        }
    }
    Ok(counts)
}

/// The first or the last key.
fn end<DB, C>(conn: &mut C, table: &Table, direction: &str) -> Result<Option<KeyValue>, PartitionError>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    let mut sql = select_key::<DB>(table);
    // Some databases have NULL at an end.
    sql.text(format!(
        " WHERE {} IS NOT NULL ORDER BY {} {direction} LIMIT 1",
        table.key, table.key
    ));
    first_key(conn, table, sql)
}

/// Walks through the keys in steps. When there are twice as many samples as are wanted, every second one goes, and the step
/// doubles: one walk, whatever the table's size.
fn sample<DB, C>(conn: &mut C, table: &Table, wanted: usize) -> Result<Vec<KeyValue>, PartitionError>
where
    DB: PartitionBackend,
    C: LoadConnection<Backend = DB>,
{
    let mut samples: Vec<KeyValue> = Vec::new();
    let mut trail = Trail::default();
    let mut step = STEP;
    loop {
        let mut sql = select_key::<DB>(table);
        match samples.last() {
            Some(last) => {
                sql.text(format!(" WHERE {} > ", table.key));
                DB::push_key(&mut sql, last, &table.key_type);
            }
            None => {
                sql.text(format!(" WHERE {} IS NOT NULL", table.key));
            }
        }
        sql.text(format!(" ORDER BY {} LIMIT 1 OFFSET {}", table.key, step - 1));
        let Some(key) = first_key(conn, table, sql)? else {
            break;
        };
        samples.push(key.clone());
        if !trail.step(key) {
            return Err(table.circle());
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

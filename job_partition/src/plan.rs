//! The statements of a run, put together from what the caller said of the table. They are the same for all databases but for
//! the pieces that the seam gives.

use crate::backend::Lock;
use crate::namespace::hash48;
use crate::sql::{KEY, NUMBER, Sql};
use crate::table::{Slices, Span, Table};
use crate::{Key, KeyValue, PartitionBackend};
use std::marker::PhantomData;
use std::ops::Range;

/// Among how many partitions one statement tells texts apart.
pub(crate) const PLACES: usize = 500;

#[derive(Debug)]
pub(crate) struct Plan<DB> {
    pub(crate) table: Table,
    pub(crate) slices: Slices,
    namespace: u64,
    /// Whether the statements for batches keep their text and their columns.
    is_steady: bool,
    db: PhantomData<fn() -> DB>,
}

impl<DB: PartitionBackend> Plan<DB> {
    /// Everything that makes a partition's number mean the same rows is in the namespace, the boundaries too: workers that
    /// found different ones do not share locks, and then only row locks keep them apart.
    pub(crate) fn new(table: Table, slices: Slices, name: &str, is_steady: bool) -> Self {
        let shape = match &slices {
            Slices::Modulo(n) => format!("modulo {n}"),
            Slices::Range(starts) => format!("range {starts:?}"),
        };
        let namespace = hash48([name, &table.identity, &table.name, &table.bare_key, &shape]);
        Plan {
            table,
            slices,
            namespace,
            is_steady,
            db: PhantomData,
        }
    }

    pub(crate) fn lock(&self, part: usize) -> Lock {
        Lock {
            namespace: self.namespace,
            number: u16::try_from(part).unwrap_or(u16::MAX),
            table: self.table.name.clone(),
            key: self.table.bare_key.clone(),
        }
    }

    /// The pending rows of a span, locked, in the key's order.
    pub(crate) fn select(&self, part: usize, span: &Span, limit: usize) -> Sql {
        let Table {
            columns, key, kind, ..
        } = &self.table;
        let mut sql = Sql::new(format!(
            // The line's end ends a comment in the columns.
            "SELECT {columns}\n, {} AS {KEY}",
            DB::key_as_text(*kind, key)
        ));
        self.push_pending(&mut sql);
        self.and_span(&mut sql, span);
        self.and_slice(&mut sql, part, matches!(span, Span::After(None)));
        // With modulo the number of the partition stands in the text, and sizes that adapt make many texts.
        sql.comes_again =
            self.is_steady && matches!((&self.slices, span), (Slices::Range(_), Span::After(_)));
        sql.text(format!(" ORDER BY {key} LIMIT {limit}{}", DB::LOCK_ROWS));
        sql
    }

    /// Which of these rows are pending still; in a range, others between them may be found too.
    pub(crate) fn still_pending(&self, keys: &[KeyValue]) -> Sql {
        let mut sql = self.select_keys();
        self.push_pending(&mut sql);
        match (&self.slices, keys) {
            (Slices::Range(_), [first, .., last]) => {
                self.and_span(&mut sql, &Span::Between(first.clone(), last.clone()));
                sql.comes_again = true;
            }
            // A span would be full of other partitions' rows.
            _ => {
                sql.text(" AND ");
                self.push_is_one_of(&mut sql, keys);
            }
        }
        sql
    }

    /// Which of these rows are there, pending or not.
    pub(crate) fn there(&self, keys: &[KeyValue]) -> Sql {
        let mut sql = self.select_keys();
        sql.text(format!(" FROM {} WHERE ", self.table.name));
        self.push_is_one_of(&mut sql, keys);
        sql
    }

    /// The keys of rows, where nobody asks for numbers; without the rows to take.
    fn select_keys(&self) -> Sql {
        Sql::new(format!(
            "SELECT {} AS {KEY}, CAST(0 AS {}) AS {NUMBER}",
            DB::key_as_text(self.table.kind, &self.table.key),
            DB::BIGINT
        ))
    }

    fn push_is_one_of(&self, sql: &mut Sql, keys: &[KeyValue]) {
        sql.text(format!("{} IN (", self.table.key));
        for (number, value) in keys.iter().enumerate() {
            sql.text(if number == 0 { "" } else { ", " });
            DB::push_key(sql, value, &self.table.key_type);
        }
        sql.text(")");
    }

    /// Pending rows of the whole table, with the numbers of their partitions where [`part_of`](Self::part_of) needs them.
    pub(crate) fn look(&self, limit: usize) -> Sql {
        let all = 0..self.slices.count();
        match &self.slices {
            Slices::Range(_) if self.is_placed_by_the_look() => self.look_among(all, limit),
            Slices::Range(_) => self.look_for(Sql::new("0"), all, limit),
            Slices::Modulo(n) => self.look_for(Sql::new(self.remainder(*n)), all, limit),
        }
    }

    /// Pending rows of these partitions, which are ranges, with the numbers of their partitions.
    pub(crate) fn look_among(&self, parts: Range<usize>, limit: usize) -> Sql {
        let last = parts.end - 1;
        let mut number = Sql::new(if parts.len() == 1 { "" } else { "CASE" });
        if let Slices::Range(starts) = &self.slices {
            for (part, start) in starts.iter().enumerate().take(last).skip(parts.start) {
                number.text(format!(" WHEN {} < ", self.table.key));
                DB::push_key(&mut number, start, &self.table.key_type);
                number.text(format!(" THEN {part}"));
            }
        }
        number.text(if parts.len() == 1 {
            last.to_string()
        } else {
            format!(" ELSE {last} END")
        });
        self.look_for(number, parts, limit)
    }

    fn look_for(&self, number: Sql, parts: Range<usize>, limit: usize) -> Sql {
        let Table { key, kind, .. } = &self.table;
        let mut sql = Sql::new(format!("SELECT {} AS {KEY}, CAST(", DB::key_as_text(*kind, key)));
        sql.parts.extend(number.parts);
        sql.text(format!(" AS {}) AS {NUMBER}", DB::BIGINT));
        self.push_pending(&mut sql);
        if let Slices::Range(starts) = &self.slices {
            if let Some(first) = parts.start.checked_sub(1) {
                self.and(&mut sql, ">=", &starts[first]);
            }
            if let Some(end) = starts.get(parts.end - 1) {
                self.and(&mut sql, "<", end);
            }
        }
        sql.text(format!(" LIMIT {limit}"));
        sql
    }

    /// The partition of a row that a look over the whole table found; `None` where only the database can tell, by looks among
    /// some of them. A statement takes only so many binds, and only the database knows the order of texts.
    pub(crate) fn part_of(&self, key: &KeyValue, number: i64) -> Option<usize> {
        match &self.slices {
            Slices::Range(starts) if !self.is_placed_by_the_look() => {
                let place = key.place()?;
                Some(starts.partition_point(|start| start.place() <= Some(place)))
            }
            _ => usize::try_from(number).ok(),
        }
    }

    fn is_placed_by_the_look(&self) -> bool {
        self.table.kind == Key::Text && self.slices.count() <= PLACES
    }

    /// A pending row without a key, if there is one.
    pub(crate) fn null_key(&self) -> Sql {
        let mut sql = self.select_keys();
        self.push_pending(&mut sql);
        sql.text(format!(" AND {} IS NULL LIMIT 1", self.table.key));
        sql
    }

    /// How many rows are pending.
    pub(crate) fn count(&self) -> Sql {
        let mut sql = Sql::new(format!(
            "SELECT '' AS {KEY}, CAST(count(*) AS {}) AS {NUMBER}",
            DB::BIGINT
        ));
        self.push_pending(&mut sql);
        sql
    }

    fn push_pending(&self, sql: &mut Sql) {
        // The line's end ends a comment in the condition.
        sql.text(format!(
            " FROM {} WHERE ({}\n)",
            self.table.name, self.table.pending
        ));
    }

    fn and_span(&self, sql: &mut Sql, span: &Span) {
        match span {
            Span::After(None) => {}
            Span::After(Some(last)) => self.and(sql, ">", last),
            Span::Between(first, last) => {
                self.and(sql, ">=", first);
                self.and(sql, "<=", last);
            }
        }
    }

    fn and_slice(&self, sql: &mut Sql, part: usize, from_start: bool) {
        match &self.slices {
            Slices::Modulo(n) => {
                sql.text(format!(" AND {} = {part}", self.remainder(*n)));
            }
            Slices::Range(starts) => {
                // A key further on makes it needless, and an index is searched by one lower bound only.
                if let Some(start) = part.checked_sub(1).filter(|_| from_start) {
                    self.and(sql, ">=", &starts[start]);
                }
                if let Some(end) = starts.get(part) {
                    self.and(sql, "<", end);
                }
            }
        }
    }

    fn and(&self, sql: &mut Sql, operator: &str, value: &KeyValue) {
        sql.text(format!(" AND {} {operator} ", self.table.key));
        DB::push_key(sql, value, &self.table.key_type);
    }

    /// SQL's remainder has the sign of the key; this one is never negative.
    fn remainder(&self, n: u16) -> String {
        let number = DB::key_as_number(self.table.kind, &self.table.key);
        format!("((({number} % {n}) + {n}) % {n})")
    }
}

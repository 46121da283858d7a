//! The caller's table, and how its rows are shared out.

use crate::backend::Described;
use crate::sql::{KeyText, STRANGE};
use crate::{Key, KeyValue, Partition, PartitionBackend, PartitionError};

/// The caller's table, its names in quotes.
#[derive(Debug)]
pub(crate) struct Table {
    /// The names of the table and the key as the caller said them.
    pub(crate) said: (String, String),
    pub(crate) name: String,
    pub(crate) identity: String,
    /// The key's name alone, and with the table's.
    pub(crate) bare_key: String,
    pub(crate) key: String,
    pub(crate) kind: Key,
    pub(crate) key_type: String,
    /// What a column may hold to be such a key.
    pub(crate) accepted: &'static str,
    pub(crate) pending: String,
    pub(crate) columns: String,
}

impl Table {
    /// What the caller said and the database knows of the table, if the two go together.
    pub(crate) fn of<DB: PartitionBackend>(
        partition: &Partition,
        described: Described,
    ) -> Result<Self, PartitionError> {
        let parts: Vec<&str> = partition.table.split('.').collect();
        let (key, kind) = &partition.key;
        let key_type = described.key_type.ok_or_else(|| PartitionError::UnknownKey {
            table: partition.table.clone(),
            key: key.clone(),
        })?;
        let accepted = DB::accepted(*kind);
        if !DB::suits(*kind, &key_type) {
            return Err(PartitionError::WrongKey {
                key: key.clone(),
                expected: *kind,
                found: format!("of type {key_type}"),
                accepted,
            });
        }
        if described.locks_nothing {
            return Err(PartitionError::NoRowLocks(partition.table.clone()));
        }
        if !described.is_unique && !partition.is_unique {
            return Err(PartitionError::NotUnique {
                table: partition.table.clone(),
                key: key.clone(),
            });
        }
        let name = parts.into_iter().map(quoted::<DB>).collect::<Vec<_>>().join(".");
        let bare_key = quoted::<DB>(key);
        Ok(Table {
            said: (partition.table.clone(), key.clone()),
            key: format!("{name}.{bare_key}"),
            name,
            identity: described.identity,
            bare_key,
            kind: *kind,
            key_type,
            accepted,
            pending: partition.pending.clone(),
            columns: partition.columns.clone(),
        })
    }

    pub(crate) fn parse(&self, key: &KeyText) -> Result<KeyValue, PartitionError> {
        match key {
            Ok(Some(text)) => {
                if let Some(class) = text.strip_prefix(STRANGE) {
                    return Err(self.wrong(format!("with a value of class {class}")));
                }
                let parsed = self.kind.parse(text);
                parsed.ok_or_else(|| self.wrong(format!("with the value {text:?}")))
            }
            Ok(None) => Err(PartitionError::NullKey {
                table: self.said.0.clone(),
                key: self.said.1.clone(),
            }),
            Err(error) => Err(self.wrong(format!("with a value that cannot be read as text ({error})"))),
        }
    }

    fn wrong(&self, found: String) -> PartitionError {
        PartitionError::WrongKey {
            key: self.said.1.clone(),
            expected: self.kind,
            found,
            accepted: self.accepted,
        }
    }

    /// What is said of keys that lead back to where they were.
    pub(crate) fn circle(&self) -> PartitionError {
        PartitionError::Circle {
            table: self.said.0.clone(),
            key: self.said.1.clone(),
        }
    }
}

/// How the rows are shared out among partitions.
#[derive(Debug)]
pub(crate) enum Slices {
    /// By the remainder of the key.
    Modulo(u16),
    /// By ranges with open ends; where each but the first begins.
    Range(Vec<KeyValue>),
}

impl Slices {
    pub(crate) fn count(&self) -> usize {
        match self {
            Slices::Modulo(n) => (*n).into(),
            Slices::Range(starts) => starts.len() + 1,
        }
    }
}

/// Which rows of a partition.
#[derive(Clone, Debug)]
pub(crate) enum Span {
    /// Those behind a key; all, without one.
    After(Option<KeyValue>),
    /// From a key to another, both included.
    Between(KeyValue, KeyValue),
}

fn quoted<DB: PartitionBackend>(name: &str) -> String {
    let quote = DB::QUOTE;
    format!(
        "{quote}{}{quote}",
        name.replace(quote, &format!("{quote}{quote}"))
    )
}

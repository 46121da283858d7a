//! The caller's table, and how its rows are shared out.

use crate::sql::{KeyText, STRANGE};
use crate::{Key, KeyValue, PartitionError};

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

//! The caller's table, and how its rows are shared out.

use crate::sql::KeyText;
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
    pub(crate) pending: String,
    pub(crate) columns: String,
}

impl Table {
    pub(crate) fn parse(&self, key: &KeyText) -> Result<KeyValue, PartitionError> {
        let wrong = |found| PartitionError::WrongKey {
            expected: self.kind,
            found,
        };
        match key {
            Ok(Some(text)) => self.kind.parse(text).ok_or_else(|| wrong(format!("{text:?}"))),
            Ok(None) => Err(PartitionError::NullKey {
                table: self.said.0.clone(),
                key: self.said.1.clone(),
            }),
            Err(error) => Err(wrong(format!("that cannot be read as text ({error})"))),
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

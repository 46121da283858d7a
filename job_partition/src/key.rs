use std::fmt;

/// Bit 63 turned over makes the order of signed numbers that of unsigned ones.
const SIGN: u64 = 1 << 63;

/// What kind of key the table has. The column must be unique and not null, by an index that serves it. On SQLite each value's
/// class must be that of the kind: integer, blob or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Any integer that fits an `i64`; negative ones too.
    Integer,
    /// PostgreSQL's `uuid`; elsewhere 16 bytes (`BINARY(16)`, `BLOB`), which is what Diesel's own feature `uuid` makes of
    /// it. A UUID that is kept as text is a [`Key::Text`], and so is MariaDB's own type `UUID`.
    Uuid,
    /// Any text, in the order of the column's own collation. On MySQL and MariaDB an ENUM or SET is none: it is sorted by the
    /// places of its values.
    Text,
}

/// The key of a row, as reports show it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyValue {
    /// An integer.
    Integer(i64),
    /// A UUID, its first byte the highest.
    Uuid(u128),
    /// A text.
    Text(String),
}

impl Key {
    /// Understands what the database gives as the key's text: a UUID in hexadecimal digits, with or without hyphens.
    pub(crate) fn parse(self, text: &str) -> Option<KeyValue> {
        match self {
            Key::Integer => text.parse().ok().map(KeyValue::Integer),
            Key::Uuid => {
                let digits: String = text.chars().filter(|c| *c != '-').collect();
                let number = u128::from_str_radix(&digits, 16).ok()?;
                (digits.len() == 32).then_some(KeyValue::Uuid(number))
            }
            Key::Text => Some(KeyValue::Text(text.to_owned())),
        }
    }

    /// The key at a place; `None` for texts.
    pub(crate) fn at(self, place: u128) -> Option<KeyValue> {
        match self {
            Key::Integer => {
                let place = u64::try_from(place).unwrap_or(u64::MAX);
                Some(KeyValue::Integer((place ^ SIGN).cast_signed()))
            }
            Key::Uuid => Some(KeyValue::Uuid(place)),
            Key::Text => None,
        }
    }
}

impl KeyValue {
    /// A number that has the key's place in the order of all keys; `None` for texts, whose order only the database knows.
    pub(crate) fn place(&self) -> Option<u128> {
        match self {
            KeyValue::Integer(number) => Some((number.cast_unsigned() ^ SIGN).into()),
            KeyValue::Uuid(number) => Some(*number),
            KeyValue::Text(_) => None,
        }
    }
}

impl fmt::Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyValue::Integer(number) => number.fmt(f),
            KeyValue::Uuid(number) => {
                let digits = format!("{number:032x}");
                let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
                f.write_str(&parts.join("-"))
            }
            KeyValue::Text(text) => write!(f, "{text:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, KeyValue};

    #[test]
    fn places_keep_the_order_of_integers_and_lead_back_to_them() {
        let numbers = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        let places = numbers.map(|number| KeyValue::Integer(number).place().unwrap());
        assert!(places.is_sorted());
        for (number, place) in numbers.into_iter().zip(places) {
            assert_eq!(Key::Integer.at(place), Some(KeyValue::Integer(number)));
        }
    }

    #[test]
    fn a_uuid_is_read_with_and_without_hyphens_and_shown_with_them() {
        let shown = "00112233-4455-6677-8899-aabbccddeeff";
        let key = Key::Uuid.parse(shown).unwrap();
        assert_eq!(key, Key::Uuid.parse("00112233445566778899AABBCCDDEEFF").unwrap());
        assert_eq!(key.to_string(), shown);
        assert_eq!(Key::Uuid.parse("0011"), None);
    }
}

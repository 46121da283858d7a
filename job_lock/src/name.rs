use crate::LockError;

pub(crate) const MAX_BYTES: usize = 255;

/// How much of a name that is too long an error shows.
const SHOWN_CHARS: usize = 60;

/// Refuses a name that not every database can hold, before a database cuts it or calls it something else.
pub(crate) fn check(name: &str) -> Result<(), LockError> {
    if (1..=MAX_BYTES).contains(&name.len()) && !name.contains('\0') {
        return Ok(());
    }
    Err(LockError::InvalidName {
        name: name.chars().take(SHOWN_CHARS).collect(),
    })
}

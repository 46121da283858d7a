/// A text of 32 hexadecimal digits that nobody can guess.
///
/// # Panics
/// Where the operating system has no randomness to give.
pub(crate) fn token() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("randomness from the operating system");
    format!("{:032x}", u128::from_ne_bytes(bytes))
}

/// Whether a text may have been made by [`token`].
pub(crate) fn is_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

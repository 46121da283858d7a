//! What may be enqueued, and how texts are made fit for the database.

use crate::EnqueueError;
use chrono::{DateTime, Datelike, Utc};
use std::time::Duration;

/// The longest kind, queue or unique key, in bytes.
pub const MAX_NAME_BYTES: usize = 255;

/// The greatest `max_attempts`.
pub const MAX_ATTEMPTS: i32 = 1_000;

/// The greatest distance of a priority from 0.
pub const MAX_PRIORITY: i32 = 1_000_000;

/// The longest arguments, in bytes of JSON, if [`NewJob::max_args_bytes`](crate::NewJob::max_args_bytes) does not say otherwise.
pub const MAX_ARGS_BYTES: usize = 1 << 20;

/// The longest result, in bytes of JSON.
pub const MAX_RESULT_BYTES: usize = 1 << 20;

/// The deepest nesting of arguments and results: what is deeper cannot be decoded again.
pub const MAX_JSON_DEPTH: usize = 127;

/// The longest error text that is kept, in bytes.
pub const MAX_ERROR_BYTES: usize = 16 << 10;

/// How many attempts of one job may go uncharged (snoozed, or handed back unstarted); the next snooze is charged.
pub const MAX_UNCHARGED: i32 = 10_000;

pub(crate) const LONGEST_RUN_IN: Duration = Duration::from_secs(1000 * 365 * 86_400);

/// Checks a name: 1 to 255 bytes without control characters.
///
/// # Errors
/// [`EnqueueError::BadName`].
pub fn check_name(what: &'static str, name: &str) -> Result<(), EnqueueError> {
    let problem = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_NAME_BYTES {
        "is too long"
    } else if name.chars().any(char::is_control) {
        "has control characters"
    } else {
        return Ok(());
    };
    Err(EnqueueError::BadName {
        what,
        shown: name.chars().take(40).flat_map(char::escape_debug).collect(),
        problem,
        max: MAX_NAME_BYTES,
    })
}

pub(crate) fn check_run_at(run_at: DateTime<Utc>) -> Result<(), EnqueueError> {
    match run_at.year() {
        1000..=9999 => Ok(()),
        _ => Err(EnqueueError::BadRunAt(run_at)),
    }
}

pub(crate) fn check_run_in(run_in: Duration) -> Result<(), EnqueueError> {
    if run_in > LONGEST_RUN_IN {
        return Err(EnqueueError::BadRunIn(run_in));
    }
    Ok(())
}

/// The nearest time that every database can hold: an outcome is recorded whatever a job asks for.
pub(crate) fn clamp_run_at(run_at: DateTime<Utc>) -> DateTime<Utc> {
    let year = |year| {
        chrono::NaiveDate::from_ymd_opt(year, 1, 1)
            .unwrap_or_default()
            .and_time(chrono::NaiveTime::MIN)
            .and_utc()
    };
    run_at.clamp(year(1970), year(9999))
}

/// Whether a JSON text has the escape of the character NUL in one of its strings.
pub(crate) fn json_has_nul(json: &str) -> bool {
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at + 1..];
        if escape.starts_with("u0000") {
            return true;
        }
        // Skips the escaped character, so that a second backslash does not begin an escape of its own.
        rest = escape.get(1..).unwrap_or("");
    }
    false
}

/// Whether a JSON text has a number far beyond what `f64` holds. It could not be decoded again, and PostgreSQL, which keeps it,
/// gives it back with all its zeros: a few thousand of them are more than its memory.
pub(crate) fn json_has_huge_number(json: &str) -> bool {
    const MOST: u32 = 400;
    let (mut in_string, mut escaped, mut after_digit) = (false, false, false);
    let bytes = json.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'e' | b'E' if !in_string && after_digit => {
                let exponent = bytes[at + 1..]
                    .iter()
                    .skip_while(|byte| matches!(byte, b'+' | b'-' | b'0'));
                let exponent = exponent.take_while(|byte| byte.is_ascii_digit());
                let value = exponent.fold(0_u32, |value, digit| {
                    value.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
                });
                if value > MOST {
                    return true;
                }
            }
            _ => {}
        }
        after_digit = byte.is_ascii_digit();
    }
    false
}

/// Whether a JSON text is nested more deeply than may be.
pub(crate) fn json_is_too_deep(json: &str) -> bool {
    if json.len() <= 2 * MAX_JSON_DEPTH {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > MAX_JSON_DEPTH {
                    return true;
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Makes any error text one that every database takes: not empty, not endless, without NUL.
pub(crate) fn clean_error(text: &str) -> String {
    let text = if text.trim().is_empty() {
        "(an error without a message)"
    } else {
        text
    };
    let mut end = text.len().min(MAX_ERROR_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut clean = text[..end].replace('\0', "\u{fffd}");
    if end < text.len() {
        clean.push_str(&format!(" … ({} bytes more)", text.len() - end));
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nul_is_found_in_json_and_only_there() {
        assert!(json_has_nul(r#"{"a":"x\u0000y"}"#));
        assert!(json_has_nul(r#""\\\u0000""#));
        assert!(!json_has_nul(r#""\\u0000""#));
        assert!(!json_has_nul(r#""plain \n \u0001""#));
        assert!(!json_has_nul(r#""é\\""#));
    }

    #[test]
    fn what_is_too_deep_is_what_serde_json_does_not_decode() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for depth in [1, 126, 127, 128, 129, 1000] {
            let decodes = serde_json::from_str::<serde_json::Value>(&nested(depth)).is_ok();
            assert_eq!(json_is_too_deep(&nested(depth)), !decodes, "{depth}");
        }
        let flat = format!(
            "[{}\"\\\\\\\"{}\"]",
            "[],{},".repeat(200).replace("{}", "{\"[\":1}"),
            "[".repeat(500)
        );
        assert!(serde_json::from_str::<serde_json::Value>(&flat).is_ok());
        assert!(!json_is_too_deep(&flat));
    }

    #[test]
    fn a_number_beyond_all_is_found_and_only_in_numbers() {
        for huge in [
            "1e401",
            "[1, 2E+131071]",
            "-1.5e-16000",
            "1e0000000000401",
            "1e99999999999999999999",
        ] {
            assert!(json_has_huge_number(huge), "{huge}");
        }
        for fine in [
            "1e308",
            "[true, false, 1e+22]",
            r#""1e999""#,
            r#"{"a\"1e999": 1e00012}"#,
            "4e",
            "1e400",
        ] {
            assert!(!json_has_huge_number(fine), "{fine}");
        }
    }

    #[test]
    fn an_error_text_is_cut_at_a_character_and_never_empty() {
        assert_eq!(clean_error("a\0b"), "a\u{fffd}b");
        assert_eq!(clean_error(" \n"), "(an error without a message)");
        let long = clean_error(&"🦀".repeat(10_000_000 / 4));
        assert!(long.len() < MAX_ERROR_BYTES + 64 && long.ends_with("bytes more)"));
    }
}

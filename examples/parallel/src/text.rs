//! Names of files may hold anything, and none of it may break a line or reach the terminal as a command.

use std::fmt::Write as _;
use std::io::{Write as _, stderr};
use std::path::Path;

/// The file's line in the output.
pub(crate) fn line(hash: &str, path: &Path) -> String {
    let name = path.display().to_string();
    let escaped = escaped(&name, true);
    let mark = if escaped == name { "" } else { "\\" };
    format!("{mark}{hash}  {escaped}")
}

/// Writes a line to standard error, if anybody reads it.
pub(crate) fn say(text: &str) {
    let _ = writeln!(stderr(), "{}", escaped(text, false));
}

fn escaped(text: &str, with_backslashes: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || (with_backslashes && c == '\\') {
            let _ = write!(escaped, "{}", c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

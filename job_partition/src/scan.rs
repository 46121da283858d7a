//! What the caller's SQL must not have in it, since it is pasted between pieces with binds of their own.

/// How a database reads SQL, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct Lexis {
    /// Whether a character is the beginning of a placeholder, by the one behind it.
    pub(crate) is_placeholder: fn(char, Option<char>) -> bool,
    /// What may stand around a text or a name, and is doubled within.
    pub(crate) quotes: &'static [char],
    /// Whether `\` in a text takes the meaning from what follows.
    pub(crate) has_backslashes: bool,
    /// Whether `#` begins a comment, and `--` does with a space behind it only.
    pub(crate) has_hashes: bool,
    /// Whether `$$` and `$tag$` stand around texts, `E'…'` has backslashes, and a comment may stand in a comment.
    pub(crate) is_nested: bool,
    /// Whether `[` and `]` stand around a name.
    pub(crate) has_brackets: bool,
}

/// Why a piece of SQL cannot be pasted; `None` where it can, as far as can be seen.
pub(crate) fn flaw(lexis: &Lexis, sql: &str) -> Option<String> {
    let text: Vec<char> = sql.chars().collect();
    let (mut at, mut open) = (0, 0_u32);
    while let Some(&char) = text.get(at) {
        let before = &text[..at];
        let next = text.get(at + 1).copied();
        let rest = &text[at..];
        let length = if let Some(length) = skipped(lexis, before, rest) {
            match length {
                Some(length) => length,
                None => return Some(format!("{:?} is not closed", char)),
            }
        } else {
            let in_name = char == '$' && ends_in_name(before);
            if !in_name && (lexis.is_placeholder)(char, next) {
                let end = rest[1..].iter().take_while(|char| is_of_name(**char)).count();
                let found: String = rest[..=end].iter().collect();
                return Some(format!(
                    "the placeholder {found} has no value: write the value itself, in quotes if it is a text"
                ));
            }
            match char {
                '(' => open += 1,
                ')' if open == 0 => return Some("a ) has no (".into()),
                ')' => open -= 1,
                _ => {}
            }
            1
        };
        at += length;
    }
    (open > 0).then(|| "a ( has no )".into())
}

fn ends_in_name(text: &[char]) -> bool {
    text.last().copied().is_some_and(is_of_name)
}

fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// The length of a quoted text, a name in quotes or a comment, if one begins here; `Some(None)` where it has no end.
fn skipped(lexis: &Lexis, before: &[char], rest: &[char]) -> Option<Option<usize>> {
    let starts = |text: &str| {
        text.chars()
            .enumerate()
            .all(|(at, char)| rest.get(at) == Some(&char))
    };
    let quote = *rest.first()?;
    if lexis.quotes.contains(&quote) {
        // E'…', but not the end of LIKE'…'.
        let is_escaping = quote == '\''
            && lexis.is_nested
            && matches!(before, [name @ .., 'e' | 'E'] if !ends_in_name(name));
        let has_backslashes = is_escaping || (lexis.has_backslashes && quote != '`');
        return Some(quoted(rest, quote, has_backslashes));
    }
    if lexis.has_brackets && quote == '[' {
        return Some(rest.iter().position(|char| *char == ']').map(|at| at + 1));
    }
    let is_spaced = rest.get(2).is_none_or(|char| char.is_whitespace());
    if (starts("--") && (is_spaced || !lexis.has_hashes)) || (lexis.has_hashes && quote == '#') {
        return Some(Some(rest.iter().take_while(|char| **char != '\n').count()));
    }
    if starts("/*") {
        return Some(comment(rest, lexis.is_nested));
    }
    if lexis.is_nested && quote == '$' && !ends_in_name(before) {
        let tag = rest[1..].iter().take_while(|char| is_of_name(**char)).count() + 2;
        if rest.get(tag - 1) == Some(&'$') && !rest[1].is_ascii_digit() {
            let ends = rest
                .windows(tag)
                .skip(tag)
                .position(|window| *window == rest[..tag]);
            return Some(ends.map(|at| at + 2 * tag));
        }
    }
    None
}

/// A quote that is doubled ends a text and begins another at once.
fn quoted(rest: &[char], quote: char, has_backslashes: bool) -> Option<usize> {
    let mut at = 1;
    while let Some(&char) = rest.get(at) {
        match char {
            '\\' if has_backslashes => at += 2,
            _ if char == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

fn comment(rest: &[char], is_nested: bool) -> Option<usize> {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        match (rest.get(at)?, rest.get(at + 1)?) {
            ('*', '/') => depth -= 1,
            ('/', '*') if is_nested => depth += 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
    }
    Some(at)
}

#[cfg(all(test, any(feature = "postgres", feature = "mysql", feature = "sqlite")))]
mod tests {
    use super::flaw;
    use crate::PartitionBackend;

    #[track_caller]
    fn check<DB: PartitionBackend>(good: &[&str], bad: &[&str]) {
        for sql in good {
            assert_eq!(flaw(&DB::LEXIS, sql), None, "{sql}");
        }
        for sql in bad {
            assert!(flaw(&DB::LEXIS, sql).is_some(), "{sql}");
        }
        let everywhere = [
            "done = 0",
            "done = 0 -- why not ? $1 (",
            "done = 0 /* ? $1 ) */",
            "note <> 'it''s ? $1 ('",
            "(a = 1 AND (b = 2))",
        ];
        for sql in everywhere {
            assert_eq!(flaw(&DB::LEXIS, sql), None, "{sql}");
        }
        for sql in ["a = 1) OR (b = 2", "(a = 1", "a = 'x", "a = 1 /* x"] {
            assert!(flaw(&DB::LEXIS, sql).is_some(), "{sql}");
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn placeholders_of_postgres() {
        check::<diesel::pg::Pg>(
            &[
                "tags ? 'x' AND tags ?| ARRAY['a'] AND '{}' @? '$.a'",
                "note = $$ $1 ? ' $$ OR note = $x$ $$ $1 $x$",
                "note = E'it\\'s $1' OR \"a$1\" = 1 OR a$1 = 1",
                "a::text = 'x' /* a /* b */ $1 */",
                "note = '\\' AND a = 'b'",
                "note LIKE'a\\' AND a = 'b'",
            ],
            &["id < $1", "id=$12", "note = 'a' AND a = $2", "note = $x$ $1"],
        );
        assert!(
            flaw(&<diesel::pg::Pg as PartitionBackend>::LEXIS, "id < $12")
                .unwrap()
                .contains("$12")
        );
    }

    #[cfg(feature = "mysql")]
    #[test]
    fn placeholders_of_mysql() {
        check::<diesel::mysql::Mysql>(
            &[
                "note = \"?\" AND `a?` = 1",
                "note = 'it\\'s ?' # and ?",
                "a = @var AND b = 1 AND c = '$1'",
                "a = (5--3) AND b = 1",
            ],
            &[
                "id < ?",
                "id < a?",
                "a = 5--3 AND b = ?",
                "note = '\\\\' AND a = ?",
            ],
        );
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn placeholders_of_sqlite() {
        check::<diesel::sqlite::Sqlite>(
            &[
                "note = \"?\" AND `a?` = 1 AND [b?] = 2",
                "note = '\\' AND a -> '$.x' = 'y'",
            ],
            &[
                "id < ?",
                "id < ?1",
                "id < $1",
                "id < :low",
                "id < @low",
                "note = '\\' AND a = ?",
            ],
        );
    }
}

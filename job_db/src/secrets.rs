/// A message without connection strings: client libraries repeat one that they do not understand, with the password in it.
pub fn without_secrets(message: &str) -> String {
    // What libpq says where it took a part of the password for something else.
    let misread = [
        "invalid integer value",
        "could not translate host name",
        "invalid connection option",
        "invalid URI",
        "invalid percent-encoded",
        "forbidden value",
        "missing \"=\"",
        "could not parse",
    ];
    if misread.iter().any(|text| message.contains(text)) {
        return "the connection string is not understood, or names a host that is not known; in a URL write / ? # @ and % \
                of user and password as %2F %3F %23 %40 and %25"
            .to_owned();
    }
    let is_secret = |word: &str| {
        let lower = word.to_ascii_lowercase();
        lower.contains("://")
            || lower.contains("password=")
            || word.find(':').is_some_and(|colon| word[colon..].contains('@'))
    };
    let mut end = 0;
    for word in message.split_inclusive(char::is_whitespace) {
        if is_secret(word) {
            return format!("{}(the connection string)", &message[..end]);
        }
        end += word.len();
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn a_connection_string_is_not_repeated() {
        for secret in [
            "missing \"=\" after \"postgresql:/u:secret@h/db\" in connection info string",
            "invalid URI: postgres://u:my secret@h",
            "bad option in host=h password=secret",
            "invalid integer value \"secret\" for connection option \"port\"",
            "could not translate host name \"secret@127.0.0.1\" to address: Name or service not known",
        ] {
            let shown = without_secrets(secret);
            assert!(
                !shown.contains("secret") && shown.contains("the connection string"),
                "{shown}"
            );
        }
        for harmless in [
            "FATAL:  password authentication failed for user \"app\"",
            "connection to server at \"127.0.0.1\", port 5432 failed: Connection refused",
            "Access denied for user 'root'@'localhost' (using password: YES)",
        ] {
            assert_eq!(without_secrets(harmless), harmless);
        }
    }
}

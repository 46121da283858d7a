use crate::MigrateError;

/// Refuses a server that is too old.
pub(super) fn check_version(text: &str) -> Result<(), MigrateError> {
    let (name, version) = product(text);
    // SKIP LOCKED and JSON_TABLE came with these.
    let oldest = if name == "MariaDB" { [10, 6, 0] } else { [8, 0, 4] };
    if version < oldest {
        return Err(MigrateError::ServerTooOld {
            server: format!("{name} {text}"),
            needed: "MySQL 8.0.4 or later, or MariaDB 10.6 or later",
        });
    }
    Ok(())
}

/// Finds the product and its version in what VERSION() says, such as `10.11.19-MariaDB-0+deb12u1` or `8.0.36`.
pub(super) fn product(version: &str) -> (&'static str, [u32; 3]) {
    let name = if version.contains("MariaDB") {
        "MariaDB"
    } else {
        "MySQL"
    };
    // Old replication clients were told 5.5.5- in front of MariaDB's own version.
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|digits| digits.parse().unwrap_or(0));
    (name, std::array::from_fn(|_| numbers.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::{check_version, product};

    #[test]
    fn product_and_version_are_found_in_what_servers_say() {
        assert_eq!(product("10.11.19-MariaDB-0+deb12u1"), ("MariaDB", [10, 11, 19]));
        assert_eq!(product("5.5.5-10.5.8-MariaDB"), ("MariaDB", [10, 5, 8]));
        assert_eq!(product("8.0.36"), ("MySQL", [8, 0, 36]));
        assert_eq!(product("8.4.0-commercial"), ("MySQL", [8, 4, 0]));
    }

    #[test]
    fn servers_that_are_too_old_are_refused_by_name_and_version() {
        for new_enough in [
            "10.6.0-MariaDB",
            "5.5.5-10.6.12-MariaDB",
            "11.4.2-MariaDB-log",
            "8.0.4",
            "9.1.0",
        ] {
            assert!(check_version(new_enough).is_ok(), "{new_enough}");
        }
        for (too_old, named) in [
            (
                "5.5.5-10.5.29-MariaDB",
                "MariaDB 5.5.5-10.5.29-MariaDB is too old",
            ),
            ("8.0.3-rc", "MySQL 8.0.3-rc is too old"),
            ("5.7.44", "MySQL 5.7.44 is too old"),
        ] {
            let error = check_version(too_old).unwrap_err().to_string();
            assert!(error.starts_with(named), "{error}");
        }
    }
}

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            // Prose and doctests may say what the code must not do.
            let text = fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            found.push((path, code.collect::<Vec<_>>().join("\n")));
        }
    }
    found
}

fn all() -> Vec<(PathBuf, String)> {
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn invariant_11_job_core_starts_no_thread_and_never_sleeps() {
    for (path, code) in all() {
        for forbidden in [
            "thread::",
            "sleep",
            "park_timeout",
            "spawn",
            "Condvar",
            "recv_timeout",
        ] {
            assert!(!code.contains(forbidden), "{}: {forbidden}", path.display());
        }
    }
}

#[test]
fn only_the_files_of_the_seam_name_a_database_or_hold_sql() {
    for (path, code) in all() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.components().any(|part| part.as_os_str() == "backend") || name == "backend.rs" {
            continue;
        }
        for forbidden in [
            "feature = \"postgres\"",
            "feature = \"mysql\"",
            "feature = \"sqlite\"",
            "sql_query",
            "batch_execute",
            "dsl::sql",
            "SELECT ",
            "INSERT INTO",
            "DELETE FROM",
            "UPDATE ",
            "pg::",
            "mysql::",
            "sqlite::",
        ] {
            // The crate's own file says what holds where there is no database at all.
            let is_known = name == "lib.rs" && forbidden.starts_with("feature");
            assert!(
                is_known || !code.contains(forbidden),
                "{}: {forbidden}",
                path.display()
            );
        }
    }
}

#[test]
fn case_05_no_statement_limits_an_update_or_a_delete() {
    for (path, code) in all() {
        // A limit belongs to a SELECT; SQLite has it elsewhere with a compile option only.
        for statement in code.split(';') {
            let begins = statement.trim_start().trim_start_matches('"');
            if begins.starts_with("UPDATE") || begins.starts_with("DELETE") {
                assert!(!statement.contains("LIMIT"), "{}: {statement}", path.display());
            }
        }
    }
}

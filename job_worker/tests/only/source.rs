//! What the source of this crate must not hold: SQL, which is job_core's affair, and threads in unexpected places.

use std::fs;
use std::path::Path;

/// Every source file, with its lines that are not comments.
fn lines_of_code() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        assert!(
            entry.file_type().unwrap().is_file(),
            "walk into folders too, now that there are some"
        );
        let name = entry.file_name().into_string().unwrap();
        let text = fs::read_to_string(entry.path()).unwrap();
        // Unit tests stand at the end.
        let (code, _) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
        for line in code.lines() {
            if !line.trim_start().starts_with("//") {
                lines.push((name.clone(), line.to_owned()));
            }
        }
    }
    assert!(lines.len() > 500, "the source was not found");
    lines
}

#[test]
fn the_worker_holds_no_sql() {
    for (file, line) in lines_of_code() {
        let lower = line.to_lowercase();
        let has = |needle: &str| lower.contains(needle);
        let statement = (has("select ") && has(" from "))
            || has("insert into")
            || (has("update ") && has(" set "))
            || has("delete from")
            || has("create table")
            || has("pragma ");
        let tool = [
            "sql_query",
            "batch_execute",
            "sql_function",
            "diesel::dsl",
            "querydsl",
        ]
        .into_iter()
        .any(has);
        assert!(!statement && !tool, "{file}: {line}");
    }
}

#[test]
fn threads_are_started_in_two_places() {
    for (file, line) in lines_of_code() {
        let starts = ["thread::spawn", "thread::scope", ".spawn(", "thread::Builder"]
            .into_iter()
            .any(|needle| line.contains(needle));
        assert!(
            !starts || ["crew.rs", "signals.rs"].contains(&file.as_str()),
            "{file}: {line}"
        );
    }
}

//! What the source of this crate must not hold: SQL, which is job_core's affair, and threads in unexpected places.

use std::fs;
use std::path::Path;

/// Every source file by its path in `src`, with its lines that are not comments.
fn lines_of_code() -> Vec<(String, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![source.clone()];
    let mut lines = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&source).unwrap().display().to_string();
            let text = fs::read_to_string(&path).unwrap();
            // Unit tests stand at the end.
            let (code, _) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
            for line in code.lines() {
                if !line.trim_start().starts_with("//") {
                    lines.push((name.clone(), line.to_owned()));
                }
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
fn threads_are_started_in_few_places() {
    // In the folder of futures, the threads are those of a runtime.
    let places = [
        "crew.rs",
        "signals.rs",
        "parallel/drive.rs",
        "futures.rs",
        "futures/host.rs",
        "futures/setup.rs",
    ];
    for (file, line) in lines_of_code() {
        let starts = [
            "thread::spawn",
            "thread::scope",
            ".spawn",
            "thread::Builder",
            "new_multi_thread",
            "spawn_blocking",
        ]
        .into_iter()
        .any(|needle| line.contains(needle));
        assert!(!starts || places.contains(&file.as_str()), "{file}: {line}");
    }
}

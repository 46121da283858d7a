//! What a database needs stands in that database's own file.

use std::fs;
use std::path::Path;

/// The files that name databases: one for each, and the one that lists them.
const MAY: [&str; 4] = ["lib.rs", "mysql.rs", "postgres.rs", "sqlite.rs"];
const MUST_NOT: [&str; 11] = [
    "cfg(feature",
    "Pg",
    "Mysql",
    "Sqlite",
    "sql_query",
    "batch_execute",
    "statement!",
    "SELECT ",
    "UPDATE ",
    "INSERT ",
    "DELETE ",
];

#[test]
fn no_other_file_names_a_database_or_holds_sql() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut looked_at = 0;
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            // A folder is what its file is.
            folders.extend(entries.filter(|path| {
                let file = path.with_extension("rs");
                !MAY.iter().any(|name| file.ends_with(name))
            }));
            continue;
        }
        looked_at += 1;
        let text = fs::read_to_string(&path).unwrap();
        // Comments and the documentation's examples may.
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for (line, word) in code.flat_map(|line| MUST_NOT.map(|word| (line, word))) {
            let names_connections_for_people = line.contains("label = ") || line.contains("note = ");
            assert!(
                names_connections_for_people || !line.contains(word),
                "{word} in {}: {line}",
                path.display()
            );
        }
    }
    assert!(looked_at > 15);
}

/// All sources, with their paths below `src`, without comments.
fn sources() -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = vec![src.clone()];
    let mut sources = Vec::new();
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        let name = path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
        sources.push((name, code.join("\n")));
    }
    sources
}

/// The files whose code has one of these words.
fn with(words: &[&str]) -> Vec<String> {
    let mut files: Vec<String> = sources()
        .into_iter()
        .filter(|(_, code)| words.iter().any(|word| code.contains(word)))
        .map(|(name, _)| name)
        .collect();
    files.sort();
    files
}

#[test]
fn only_the_keeper_the_heart_and_the_watcher_are_threads() {
    assert_eq!(
        with(&["spawn(", "spawn_scoped("]),
        ["attendant.rs", "leader/reign.rs"]
    );
    assert_eq!(with(&["Attendant::start("]), ["lease/keeper.rs", "slot/heart.rs"]);
}

/// Machines may disagree about the time by minutes or years: a wall clock is read to find out that the machine has slept, in
/// one file, and no point in time is ever bound to a statement.
#[test]
fn no_time_of_the_clients_enters_a_statement() {
    assert_eq!(
        with(&["SystemTime", "Utc::now", "Local::now"]),
        ["lease/trust.rs"]
    );
    let binds_a_time = |code: &str| code.contains("=> job_db::Instant") || code.contains("=> Timestamp");
    assert!(sources().iter().all(|(_, code)| !binds_a_time(code)));
}

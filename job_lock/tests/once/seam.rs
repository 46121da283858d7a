//! What a database needs stands in that database's own file.

use std::fs;
use std::path::Path;

/// The files that name databases: one for each, and the one that lists them.
const MAY: [&str; 4] = ["lib.rs", "mysql.rs", "postgres.rs", "sqlite.rs"];
const MUST_NOT: [&str; 9] = [
    "cfg(feature",
    "Pg",
    "Mysql",
    "Sqlite",
    "sql_query",
    "batch_execute",
    "statement!",
    "SELECT ",
    "UPDATE ",
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

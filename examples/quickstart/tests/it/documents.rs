//! The Rust in the documents is compiled by `src/lib.rs`. Here what else they name is looked for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(document: &str) -> String {
    fs::read_to_string(root().join(document)).unwrap()
}

/// What stands between backticks, outside blocks of code.
fn code_words(text: &str) -> Vec<String> {
    let prose: Vec<&str> = text.split("```").step_by(2).collect();
    let mut words = Vec::new();
    for part in prose {
        words.extend(part.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    words
}

#[test]
fn every_file_that_a_document_names_exists() {
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(document);
        let links = text
            .split("](")
            .skip(1)
            .map(|rest| rest.split(')').next().unwrap().to_owned());
        let files = code_words(&text)
            .into_iter()
            .filter(|word| word.contains('/') && !word.contains(' ') && word.ends_with(".rs"));
        for path in links.filter(|link| !link.starts_with("http")).chain(files) {
            assert!(
                root().join(&path).exists(),
                "{document} names {path}, which does not exist"
            );
        }
    }
}

/// What needs a feature that this crate must not have, since it would bring PostgreSQL into each build of the workspace, is
/// marked `rs`, which rustdoc leaves alone. It is the example of a module, whose own doctest compiles it.
#[test]
fn the_readmes_example_for_diesel_async_is_the_one_of_its_module() {
    let module = read("job_core/src/asynchronous.rs");
    let documentation: Vec<&str> = module
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .collect();
    let readme = read("README.md");
    let blocks: Vec<&str> = readme.split("```rs\n").skip(1).collect();
    assert_eq!(blocks.len(), 1);
    let (block, _) = blocks[0].split_once("```").unwrap();
    for line in block.lines().filter(|line| !line.is_empty()) {
        let line = format!(" {line}");
        assert!(documentation.contains(&line.as_str()), "it has no line{line}");
    }
}

#[test]
fn architecture_has_each_file_of_the_crates_that_it_maps() {
    let text = read("ARCHITECTURE.md");
    for krate in ["job_db", "job_core", "job_lock", "job_worker"] {
        for entry in fs::read_dir(root().join(krate).join("src")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{krate}/src/{name}");
            // What has but one meaning everywhere, and what stands for each database, needs no line of its own.
            let needs_none = ["lib.rs", "error.rs", "postgres.rs", "mysql.rs", "sqlite.rs"];
            if name.ends_with(".rs") && !needs_none.contains(&name.as_str()) {
                assert!(text.contains(&path), "ARCHITECTURE.md does not name {path}");
            }
        }
    }
}

#[test]
fn the_filter_for_print_schema_has_every_table_and_view() {
    let readme = read("README.md");
    for folder in fs::read_dir(root().join("migrations/sqlite")).unwrap() {
        let up = fs::read_to_string(folder.unwrap().path().join("up.sql")).unwrap();
        let made = up
            .split("CREATE TABLE ")
            .skip(1)
            .chain(up.split("CREATE VIEW ").skip(1));
        for name in made.map(|rest| rest.split_whitespace().next().unwrap()) {
            assert!(
                readme.contains(&format!("\"^{name}$\"")),
                "README.md does not filter {name}"
            );
        }
    }
}

#[test]
fn every_invariant_is_held_by_tests_that_exist() {
    let text = read("ARCHITECTURE.md");
    let (_, rest) = text.split_once("## Invariants").unwrap();
    let (invariants, _) = rest.split_once("\n## ").unwrap();
    let tests = names_of_tests(&root());
    for (number, invariant) in (1..).zip(invariants.split("\n").collect::<String>().split(". **").skip(1)) {
        if invariant.contains("*Its test is being written.*") {
            continue;
        }
        let (_, held_by) = invariant
            .split_once("Held by ")
            .unwrap_or_else(|| panic!("invariant {number} is held by no test: {invariant}"));
        for name in code_words(held_by) {
            assert!(
                tests.contains(&name),
                "invariant {number}: there is no test {name}"
            );
        }
    }
}

/// The names of all functions in the folders of tests.
fn names_of_tests(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            names.extend(names_of_tests(&path));
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).unwrap();
            let functions = text
                .split("#[test]")
                .skip(1)
                .filter_map(|rest| rest.split_once("fn "));
            names.extend(functions.map(|(_, rest)| rest.split('(').next().unwrap().to_owned()));
        }
    }
    names
}

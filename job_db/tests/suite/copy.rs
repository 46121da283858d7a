use super::{Conn, Db};
use diesel::migration::Migration;
use diesel_migrations::{FileBasedMigrations, MigrationHarness};
use job_db::{Database, DbConnection, TABLES, copy_migrations, migrate, schema_version};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

type Backend = <Conn as DbConnection>::Db;

/// An app's folder of migrations, which goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!(
            "gatun-{test}-{}-{}",
            Backend::NAME.replace('/', "-"),
            std::process::id()
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn diesel_runs_the_copies_and_migrate_finds_nothing_to_do() {
    let folder = Folder::new("runs");
    let made = copy_migrations::<Backend>(&folder.0).unwrap();
    assert_eq!(made.len(), Backend::migrations().unwrap().len());

    let db = Db::empty();
    let conn = &mut db.connect();
    let files = || FileBasedMigrations::from_path(&folder.0).unwrap();
    assert_eq!(conn.run_pending_migrations(files()).unwrap().len(), made.len());
    assert_eq!(migrate(conn).unwrap(), 0);
    let (current, newest) = schema_version(conn).unwrap();
    assert_eq!(current, Some(newest));

    conn.revert_all_migrations(files()).unwrap();
    assert_eq!(
        Backend::existing_tables(conn, &TABLES).unwrap(),
        Vec::<String>::new()
    );
}

#[test]
fn a_second_copy_changes_nothing() {
    let folder = Folder::new("second");
    let made = copy_migrations::<Backend>(&folder.0).unwrap();
    std::fs::write(made[0].join("up.sql"), "-- the app's own now").unwrap();
    assert_eq!(
        copy_migrations::<Backend>(&folder.0).unwrap(),
        Vec::<PathBuf>::new()
    );
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), made.len());
    assert_eq!(
        std::fs::read_to_string(made[0].join("up.sql")).unwrap(),
        "-- the app's own now"
    );
}

#[test]
fn the_files_to_copy_are_those_that_migrate_runs() {
    let embedded: BTreeSet<String> = Backend::migrations()
        .unwrap()
        .iter()
        .map(|migration| migration.name().to_string())
        .collect();
    let files: BTreeSet<String> = Backend::MIGRATION_FILES
        .iter()
        .map(|file| file.name.to_owned())
        .collect();
    assert_eq!(files, embedded);

    // A third file in a migration's folder, such as Diesel's metadata.toml, would have to be copied too.
    for migration in files_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations")) {
        for folder in files_in(&migration) {
            let names: BTreeSet<PathBuf> = files_in(&folder).into_iter().collect();
            assert_eq!(
                names,
                BTreeSet::from([folder.join("down.sql"), folder.join("up.sql")])
            );
        }
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

use crate::Database;
use chrono::{DateTime, Duration, NaiveDateTime, Utc};
use std::io;
use std::path::{Path, PathBuf};

/// One of our migrations, as the files of which an app may own a copy.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct MigrationFile {
    /// The folder's name, such as `00000000000001_gatun`.
    pub name: &'static str,
    /// What makes the change.
    pub up: &'static str,
    /// What takes it back.
    pub down: &'static str,
}

/// The files of one database's migrations. A test holds the list against the folder.
macro_rules! migration_files {
    ($database:literal: $($name:literal),+) => {
        &[$($crate::MigrationFile {
            name: $name,
            up: include_str!(concat!("../migrations/", $database, "/", $name, "/up.sql")),
            down: include_str!(concat!("../migrations/", $database, "/", $name, "/down.sql")),
        }),+]
    };
}

/// Why the migrations could not be copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The app's folder of migrations is missing or cannot be read.
    #[error("the folder of migrations {} cannot be read ({source}): make it with `diesel setup`, or name another", .folder.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder has a copy of a migration that this program does not know yet.
    #[error("{} was copied from a newer Gatun, which has version {copied}: this one knows only up to {newest}", .path.display())]
    NewerCopy {
        /// The copy.
        path: PathBuf,
        /// Its number in Gatun.
        copied: i64,
        /// The newest number that this program knows.
        newest: i64,
    },
    /// A copy could not be written. Nothing of it stays.
    #[error("{} cannot be written: {source}", .path.display())]
    Write {
        /// The copy.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Copies Gatun's migrations into an app's own folder of Diesel migrations, each under a fresh timestamp such as
/// `2026-12-01-120000_gatun_1`, and gives the new folders; none where all are there already. For teams that review the
/// SQL that their database gets. Nothing is ever overwritten, and a migration that is there is not copied again: it
/// is known by the part `gatun_1` of its name, so keep that.
///
/// Diesel runs the copies with the app's own migrations, and [`migrate`](crate::migrate) then finds nothing to do.
///
/// Where [`migrate`](crate::migrate) has made the tables already, the copies would fail on them: choose one way when you
/// begin.
///
/// # Errors
/// See [`CopyError`].
pub fn copy_migrations<DB: Database>(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, CopyError> {
    copy(DB::MIGRATION_FILES, folder.as_ref(), Utc::now())
}

fn copy(files: &[MigrationFile], folder: &Path, now: DateTime<Utc>) -> Result<Vec<PathBuf>, CopyError> {
    let present = names_in(folder).map_err(|source| CopyError::NoFolder {
        folder: folder.to_owned(),
        source,
    })?;
    let copied: Vec<(i64, &String)> = present
        .iter()
        .filter_map(|name| Some((number_of_copy(name)?, name)))
        .collect();
    let newest = files.iter().map(number).max().unwrap_or(0);
    if let Some((number, name)) = copied.iter().find(|(number, _)| *number > newest) {
        return Err(CopyError::NewerCopy {
            path: folder.join(name),
            copied: *number,
            newest,
        });
    }

    let mut taken: Vec<String> = present.iter().map(|name| version(name)).collect();
    // Later ones must run later, also where the clock of another machine was ahead.
    let latest = copied
        .iter()
        .filter_map(|(_, name)| time_of(&version(name)))
        .max();
    let mut time = latest.map_or(now, |latest| now.max(latest + Duration::seconds(1)));
    let mut made = Vec::new();
    for file in files {
        if copied.iter().any(|(copied, _)| *copied == number(file)) {
            continue;
        }
        let mut name = name_of_copy(file, time);
        while taken.contains(&version(&name)) {
            time += Duration::seconds(1);
            name = name_of_copy(file, time);
        }
        taken.push(version(&name));
        let path = folder.join(&name);
        write(file, &path).map_err(|source| CopyError::Write {
            path: path.clone(),
            source,
        })?;
        made.push(path);
    }
    Ok(made)
}

/// Our number of a migration, which is also what its SQL writes into the table of versions.
fn number(file: &MigrationFile) -> i64 {
    version(file.name).parse().unwrap_or(0)
}

fn name_of_copy(file: &MigrationFile, time: DateTime<Utc>) -> String {
    let time = time.format("%Y-%m-%d-%H%M%S");
    let number = number(file);
    match file.name.split_once('_') {
        Some((_, about)) if about != "gatun" => format!("{time}_gatun_{number}_{about}"),
        _ => format!("{time}_gatun_{number}"),
    }
}

fn number_of_copy(name: &str) -> Option<i64> {
    let rest = name.split_once('_')?.1.strip_prefix("gatun_")?;
    rest.split('_').next()?.parse().ok()
}

/// The version that Diesel reads from a folder's name.
fn version(name: &str) -> String {
    name.split('_').next().unwrap_or("").replace('-', "")
}

fn time_of(version: &str) -> Option<DateTime<Utc>> {
    NaiveDateTime::parse_from_str(version, "%Y%m%d%H%M%S")
        .ok()
        .map(|time| time.and_utc())
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

fn write(file: &MigrationFile, path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)?;
    let head = format!(
        "-- Copied from Gatun {}, migration {}.\n",
        env!("CARGO_PKG_VERSION"),
        number(file)
    );
    std::fs::write(path.join("up.sql"), format!("{head}{}", file.up))
        .and_then(|()| std::fs::write(path.join("down.sql"), format!("{head}{}", file.down)))
        // Half a copy would be taken for a whole one the next time.
        .inspect_err(|_| drop(std::fs::remove_dir_all(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: MigrationFile = MigrationFile {
        name: "00000000000001_gatun",
        up: "CREATE TABLE jobs;",
        down: "DROP TABLE jobs;",
    };
    const TWO: MigrationFile = MigrationFile {
        name: "00000000000002_schedules",
        up: "CREATE TABLE schedules;",
        down: "DROP TABLE schedules;",
    };

    fn noon() -> DateTime<Utc> {
        time_of("20261201120000").expect("a time")
    }

    fn names(paths: &[PathBuf]) -> Vec<&str> {
        paths
            .iter()
            .filter_map(|path| path.file_name()?.to_str())
            .collect()
    }

    /// A folder that goes when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("gatun-copy-{test}-{}", std::process::id()));
            std::fs::create_dir(&path).expect("a new folder");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn each_copy_has_a_timestamp_of_its_own_and_the_order_of_ours() {
        let folder = Folder::new("order");
        // The app made a migration in this very second.
        std::fs::create_dir(folder.0.join("2026-12-01-120000_create_orders")).unwrap();
        let made = copy(&[ONE, TWO], &folder.0, noon()).unwrap();
        assert_eq!(
            names(&made),
            ["2026-12-01-120001_gatun_1", "2026-12-01-120002_gatun_2_schedules"]
        );
        let up = std::fs::read_to_string(made[0].join("up.sql")).unwrap();
        assert!(
            up.starts_with("-- Copied from Gatun ") && up.ends_with("\nCREATE TABLE jobs;"),
            "{up}"
        );
        assert!(made[0].join("down.sql").exists());
    }

    #[test]
    fn only_what_is_new_is_copied_and_it_comes_later() {
        let folder = Folder::new("again");
        copy(&[ONE], &folder.0, noon()).unwrap();
        assert!(
            copy(&[ONE], &folder.0, noon() + Duration::days(1))
                .unwrap()
                .is_empty()
        );
        // The clock of this machine is a day behind.
        let made = copy(&[ONE, TWO], &folder.0, noon() - Duration::days(1)).unwrap();
        assert_eq!(names(&made), ["2026-12-01-120001_gatun_2_schedules"]);
    }

    #[test]
    fn a_newer_copy_and_a_missing_folder_are_refused() {
        let folder = Folder::new("newer");
        copy(&[ONE, TWO], &folder.0, noon()).unwrap();
        let newer = copy(&[ONE], &folder.0, noon());
        assert!(
            matches!(
                newer,
                Err(CopyError::NewerCopy {
                    copied: 2,
                    newest: 1,
                    ..
                })
            ),
            "{newer:?}"
        );
        let missing = copy(&[ONE], &folder.0.join("nowhere"), noon());
        assert!(matches!(missing, Err(CopyError::NoFolder { .. })), "{missing:?}");
    }

    #[test]
    fn a_copy_is_known_by_its_name() {
        assert_eq!(number_of_copy("2026-12-01-120000_gatun_1"), Some(1));
        assert_eq!(number_of_copy("2026-12-01-120000_gatun_12_schedules"), Some(12));
        assert_eq!(number_of_copy("2026-12-01-120000_gatun_settings"), None);
        assert_eq!(number_of_copy("2026-12-01-120000_create_orders"), None);
        assert_eq!(number_of_copy(".keep"), None);
    }
}

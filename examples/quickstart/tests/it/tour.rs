use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the program has printed, which left nothing behind.
fn run(folder: Option<&Path>) -> String {
    let temporary = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_quickstart"))
        .args(folder.map(Path::as_os_str).into_iter().map(OsStr::to_owned))
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains(&*temporary.path().to_string_lossy()), "{text}");
    let left: Vec<_> = fs::read_dir(temporary.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?} is left behind");
    text
}

/// The table of statuses.
fn statuses(text: &str) -> BTreeMap<&str, i64> {
    let names = [
        "scheduled",
        "new",
        "processing",
        "completed",
        "failed",
        "cancelled",
    ];
    text.lines()
        .filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [name, number] if names.contains(&name) => Some((name, number.parse().unwrap())),
            _ => None,
        })
        .collect()
}

/// The first number behind a text.
fn number_behind(text: &str, what: &str) -> i64 {
    let (_, rest) = text
        .split_once(what)
        .unwrap_or_else(|| panic!("no {what:?} in {text}"));
    let digits: String = rest
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits
        .parse()
        .unwrap_or_else(|_| panic!("no number behind {what:?} in {text}"))
}

#[test]
fn each_kind_of_job_ends_as_the_tour_says() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("a.txt"),
        "the lock\nthe ship\nthe canal, the\n",
    )
    .unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    fs::write(folder.path().join("b/c.md"), "# A Ship\n\nÜber the lake").unwrap();
    fs::write(folder.path().join("b/picture.png"), [0xff, 0x00]).unwrap();
    let text = run(Some(folder.path()));

    // Of so little text each line is a section: 3 and 3. Then the sum, two calls, two reminders and what is gone.
    assert_eq!(number_behind(&text, "Enqueued"), 12, "{text}");
    let ended = [
        ("scheduled", 0),
        ("new", 0),
        ("processing", 0),
        ("completed", 10),
        ("failed", 1),
        ("cancelled", 1),
    ];
    assert_eq!(statuses(&text), BTreeMap::from(ended), "{text}");
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for line in [
        "Summed up: 12 words in 6 sections, 7 different ones",
        "5 the",
        "2 ship",
        "1 über",
        "enqueued 5 times, which made 1 job",
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(lines.contains(&words), "no {line:?} in {text}");
    }
    for part in [
        "call_service, completed, attempts: 3",
        "attempt 2 failed: the service answered: 503, busy",
        "completed: 200, thank you, caller number 3",
        "call_service, failed, attempts: 2",
        "cancelled: no/such/file.txt is gone",
        "completed: remember the milk",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains("attempt 3 failed"), "{text}");
    assert!(number_behind(&text, "    started") >= 0, "{text}");
}

#[test]
fn the_words_of_this_repository_are_counted() {
    let text = run(None);
    let enqueued = number_behind(&text, "Enqueued");
    assert!((1000..10_000).contains(&enqueued), "{text}");
    let statuses = statuses(&text);
    assert_eq!(statuses.values().sum::<i64>(), enqueued, "{text}");
    assert_eq!(statuses["completed"], enqueued - 2, "{text}");
    assert_eq!(
        number_behind(&text, "Summed up:"),
        words_of_this_repository(),
        "{text}"
    );
}

#[test]
fn a_folder_without_texts_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_quickstart"))
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("no text files in"), "{errors}");
}

/// Counted without a queue.
fn words_of_this_repository() -> i64 {
    fn count(folder: &Path) -> usize {
        let mut words = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (path, kind, name) = (entry.path(), entry.file_type().unwrap(), entry.file_name());
            let end = path.extension().and_then(OsStr::to_str).unwrap_or_default();
            if name == "target" || name.to_string_lossy().starts_with('.') {
                continue;
            } else if kind.is_dir() {
                words += count(&path);
            } else if kind.is_file() && ["md", "rs", "sql", "toml", "txt"].contains(&end) {
                let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                words += text
                    .split(|c: char| !c.is_alphabetic())
                    .filter(|word| !word.is_empty())
                    .count();
            }
        }
        words
    }
    count(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")) as i64
}

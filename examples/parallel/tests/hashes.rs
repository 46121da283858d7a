//! The example's output, beside hashes that are computed here.

use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gatun-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("deep/er")).unwrap();
        Folder(path)
    }

    /// Writes a file and gives its line in the output.
    fn write(&self, name: &str, content: &[u8]) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        let hash: String = Sha256::digest(content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{hash}  {}\n", path.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn example(folder: Option<&Path>, threads: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parallel"));
    command.args(folder).args(threads).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn every_file_is_hashed_in_the_order_of_the_paths() {
    let folder = Folder::new("hashed");
    let mut expected = folder.write("a", b"");
    expected += &folder.write("b", &vec![7; 1 << 20]);
    expected += &folder.write("deep/c", b"gatun");
    for number in 100..400 {
        expected += &folder.write(&format!("deep/er/{number}"), number.to_string().as_bytes());
    }
    expected += &folder.write("e", b"the last");
    for threads in ["1", "4"] {
        let output = example(Some(&folder.0), &[threads]);
        assert_eq!(text(&output.stdout), expected);
        assert_eq!(
            text(&output.stderr),
            "to the end of the input: 304 ok, 0 failed, 0 panicked, 0 skipped\n"
        );
        assert_eq!(output.status.code(), Some(0));
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_is_reported_and_the_rest_are_hashed() {
    let folder = Folder::new("unreadable");
    let expected = folder.write("a", b"first") + &folder.write("deep/c", b"last");
    let link = folder.0.join("b");
    std::os::unix::fs::symlink("nothing", &link).unwrap();
    let output = example(Some(&folder.0), &["2"]);
    assert_eq!(text(&output.stdout), expected);
    let errors: Vec<_> = text(&output.stderr).lines().collect();
    assert!(
        errors[0].starts_with(&format!("failed: {}: No such file", link.display())),
        "{errors:?}"
    );
    assert_eq!(
        errors[1..],
        ["to the end of the input: 2 ok, 1 failed, 0 panicked, 0 skipped"]
    );
    assert_eq!(output.status.code(), Some(1));
}

/// A pipe that nobody reads.
#[cfg(unix)]
fn unread() -> std::process::Stdio {
    let (ours, _) = std::os::unix::net::UnixStream::pair().unwrap();
    std::os::fd::OwnedFd::from(ours).into()
}

#[cfg(unix)]
#[test]
fn it_ends_quietly_when_nobody_reads_the_hashes_any_more() {
    let folder = Folder::new("unread");
    for number in 0..500 {
        folder.write(&format!("deep/{number}"), b"gatun");
    }
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parallel"));
        command.arg(&folder.0);
        command
    };
    let output = command().stdout(unread()).output().unwrap();
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(141)));
    let status = command().stdout(unread()).stderr(unread()).status().unwrap();
    assert_eq!(status.code(), Some(141));
    let output = command().stderr(unread()).output().unwrap();
    assert_eq!(text(&output.stdout).lines().count(), 500);
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn what_could_break_a_line_or_command_a_terminal_is_escaped() {
    let folder = Folder::new("escaped");
    let names = ["a\nb\r", "c\\d", "e\u{1b}[31m\u{7f}", "f\u{85}", "ä"];
    let lines: Vec<_> = names.iter().map(|name| folder.write(name, b"gatun")).collect();
    std::os::unix::fs::symlink("nothing", folder.0.join("g\nh\\")).unwrap();
    let output = example(Some(&folder.0), &[]);
    let hash = &lines[0][..64];
    let line = |mark: &str, name: &str| format!("{mark}{hash}  {}/{name}\n", folder.0.display());
    let expected = [
        line("\\", r"a\nb\r"),
        line("\\", r"c\\d"),
        line("\\", r"e\u{1b}[31m\u{7f}"),
        line("\\", r"f\u{85}"),
        line("", "ä"),
    ];
    assert_eq!(text(&output.stdout), expected.concat());
    assert!(text(&output.stderr).contains(r"g\nh\: No such file"));
    assert_eq!(text(&output.stderr).lines().count(), 2);
}

#[test]
fn a_number_of_threads_that_is_none_is_refused_with_what_is_accepted() {
    for wrong in ["0", "x", "-1", ""] {
        let output = example(Some(Path::new(".")), &[wrong]);
        let expected = format!("Error: the number of threads is a whole number from 1, not {wrong:?}\n");
        assert!(text(&output.stderr).starts_with(&expected), "{output:?}");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn no_folder_to_hash_is_a_failure() {
    let output = example(Some(Path::new("/no/such/folder")), &[]);
    assert!(text(&output.stderr).contains("/no/such/folder"));
    assert_eq!(output.status.code(), Some(1));
}

#[cfg(unix)]
#[test]
fn without_a_folder_it_makes_one_with_a_file_that_cannot_be_read() {
    let output = example(None, &[]);
    assert_eq!(text(&output.stdout).lines().count(), 100);
    assert!(text(&output.stderr).contains("folder-4/link-to-nothing: No such file"));
    assert!(text(&output.stderr).ends_with("100 ok, 1 failed, 0 panicked, 0 skipped\n"));
    assert_eq!(output.status.code(), Some(1));
}

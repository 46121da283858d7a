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

use super::is_root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A temporary folder that goes when it is dropped.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes a folder; for root, one that belongs to `owner`.
    pub(super) fn new(owner: &str) -> Self {
        let name = format!("gatun-server-{}-{:08x}", std::process::id(), fastrand::u32(..));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a new folder");
        let folder = Self(path);
        if is_root() {
            let status = Command::new("chown").arg(owner).arg(folder.path()).status();
            assert!(
                status.is_ok_and(|status| status.success()),
                "the user {owner} owns no folder: is the server installed?"
            );
        }
        folder
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays behind: {error}", self.0.display());
        }
    }
}

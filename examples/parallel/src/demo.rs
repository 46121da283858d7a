use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};

/// A folder for trying it out, removed when dropped.
pub(crate) struct Demo(PathBuf);

impl Demo {
    /// A hundred files in ten folders, and a link to nothing, which nobody can read, not even root.
    pub(crate) fn new() -> Result<Self> {
        let demo = Demo(std::env::temp_dir().join(format!("gatun-parallel-{}", std::process::id())));
        for file in 0..100 {
            let folder = demo.0.join(format!("folder-{}", file / 10));
            fs::create_dir_all(&folder)?;
            fs::write(
                folder.join(format!("file-{file:02}")),
                "gatun ".repeat(file * 1_000),
            )?;
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("nothing", demo.0.join("folder-4/link-to-nothing"))?;
        Ok(demo)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // What is left over lies in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The SHA-256 of the file in hexadecimal, with the file's path. The buffer is what it reads into.
pub(crate) fn sha256(path: &Path, buffer: &mut [u8]) -> Result<(String, PathBuf)> {
    let hash = read(path, buffer).with_context(|| path.display().to_string())?;
    Ok((hash, path.to_owned()))
}

fn read(path: &Path, buffer: &mut [u8]) -> Result<String> {
    // To open a named pipe would wait for a writer.
    ensure!(fs::metadata(path)?.is_file(), "it is no regular file");
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    loop {
        match file.read(buffer)? {
            0 => break,
            bytes => hasher.update(&buffer[..bytes]),
        }
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

//! Finds the text files in a folder and cuts them into sections.

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// About how many sections all files together are cut into.
const SECTIONS: u64 = 3000;

const TEXTS: [&str; 5] = ["md", "rs", "sql", "toml", "txt"];

/// Some lines of a file, by its bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Section {
    /// The file's path in the folder.
    pub(crate) file: String,
    from: u64,
    to: u64,
}

impl Section {
    pub(crate) fn all_of(file: &str) -> Self {
        Section {
            file: file.into(),
            from: 0,
            to: u64::MAX,
        }
    }

    pub(crate) fn read(&self, folder: &Path) -> io::Result<String> {
        let mut file = File::open(folder.join(&self.file))?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut bytes = Vec::new();
        file.take(self.to - self.from).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Each text file's path in the folder, and its sections.
pub(crate) fn cut(folder: &Path) -> anyhow::Result<Vec<(String, Vec<Section>)>> {
    let mut files = Vec::new();
    find(folder, &mut files)?;
    ensure!(
        !files.is_empty(),
        "no text files in {}: their names end in {}",
        folder.display(),
        TEXTS.join(", ")
    );
    files.sort();
    let size = files.iter().map(|(_, bytes)| bytes).sum::<u64>() / SECTIONS;
    let mut documents = Vec::new();
    for (path, _) in files {
        let text = fs::read(&path)?;
        let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
        documents.push((name.clone(), sections(&name, &text, size)));
    }
    Ok(documents)
}

/// Whole lines, together of at least this size.
fn sections(file: &str, text: &[u8], size: u64) -> Vec<Section> {
    let (mut sections, mut from, mut to) = (Vec::new(), 0, 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        to += line.len() as u64;
        if to - from >= size || to == text.len() as u64 {
            let file = file.to_owned();
            sections.push(Section { file, from, to });
            from = to;
        }
    }
    sections
}

/// Adds the text files and their sizes; leaves out hidden files, what builds make, and links, which could go in circles.
fn find(folder: &Path, files: &mut Vec<(PathBuf, u64)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        if name.to_string_lossy().starts_with('.') || name == "target" {
            continue;
        }
        let is_text = path
            .extension()
            .is_some_and(|end| TEXTS.iter().any(|text| end == *text));
        if kind.is_dir() {
            find(&path, files)?;
        } else if kind.is_file() && is_text {
            files.push((path, entry.metadata()?.len()));
        }
    }
    Ok(())
}

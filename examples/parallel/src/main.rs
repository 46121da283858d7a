//! `cargo run -p parallel -- [folder] [threads]` prints the SHA-256 of every file under a folder, as `sha256sum` does: a
//! line starts with a backslash where the path has line breaks or backslashes, which are escaped, and other control
//! characters, which `sha256sum` would leave as they are.
//!
//! Without a folder it makes one with a file in it that cannot be read. Hashes go to standard output in the order of the
//! paths; progress, and what could not be read, to standard error. The exit status is 1 where there was such a file.
//! Ctrl-C stops after the files that are in hand, a second one skips those not started. When nobody reads the hashes any
//! more, as with `| head -1`, it ends without a word and with the status 141, as a shell gives it for SIGPIPE.

mod demo;
mod hash;
mod progress;
mod text;

use anyhow::{Context, Result};
use demo::Demo;
use hash::sha256;
use job_worker::InParallel;
use job_worker::parallel::{Order, StopToken};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::convert::Infallible;
use std::io::{BufWriter, ErrorKind, IsTerminal, Stdout, Write, stdout};
use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use text::{line, say};
use walkdir::{DirEntry, WalkDir};

/// The bytes that a thread reads at once.
const BUFFER: usize = 64 << 10;
/// The exit status when nobody reads the output any more.
const NO_READER: u8 = 128 + 13;

fn main() -> Result<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let folder = args.next();
    let threads = match args.next() {
        Some(text) => threads_of(&text.to_string_lossy())?,
        None => thread::available_parallelism()?.get(),
    };
    match folder {
        Some(folder) => hash_all(folder.as_ref(), threads),
        None => hash_all(Demo::new()?.folder(), threads),
    }
}

fn threads_of(text: &str) -> Result<usize> {
    let number: Option<NonZero<usize>> = text.parse().ok();
    let threads =
        number.with_context(|| format!("the number of threads is a whole number from 1, not {text:?}"))?;
    Ok(threads.get())
}

fn hash_all(folder: &Path, threads: usize) -> Result<ExitCode> {
    // Collected, so that the total is known. An entry that cannot be read is an item as any other, and fails.
    let files: Vec<_> = WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .filter(|entry| entry.as_ref().map_or(true, is_file))
        .collect();
    let mut out = BufWriter::new(stdout());
    let mut written = Ok(());
    let bar = progress::bar();
    // Where both are shown in one place, the bar must make room for the lines.
    let shared = bar.clone().filter(|_| out.get_ref().is_terminal());
    let token = stop_on_signals()?;

    let summary = files
        .into_iter()
        .in_parallel()
        .threads(threads)
        .order(Order::Input)
        .keep_failures(usize::MAX)
        .stop(&token)
        .on_progress(progress::show(bar))
        // Each thread has a buffer of its own, as it could have a connection.
        .init(|| Ok::<_, Infallible>(vec![0; BUFFER]))
        .for_each_outcome(
            |buffer, entry| sha256(entry?.path(), buffer),
            |_, outcome| {
                if let Ok((hash, path)) = outcome
                    && written.is_ok()
                {
                    let write = |out: &mut BufWriter<Stdout>| writeln!(out, "{}", line(&hash, &path));
                    written = match &shared {
                        Some(bar) => bar.suspend(|| write(&mut out).and_then(|()| out.flush())),
                        None => write(&mut out),
                    };
                    if written.is_err() {
                        // Twice, so that nothing more is started.
                        token.stop();
                        token.stop();
                    }
                }
            },
        )?;

    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::from(NO_READER)),
        result => result.context("the hashes cannot be written")?,
    }
    for (_, why) in summary.failures() {
        say(&format!("{why:#}"));
    }
    say(&format!("{}: {}", summary.end(), summary.counts()));
    Ok(if summary.is_complete() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Files, and links to what is no folder.
fn is_file(entry: &DirEntry) -> bool {
    let kind = entry.file_type();
    kind.is_file() || (kind.is_symlink() && !entry.path().is_dir())
}

/// A token that SIGINT and SIGTERM stop.
fn stop_on_signals() -> Result<StopToken> {
    let token = StopToken::new();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::spawn({
        let token = token.clone();
        move || signals.forever().for_each(|_| token.stop())
    });
    Ok(token)
}

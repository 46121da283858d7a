//! `cargo run -p parallel -- [folder] [threads]` prints the SHA-256 of every file under a folder, as `sha256sum` does.
//!
//! Without a folder it makes one with a file in it that cannot be read. Hashes go to standard output in the order of the
//! paths; progress, and what could not be read, to standard error. The exit status is 1 where there was such a file.
//! Ctrl-C stops after the files that are in hand, a second one skips those not started.

mod demo;
mod hash;
mod progress;

use anyhow::Result;
use demo::Demo;
use hash::sha256;
use job_worker::InParallel;
use job_worker::parallel::{Order, StopToken};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::convert::Infallible;
use std::io::{BufWriter, IsTerminal, Stdout, Write, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use walkdir::{DirEntry, WalkDir};

/// The bytes that a thread reads at once.
const BUFFER: usize = 64 << 10;

fn main() -> Result<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let folder = args.next();
    let threads = match args.next() {
        Some(text) => text.to_string_lossy().parse()?,
        None => thread::available_parallelism()?.get(),
    };
    match folder {
        Some(folder) => hash_all(folder.as_ref(), threads),
        None => hash_all(Demo::new()?.folder(), threads),
    }
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
                    let write = |out: &mut BufWriter<Stdout>| writeln!(out, "{hash}  {}", path.display());
                    written = match &shared {
                        Some(bar) => bar.suspend(|| write(&mut out).and_then(|()| out.flush())),
                        None => write(&mut out),
                    };
                    if written.is_err() {
                        token.stop();
                    }
                }
            },
        )?;

    written?;
    out.flush()?;
    for (_, why) in summary.failures() {
        eprintln!("{why:#}");
    }
    eprintln!("{}: {}", summary.end(), summary.counts());
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

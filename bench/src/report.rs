//! `RESULTS.md`, `results.json`, the plots and `docs/claims.md`.

mod claims;
mod plot;
mod table;

use crate::contenders::CONTENDERS;
use crate::figures::Figures;
use crate::run::Bench;
use crate::scenarios::adverse::calm_of;
use crate::targets::{self, ADVERSE};
use anyhow::{Context, Result};
use plot::Bar;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use table::Table;

/// The scenario on the other databases, which only some builds have.
const OTHERS: &str = "others";

/// Writes all that a full run leaves behind, or what the scenarios that were measured leave of it.
pub fn write(bench: &Bench, took: Duration) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let figures = &bench.figures;
    if let Some(page) = claims::page(figures, bench.options.rounds) {
        let docs = folder.parent().context("the workspace")?.join("docs");
        fs::create_dir_all(&docs)?;
        fs::write(docs.join("claims.md"), page)?;
    }
    if let Some(tables) = other_databases(figures) {
        let text = format!(
            "# MariaDB and SQLite\n\nWritten by `bin/bench`: the medians of {} rounds at scale {}, with a quarter of the sizes of \
             [PostgreSQL's](RESULTS.md), on the same machine. MariaDB has the settings that it is installed with; SQLite has WAL and `synchronous = NORMAL`, as\n\
             `job_core::prepare_connection` sets it: a commit may be lost with the power. Nothing notifies here, so a worker looks each 200 ms, give or take\n\
             a quarter, and *idle to start* is how long that takes: jobs come 30 to 80 ms after the former one, and so wait for the rest of it.\n\n{tables}",
            bench.options.rounds, bench.options.scale
        );
        fs::write(folder.join("OTHER-DATABASES.md"), text)?;
    }
    if figures.contenders("drain").is_empty() {
        return Ok(());
    }
    let machine = machine(bench)?;
    let mut text = String::from("# Results\n\nWritten by `bin/bench");
    text.push_str(if bench.options.peers { " --peers`" } else { "`" });
    text.push_str(". How it is measured, and what the words mean: [README.md](README.md).\n\n");
    for (what, value) in &machine {
        text.push_str(&format!("- **{what}**: {value}\n"));
    }
    text.push_str(&format!(
        "- **rounds**: {}, each figure the median, each ratio the median of the rounds' ratios; scale {}; {:.0} minutes\n\n",
        bench.options.rounds,
        bench.options.scale,
        took.as_secs_f64() / 60.0
    ));
    text.push_str("## What it must show\n\n");
    text.push_str(&targets_table(figures));
    text.push_str(&tables(figures));
    if let Some(svg) = drain_plot(figures) {
        fs::write(folder.join("drain.svg"), svg)?;
        text.push_str("\n![Drain, jobs a second](drain.svg)\n");
    }
    if let Some(svg) = adverse_plot(figures) {
        fs::write(folder.join("adverse.svg"), svg)?;
        text.push_str("\n![The drain under bad conditions, in percent of calm](adverse.svg)\n");
    }
    fs::write(folder.join("RESULTS.md"), text)?;
    let all = json!({
        "machine": machine.iter().map(|(what, value)| (*what, value)).collect::<std::collections::BTreeMap<_, _>>(),
        "scale": bench.options.scale,
        "rounds": bench.options.rounds,
        "contenders": figures.notes,
        "targets": targets::all(figures).iter().map(|target| json!({
            "what": target.what, "figure": target.figure, "target": target.cells()[2], "met": target.met(),
        })).collect::<Vec<_>>(),
        "figures": figures.entries(),
    });
    fs::write(
        folder.join("results.json"),
        serde_json::to_string_pretty(&all)? + "\n",
    )?;
    Ok(())
}

fn machine(bench: &Bench) -> Result<Vec<(&'static str, String)>> {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split(':').nth(1))
        .unwrap_or("unknown")
        .trim()
        .to_owned();
    let cores = std::thread::available_parallelism()?.get();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let gib = memory
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1_048_576.0;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.split('.').take(2).collect::<Vec<_>>().join(".");
    let says = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let mut all = vec![
        (
            "machine",
            format!("{cores} cores of {model}, {gib:.0} GiB, Linux {}", kernel.trim()),
        ),
        (
            "PostgreSQL",
            format!("{}, the settings of `initdb`", bench.server.version()?),
        ),
        ("Rust", says("rustc", &["--version"]).unwrap_or_default()),
    ];
    if bench.options.peers {
        all.push(("Node", says("node", &["--version"]).unwrap_or_default()));
        all.push(("Python", says("python3", &["--version"]).unwrap_or_default()));
    }
    Ok(all)
}

fn targets_table(figures: &Figures) -> String {
    let mut table = Table::new(&["what", "figure", "target", ""]);
    for target in targets::all(figures) {
        table.row(target.cells().to_vec());
    }
    table.text()
}

/// All tables that there are figures for.
pub fn tables(figures: &Figures) -> String {
    let mut text = String::new();
    let mut section = |title: &str, table: Table| {
        if !table.is_empty() {
            text.push_str(&format!("\n## {title}\n\n{}", table.text()));
        }
    };
    section("Contenders", contenders(figures));
    let ours = ("drain", "gatun", "jobs/s");
    let mut drain = Table::new(&[
        "drain",
        "jobs",
        "jobs/s",
        "Gatun is × as fast",
        "worker µs/job",
        "server µs/job",
        "WAL B/job",
        "peak MiB",
    ]);
    for name in figures.contenders("drain") {
        let cell = |metric, digits| table::cell(figures.median("drain", name, metric), digits);
        drain.row(vec![
            name.to_owned(),
            cell("jobs", 0),
            cell("jobs/s", 0),
            table::cell(figures.ratio(ours, ("drain", name, "jobs/s")), 2),
            cell("worker µs/job", 1),
            cell("server µs/job", 1),
            cell("WAL B/job", 0),
            cell("peak MiB", 0),
        ]);
    }
    section("Drain", drain);
    section(
        "Enqueue, jobs/s",
        plain(
            figures,
            "enqueue",
            &[
                "single, 1 connections jobs/s",
                "single, 8 connections jobs/s",
                "bulk 100 jobs/s",
                "bulk 1000 jobs/s",
                "bulk 10000 jobs/s",
            ],
            0,
        ),
    );
    section(
        "Idle to start, ms",
        plain(
            figures,
            "latency",
            &["p50 ms", "p99 ms", "from the call p50 ms", "from the call p99 ms"],
            2,
        ),
    );
    section(
        "What an idle worker costs",
        plain(
            figures,
            "idle",
            &["statements/s", "worker % of a core", "server % of a core"],
            2,
        ),
    );
    section(
        "Sustained load at half the drain rate",
        plain(
            figures,
            "sustained",
            &[
                "jobs/s",
                "p50 ms",
                "p99 ms",
                "max ms",
                "worker µs/job",
                "hot tables at half time MiB",
                "hot tables at the end MiB",
                "kept B/job",
            ],
            1,
        ),
    );
    let mut adverse = Table::new(&[
        "condition",
        "jobs",
        "jobs/s",
        "to calm",
        "worker µs/job",
        "server µs/job",
        "peak MiB",
    ]);
    for name in figures.contenders("adverse") {
        let cell = |metric, digits| table::cell(figures.median("adverse", name, metric), digits);
        adverse.row(vec![
            name.to_owned(),
            cell("jobs", 0),
            cell("jobs/s", 0),
            table::cell(
                figures.ratio(("adverse", name, "jobs/s"), ("adverse", calm_of(name), "jobs/s")),
                2,
            ),
            cell("worker µs/job", 1),
            cell("server µs/job", 1),
            cell("peak MiB", 0),
        ]);
    }
    section("Bad conditions", adverse);
    text.push_str(
        "\n*To calm* is the median of the rounds' ratios; 8 processes are compared with one that drains a million, too. What was \
         missed, and\nwhy: [docs/missed-targets.md](../docs/missed-targets.md). MariaDB and SQLite: \
         [OTHER-DATABASES.md](OTHER-DATABASES.md).\n",
    );
    let mut section = |title: &str, table: Table| {
        if !table.is_empty() {
            text.push_str(&format!("\n## {title}\n\n{}", table.text()));
        }
    };
    section("Claims", claims::table(figures));
    text
}

/// The tables of the other databases.
pub fn other_databases(figures: &Figures) -> Option<String> {
    let names = figures.contenders(OTHERS);
    let databases: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| !name.contains(", "))
        .collect();
    let of = |name: &str, metric: &str, digits| table::cell(figures.median(OTHERS, name, metric), digits);
    let mut plain = Table::new(&[&["" as &str], databases.as_slice()].concat());
    for (metric, digits) in [
        ("single, 1 connections jobs/s", 0),
        ("single, 8 connections jobs/s", 0),
        ("bulk 100 jobs/s", 0),
        ("bulk 1000 jobs/s", 0),
        ("bulk 10000 jobs/s", 0),
        ("idle to start p50 ms", 2),
        ("idle to start p99 ms", 2),
        ("idle worker % of a core", 2),
    ] {
        let cells = databases.iter().map(|name| of(name, metric, digits));
        plain.row(std::iter::once(metric.to_owned()).chain(cells).collect());
    }
    const RATE: &str = "drain jobs/s";
    let mut drains = Table::new(&["drain", "jobs", "jobs/s", "to calm", "worker µs/job", "peak MiB"]);
    for name in names.iter().copied().filter(|name| name.contains(", ")) {
        let database = name.split(", ").next().unwrap_or_default();
        let calm = format!("{database}, calm");
        drains.row(vec![
            name.to_owned(),
            of(name, "jobs", 0),
            of(name, RATE, 0),
            table::cell(figures.ratio((OTHERS, name, RATE), (OTHERS, &calm, RATE)), 2),
            of(name, "worker µs/job", 1),
            of(name, "peak MiB", 0),
        ]);
    }
    (!databases.is_empty()).then(|| format!("{}\n{}", plain.text(), drains.text()))
}

fn contenders(figures: &Figures) -> Table {
    let mut table = Table::new(&["contender", "version and setting", "after completion"]);
    if figures.notes.len() < 2 {
        return table;
    }
    for contender in CONTENDERS {
        if let Some(note) = figures.notes.get(contender.name) {
            let keeps = if contender.keeps { "kept" } else { "deleted" };
            table.row(vec![contender.name.to_owned(), note.clone(), keeps.to_owned()]);
        }
    }
    table
}

/// One line per contender, one column per metric.
fn plain(figures: &Figures, scenario: &str, metrics: &[&str], digits: usize) -> Table {
    let heads: Vec<&str> = [""].iter().chain(metrics).copied().collect();
    let mut table = Table::new(&heads);
    for name in figures.contenders(scenario) {
        let cells = metrics
            .iter()
            .map(|metric| table::cell(figures.median(scenario, name, metric), digits));
        table.row([name.to_owned()].into_iter().chain(cells).collect());
    }
    table
}

fn drain_plot(figures: &Figures) -> Option<String> {
    let mut bars: Vec<Bar> = figures
        .contenders("drain")
        .into_iter()
        .filter_map(|name| {
            Some(Bar {
                label: name.to_owned(),
                value: figures.median("drain", name, "jobs/s")?,
                ours: name == "gatun",
            })
        })
        .collect();
    bars.sort_by(|a, b| b.value.total_cmp(&a.value));
    plot::bars("Drain: no-op jobs a second", &bars)
}

fn adverse_plot(figures: &Figures) -> Option<String> {
    let bars: Vec<Bar> = ADVERSE
        .iter()
        .filter_map(|(name, _)| {
            let ratio = figures.ratio(("adverse", name, "jobs/s"), ("adverse", calm_of(name), "jobs/s"))?;
            Some(Bar {
                label: (*name).to_owned(),
                value: ratio * 100.0,
                ours: true,
            })
        })
        .collect();
    plot::bars("Drain under bad conditions, in percent of calm", &bars)
}

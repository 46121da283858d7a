//! What the benchmark must show.

use crate::contenders::CONTENDERS;
use crate::figures::Figures;
use crate::scenarios::adverse::{PROCESSES, calm_of};
use crate::scenarios::drain::DISCARDING;

/// One target, with the figure of this run.
pub struct Target {
    pub what: String,
    /// `None` where this run did not measure it.
    pub figure: Option<f64>,
    pub bound: Bound,
}

#[derive(Clone, Copy, Debug)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    /// `None` where it was not measured.
    pub fn met(&self) -> Option<bool> {
        let figure = self.figure?;
        Some(match self.bound {
            Bound::AtLeast(bound) => figure >= bound,
            Bound::AtMost(bound) => figure <= bound,
        })
    }

    /// As a line of a table: what, figure, target, and whether it was met.
    pub fn cells(&self) -> [String; 4] {
        let bound = match self.bound {
            Bound::AtLeast(bound) => format!("≥ {bound}"),
            Bound::AtMost(bound) => format!("≤ {bound}"),
        };
        let digits = |figure| {
            let (Bound::AtLeast(edge) | Bound::AtMost(edge)) = self.bound;
            let rounded = format!("{figure:.2}");
            // A figure that is missed by little must not look as if it were not.
            let hides = self.met() == Some(false) && rounded == format!("{edge:.2}");
            if hides { format!("{figure:.3}") } else { rounded }
        };
        let figure = self.figure.map_or("–".to_owned(), digits);
        let met = match self.met() {
            None => "not measured in this run",
            Some(true) => "met",
            Some(false) => "MISSED",
        };
        [self.what.clone(), figure, bound, met.to_owned()]
    }
}

/// Prints all targets; `false` where one was missed.
pub fn print(figures: &Figures) -> bool {
    let targets = all(figures);
    println!();
    for target in &targets {
        let [what, figure, bound, met] = target.cells();
        println!("{what:<74} {figure:>9} {bound:>8}  {met}");
    }
    targets.iter().all(|target| target.met() != Some(false))
}

/// All targets.
pub fn all(figures: &Figures) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |what: &str, figure, bound| {
        targets.push(Target {
            what: what.to_owned(),
            figure,
            bound,
        });
    };
    use Bound::{AtLeast, AtMost};

    let drain = |name| ("drain", name, "jobs/s");
    let ours = drain("gatun");
    add(
        "drain, to the bare loop",
        figures.ratio(ours, drain("bare loop")),
        AtLeast(0.8),
    );
    let fastest = |ours, accept: fn(&crate::contenders::Contender) -> bool| {
        CONTENDERS[1..]
            .iter()
            .filter(|peer| accept(peer))
            .filter_map(|peer| Some((figures.median("drain", peer.name, "jobs/s")?, peer.name)))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .and_then(|(_, name)| figures.ratio(drain(ours), drain(name)))
    };
    add(
        "drain, to the fastest peer that keeps history",
        fastest("gatun", |peer| peer.keeps),
        AtLeast(2.0),
    );
    add(
        "drain, to the fastest peer that deletes",
        fastest("gatun", |peer| !peer.keeps),
        AtLeast(1.3),
    );
    add(
        "drain that discards, to the fastest peer that deletes",
        fastest(DISCARDING, |peer| !peer.keeps),
        AtLeast(2.0),
    );
    add(
        "drain, to the fastest peer on Diesel",
        fastest("gatun", |peer| peer.diesel),
        AtLeast(20.0),
    );

    for batch in [100, 1_000, 10_000] {
        let metric = format!("bulk {batch} jobs/s");
        let rate = |name| ("enqueue", name, metric.as_str());
        add(
            &format!("enqueue {batch} at once, to the bare statement"),
            figures.ratio(rate("gatun"), rate("bare statement")),
            AtLeast(0.8),
        );
    }
    let bulk = |name: &str| {
        [100, 1_000, 10_000]
            .iter()
            .filter_map(|batch| figures.median("enqueue", name, &format!("bulk {batch} jobs/s")))
            .reduce(f64::max)
    };
    let best_peer = CONTENDERS[1..]
        .iter()
        .filter_map(|peer| bulk(peer.name))
        .reduce(f64::max);
    add(
        "enqueue in bulk, to the best peer, each at its best batch",
        bulk("gatun").zip(best_peer).map(|(ours, best)| ours / best),
        AtLeast(1.0),
    );
    for connections in [1, 8] {
        let metric = format!("single, {connections} connections jobs/s");
        let rate = |name| ("enqueue", name, metric.as_str());
        add(
            &format!("time of a single enqueue from {connections} connections, to a bare two-row INSERT"),
            figures.ratio(rate("bare statement"), rate("gatun")),
            AtMost(1.3),
        );
    }

    for metric in ["p50 ms", "p99 ms", "from the call p50 ms", "from the call p99 ms"] {
        let best = CONTENDERS[1..]
            .iter()
            .filter_map(|peer| Some((figures.median("latency", peer.name, metric)?, peer.name)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        add(
            &format!("idle to start, {metric}, to the best peer"),
            best.and_then(|(best, _)| Some(figures.median("latency", "gatun", metric)? / best)),
            AtMost(1.0),
        );
    }
    for (metric, bound) in [("p50 ms", 1.3), ("p99 ms", 3.7)] {
        add(
            &format!("idle to start, {metric} (the best peer's when the target was set)"),
            figures.median("latency", "gatun", metric),
            AtMost(bound),
        );
    }
    let idle = |metric| figures.median("idle", "gatun", metric);
    add("idle: statements a second", idle("statements/s"), AtMost(2.0));
    add(
        "idle: worker, % of a core",
        idle("worker % of a core"),
        AtMost(0.5),
    );

    let waits = |metric| figures.median("async", "gatun", metric);
    add(
        "5,000 async jobs that wait 1 s each: seconds from the worker's start to its end",
        waits("seconds"),
        AtMost(3.0),
    );
    add(
        "5,000 async jobs that wait 1 s each: connections",
        waits("connections"),
        AtMost(10.0),
    );

    for (name, bound) in ADVERSE {
        let figure = figures.ratio(("adverse", name, "jobs/s"), ("adverse", calm_of(name), "jobs/s"));
        add(&format!("drain, {name}, to calm"), figure, AtLeast(*bound));
    }
    add(
        "worker memory at a backlog of 1M, MiB",
        figures.median("adverse", "backlog of 1M", "peak MiB"),
        AtMost(64.0),
    );
    targets
}

/// The bad conditions, with how much of the calm rate must be left.
pub const ADVERSE: &[(&str, f64)] = &[
    ("an old snapshot is held", 0.9),
    ("backlog of 1M", 0.9),
    ("1M due in the future", 0.95),
    ("6 KB of arguments", 0.6),
    ("100 queues", 0.7),
    ("64 threads", 0.9),
    (PROCESSES, 0.9),
];

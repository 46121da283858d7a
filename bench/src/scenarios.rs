//! The scenarios, in the order in which a round measures them.

pub mod adverse;
mod bare;
mod claims;
pub mod drain;
mod enqueue;
mod fill;
mod idle;
mod latency;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod others;
mod sustained;
mod waits;

use crate::run::Bench;
use anyhow::Result;

pub use claims::STRATEGIES;

/// One kind of measurement.
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    /// The scenario of the same round whose figures it is compared with.
    pub needs: Option<&'static str>,
    /// Whether once per run is enough.
    pub once: bool,
    /// Whether a target depends on it, so that the short form has it.
    pub checked: bool,
    pub measure: fn(&mut Bench) -> Result<()>,
}

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "drain",
        about: "a worker empties a queue; beside a bare loop of the same statements, and the peers",
        needs: None,
        once: false,
        checked: true,
        measure: drain::measure,
    },
    Scenario {
        name: "enqueue",
        about: "one by one from 1 and 8 connections, and in bulk; beside the bare statement, and the peers",
        needs: None,
        once: false,
        checked: true,
        measure: enqueue::measure,
    },
    Scenario {
        name: "latency",
        about: "from the commit of an enqueue to the start of the job, while the worker was idle",
        needs: None,
        once: false,
        checked: true,
        measure: latency::measure,
    },
    Scenario {
        name: "sustained",
        about: "jobs come at half the rate of the drain: latency, and how the tables grow",
        needs: Some("drain"),
        once: false,
        checked: false,
        measure: sustained::measure,
    },
    Scenario {
        name: "adverse",
        about: "the drain under bad conditions, as a ratio to the calm one of the same round",
        needs: Some("drain"),
        once: false,
        checked: true,
        measure: adverse::measure,
    },
    Scenario {
        name: "idle",
        about: "what a worker with nothing to do costs",
        needs: None,
        once: true,
        checked: true,
        measure: idle::measure,
    },
    Scenario {
        name: "async",
        about: "5,000 async jobs that wait for a second each, over few connections",
        needs: None,
        once: true,
        checked: true,
        measure: waits::measure,
    },
    Scenario {
        name: "claims",
        about: "50 workers claim one task at a time from one table, in seven ways",
        needs: None,
        once: false,
        checked: false,
        measure: claims::measure,
    },
    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    Scenario {
        name: "others",
        about: "enqueue, idle to start and the drain, also under bad conditions, on MariaDB and SQLite",
        needs: None,
        once: false,
        checked: false,
        measure: others::measure,
    },
];

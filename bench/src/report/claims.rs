//! `docs/claims.md`: the prose of `claims.md` beside this file, with the figures of the run.

use super::table::{Table, cell};
use crate::figures::Figures;
use crate::scenarios::STRATEGIES;

/// The page; `None` where the run has no figures for all strategies.
pub fn page(figures: &Figures, rounds: usize) -> Option<String> {
    let all = STRATEGIES
        .iter()
        .all(|strategy| figures.median("claims", &strategy.label(), "claims/s").is_some());
    let text = include_str!("claims.md")
        .replace("{rounds}", &rounds.to_string())
        .replace("{table}", table(figures).text().trim_end());
    all.then_some(text)
}

/// One line per strategy.
pub fn table(figures: &Figures) -> Table {
    let mut table = Table::new(&[
        "claim",
        "isolation",
        "claims/s",
        "p99 ms",
        "waiting, of 50",
        "errors per claim",
        "rollbacks",
        "came back empty",
        "tasks with two workers",
    ]);
    for strategy in STRATEGIES {
        let label = strategy.label();
        let median = |metric| figures.median("claims", &label, metric);
        let Some(claims) = median("claims/s") else {
            continue;
        };
        let doubles = median("two workers")
            .zip(median("tasks"))
            .map(|(doubles, tasks)| match doubles {
                0.0 => "0".to_owned(),
                doubles => format!("{} of {}", cell(Some(doubles), 0), cell(Some(tasks), 0)),
            });
        let per_claim = median("errors")
            .zip(median("claimed"))
            .map(|(errors, claimed)| errors / claimed.max(1.0));
        table.row(vec![
            format!("({}) {}", strategy.number, strategy.name),
            strategy.isolation.to_owned(),
            cell(Some(claims), 0),
            cell(median("p99 ms"), 1),
            cell(median("waiting"), 1),
            cell(per_claim, 2),
            cell(median("rollbacks"), 0),
            cell(median("empty"), 0),
            doubles.unwrap_or_default(),
        ]);
    }
    table
}

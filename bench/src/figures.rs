//! What was measured: for each scenario, contender and metric one value per round.

use serde::Serialize;
use std::collections::BTreeMap;

/// Scenario, contender, metric.
type Key = (String, String, String);

/// All figures of a run.
#[derive(Debug, Default)]
pub struct Figures {
    /// By round: one in which a contender failed has none.
    values: BTreeMap<Key, BTreeMap<usize, f64>>,
    /// What is to be said about a contender: its version and setting, or why it is absent.
    pub notes: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Entry<'a> {
    scenario: &'a str,
    contender: &'a str,
    metric: &'a str,
    median: f64,
    rounds: Vec<f64>,
}

impl Figures {
    /// Adds a round's value.
    pub fn note(&mut self, round: usize, scenario: &str, contender: &str, metric: &str, value: f64) {
        self.values
            .entry((scenario.to_owned(), contender.to_owned(), metric.to_owned()))
            .or_default()
            .insert(round, value);
    }

    /// A round's value.
    pub fn of_round(&self, round: usize, scenario: &str, contender: &str, metric: &str) -> Option<f64> {
        self.rounds((scenario, contender, metric))?.get(&round).copied()
    }

    /// The median of the rounds.
    pub fn median(&self, scenario: &str, contender: &str, metric: &str) -> Option<f64> {
        let rounds = self.rounds((scenario, contender, metric))?;
        median(&rounds.values().copied().collect::<Vec<_>>())
    }

    fn rounds(&self, (scenario, contender, metric): (&str, &str, &str)) -> Option<&BTreeMap<usize, f64>> {
        self.values
            .get(&(scenario.to_owned(), contender.to_owned(), metric.to_owned()))
    }

    /// The median of the rounds' ratios of one figure to another.
    pub fn ratio(&self, above: (&str, &str, &str), below: (&str, &str, &str)) -> Option<f64> {
        let below = self.rounds(below)?;
        let of_round = |(round, above): (&usize, &f64)| Some(above / below.get(round)?);
        median(
            &self
                .rounds(above)?
                .iter()
                .filter_map(of_round)
                .collect::<Vec<_>>(),
        )
    }

    /// The contenders that have a figure in a scenario.
    pub fn contenders(&self, scenario: &str) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .values
            .keys()
            .filter(|key| key.0 == scenario)
            .map(|key| key.1.as_str())
            .collect();
        names.dedup();
        names
    }

    /// Everything, for `results.json`.
    pub fn entries(&self) -> serde_json::Value {
        let entries: Vec<Entry<'_>> = self
            .values
            .iter()
            .map(|((scenario, contender, metric), rounds)| {
                let rounds: Vec<f64> = rounds.values().copied().collect();
                Entry {
                    scenario,
                    contender,
                    metric,
                    median: median(&rounds).unwrap_or(f64::NAN),
                    rounds,
                }
            })
            .collect();
        serde_json::to_value(entries).unwrap_or_default()
    }
}

/// The middle value, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The value below which a share of the sorted values lies.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted
        .get(at.clamp(1, sorted.len().max(1)) - 1)
        .copied()
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 0.5), 50.0);
        assert_eq!(percentile(&hundred, 0.99), 99.0);
        assert_eq!(percentile(&hundred[..1], 0.99), 1.0);
    }

    #[test]
    fn a_ratio_is_taken_within_its_round() {
        let mut figures = Figures::default();
        for (round, a, b) in [(1, 1.0, 2.0), (3, 10.0, 10.0), (4, 3.0, 1.0)] {
            figures.note(round, "s", "a", "m", a);
            figures.note(round, "s", "b", "m", b);
        }
        // One of them failed in the second round.
        figures.note(2, "s", "a", "m", 100.0);
        assert_eq!(figures.ratio(("s", "a", "m"), ("s", "b", "m")), Some(1.0));
        assert_eq!(figures.of_round(2, "s", "b", "m"), None);
    }
}

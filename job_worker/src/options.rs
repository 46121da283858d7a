use std::time::Duration;

/// What a worker can be told; see the methods of [`Worker`](crate::Worker) for their meaning.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) queues: Vec<String>,
    pub(crate) threads: usize,
    pub(crate) poll: Option<Duration>,
    pub(crate) heartbeat: Duration,
    pub(crate) rescue_after: Duration,
    pub(crate) grace: Duration,
    pub(crate) prune_after: Option<Duration>,
    pub(crate) statement_timeout: Duration,
    pub(crate) pool_size: u32,
    pub(crate) pooler: bool,
    pub(crate) listen: bool,
    pub(crate) signals: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            queues: vec!["default".to_owned()],
            threads: 8,
            poll: None,
            heartbeat: Duration::from_secs(5),
            rescue_after: Duration::from_secs(30),
            grace: Duration::from_secs(25),
            prune_after: Some(Duration::from_secs(7 * 86_400)),
            statement_timeout: Duration::from_secs(30),
            pool_size: 0,
            pooler: false,
            listen: true,
            signals: true,
        }
    }
}

/// Longer than any worker lives, and short enough to be added to any time.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);
/// The longest limit for a statement that every database takes.
const LONGEST_STATEMENT: Duration = Duration::from_secs(86_400);
/// What would be a loop without a pause becomes one with a short pause.
const SHORTEST: Duration = Duration::from_millis(1);

impl Options {
    /// The same with durations that can be waited for: `Duration::MAX` is a way to say "for ever".
    pub(crate) fn bounded(self) -> Self {
        Options {
            poll: self.poll.map(|poll| poll.clamp(SHORTEST, LONGEST)),
            heartbeat: self.heartbeat.clamp(SHORTEST, LONGEST),
            rescue_after: self.rescue_after.min(LONGEST),
            grace: self.grace.min(LONGEST),
            prune_after: self.prune_after.map(|age| age.min(LONGEST)),
            statement_timeout: self.statement_timeout.clamp(SHORTEST, LONGEST_STATEMENT),
            ..self
        }
    }
}

/// A duration up to a quarter shorter or longer, so that many workers do not act at the same instant.
pub(crate) fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(0.75 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 41.
    #[test]
    fn pauses_differ_by_up_to_a_quarter() {
        let second = Duration::from_secs(1);
        let pauses: Vec<Duration> = (0..1_000).map(|_| jittered(second)).collect();
        assert!(
            pauses
                .iter()
                .all(|pause| (0.75..=1.25).contains(&pause.as_secs_f64()))
        );
        let (least, most) = (pauses.iter().min().unwrap(), pauses.iter().max().unwrap());
        assert!(*most - *least > second / 4);
    }
}

use std::time::{Duration, Instant};

/// When to look again after news. Senders of notifications send one in 10 ms at most, so that a job may come this much
/// later than the notification, and its commit may take its time.
const AFTER_NEWS: [Duration; 2] = [Duration::from_millis(15), Duration::from_millis(150)];

/// The looks that follow on news, for jobs that sent no notification of their own.
#[derive(Debug, Default)]
pub(crate) struct FollowUp {
    /// When the last news came.
    since: Option<Instant>,
    /// How many of the looks have been made since then.
    made: usize,
}

impl FollowUp {
    /// Begins anew.
    pub(crate) fn news(&mut self, now: Instant) {
        *self = FollowUp {
            since: Some(now),
            made: 0,
        };
    }

    /// Learns that a look that began then found nothing. One that came too early, since a job has ended, does not count.
    pub(crate) fn looked(&mut self, began: Instant) {
        while self.next().is_some_and(|next| began >= next) {
            self.made += 1;
        }
    }

    /// How long to wait for the next look, if one is to come.
    pub(crate) fn pause(&self, now: Instant) -> Option<Duration> {
        Some(self.next()?.saturating_duration_since(now))
    }

    fn next(&self) -> Option<Instant> {
        Some(self.since? + *AFTER_NEWS.get(self.made)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_looks_that_began_late_enough_count() {
        let (mut follow_up, news) = (FollowUp::default(), Instant::now());
        assert_eq!(follow_up.pause(news), None);
        follow_up.news(news);
        let [first, second] = AFTER_NEWS;
        // A job ends early, and the fetcher looks.
        follow_up.looked(news + first / 2);
        assert_eq!(follow_up.pause(news + first / 2), Some(first - first / 2));
        follow_up.looked(news + first);
        assert_eq!(follow_up.pause(news + first), Some(second - first));
        follow_up.news(news + first);
        assert_eq!(follow_up.pause(news + first), Some(first));
        // A look that was held up for long counts for all.
        follow_up.looked(news + first + second);
        assert_eq!(follow_up.pause(news + first + second), None);
    }
}

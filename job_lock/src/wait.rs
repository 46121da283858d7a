use std::time::{Duration, Instant};

/// How long to wait for a lock that somebody else holds.
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// # use diesel::Connection;
/// # let conn = &mut diesel::SqliteConnection::establish(":memory:").unwrap();
/// # job_lock::migrate(conn).unwrap();
/// use job_lock::{Lock, LockError, Wait};
/// use std::time::Duration;
///
/// Lock::create(conn, "nightly-report")?;
/// let wait = Wait::AtMost(Duration::from_millis(200));
/// Lock::on("nightly-report").wait(wait).synchronize(conn, |_| Ok::<_, LockError>(()))?;
/// # }
/// # Ok::<(), job_lock::LockError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// As long as it takes; on PostgreSQL and MySQL in the server's queue. A limit on waiting that the session was given
    /// (PostgreSQL's `lock_timeout` and `statement_timeout`, MariaDB's `max_statement_time`) ends it as `Busy`; the 50 seconds
    /// of MySQL's `innodb_lock_wait_timeout`, which every session has unasked, do not.
    #[default]
    Forever,
    /// At most so long, by a monotonic clock, in as fine a measure as the caller likes. Those who wait so stand in no
    /// queue: the calling thread looks every few milliseconds, with jitter, and sleeps in between.
    AtMost(Duration),
    /// Not at all.
    No,
}

/// One wait under way. It looks again and again, where PostgreSQL's `lock_timeout` and InnoDB's `innodb_lock_wait_timeout`
/// would wait in the queue, for two reasons: Diesel does not tell their error from others but by its message, which may be in
/// any language; and the one spoils a caller's transaction, the other knows whole seconds only.
pub(crate) struct Patience {
    wait: Wait,
    start: Instant,
}

impl Patience {
    pub(crate) fn new(wait: Wait) -> Self {
        Self {
            wait,
            start: Instant::now(),
        }
    }

    /// How much of the time is left; `None`: there is no end to it.
    pub(crate) fn left(&self) -> Option<Duration> {
        match self.wait {
            Wait::Forever => None,
            Wait::AtMost(limit) => Some(limit.saturating_sub(self.start.elapsed())),
            Wait::No => Some(Duration::ZERO),
        }
    }

    /// Sleeps until the next look is due; `false`, at once, when the time is over. The jitter keeps those who wait out
    /// of step; nobody's pauses grow, so that who has waited longest is not the one who looks least often.
    pub(crate) fn pause(&self, typical: Duration) -> bool {
        let pause = typical.mul_f64(0.5 + fastrand::f64());
        let pause = match self.left() {
            Some(Duration::ZERO) => return false,
            Some(left) => pause.min(left),
            None => pause,
        };
        std::thread::sleep(pause);
        true
    }
}

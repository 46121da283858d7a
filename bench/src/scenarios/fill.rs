//! Fills Gatun's tables from within the server: what an enqueue leaves behind, at a quarter of its time.

use crate::server::Place;
use anyhow::Result;
use diesel::connection::SimpleConnection;

/// What to fill with.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    pub jobs: usize,
    /// 0 for the queue `default`, else so many queues named `q0`, `q1`, …
    pub queues: usize,
    /// 6 KB of arguments that do not compress, rather than 100 bytes.
    pub large: bool,
    /// Due in a day, rather than now.
    pub later: bool,
}

impl Fill {
    /// Small jobs that are due.
    pub fn small(jobs: usize) -> Self {
        Fill {
            jobs,
            queues: 0,
            large: false,
            later: false,
        }
    }

    /// Enqueues them.
    pub fn put(self, place: &Place) -> Result<()> {
        let queue = match self.queues {
            0 => "'default'".to_owned(),
            number => format!("'q' || n % {number}"),
        };
        // Sixteen texts of hexadecimal digits, which the server's compression cannot shorten.
        let padding = match self.large {
            false => "SELECT 0 AS m, repeat('x', 86) AS padding",
            true => {
                "SELECT m, string_agg(md5((m * 1000 + part)::text), '') AS padding
                 FROM generate_series(0, 15) m, generate_series(1, 190) part GROUP BY m"
            }
        };
        let state = match self.later {
            false => {
                "INSERT INTO jobs_new (queue, priority, job_id, kind, attempts, uncharged)
                 SELECT queue, priority, id, kind, 0, 0 FROM j ORDER BY id"
            }
            true => {
                "INSERT INTO jobs_scheduled (run_at, job_id, attempts, uncharged)
                 SELECT now() + interval '1 day' + id * interval '1 ms', id, 0, 0 FROM j"
            }
        };
        let variants = if self.large { 16 } else { 1 };
        place.connect()?.batch_execute(&format!(
            "WITH p AS MATERIALIZED ({padding}),
             j AS (INSERT INTO jobs (kind, queue, priority, max_attempts, args)
                 SELECT 'nothing', {queue}, 0, 12, json_build_object('padding', padding)
                 FROM generate_series(1, {jobs}) n JOIN p ON m = n % {variants} ORDER BY n
                 RETURNING id, queue, priority, kind)
             {state}",
            jobs = self.jobs
        ))?;
        // What autovacuum does within a minute: it should not do it in the middle of one measurement and not of another.
        place.connect()?.batch_execute("VACUUM (ANALYZE)")?;
        Ok(())
    }
}

use std::time::Duration;

/// How long the items that a thread takes at once should keep it busy: long enough to hide the taking.
const CHUNK_NANOS: u64 = 50_000;

/// The most items that a thread takes at once.
const LONGEST_CHUNK: u64 = 512;

/// How long the queue should keep each thread busy, in chunks: enough to hide that the feeder must be woken.
const CHUNKS_AHEAD: usize = 4;

/// How quick the items are, learned while they are done.
#[derive(Debug)]
pub(super) struct Pace {
    nanos_per_item: u64,
}

impl Pace {
    /// Until it is known better, items are taken to be slow.
    pub(super) fn new() -> Self {
        Pace {
            nanos_per_item: CHUNK_NANOS,
        }
    }

    /// Moves the average an eighth of the way. A pause of seconds counts as some chunks, so that it is soon forgotten.
    pub(super) fn learn(&mut self, items: usize, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) / items.max(1) as u64;
        self.nanos_per_item = (self.nanos_per_item * 7 + nanos.min(CHUNK_NANOS * 8)) / 8;
    }

    /// How many items a thread takes at once: one where they are slow.
    pub(super) fn chunk(&self) -> usize {
        // At most 512, so that it is a usize anywhere.
        (CHUNK_NANOS / self.nanos_per_item.max(1)).clamp(1, LONGEST_CHUNK) as usize
    }

    /// How long a queue that nobody set is: as many items as threads, more where the items are quick.
    pub(super) fn queue(&self, threads: usize) -> usize {
        match self.chunk() {
            1 => threads,
            chunk => threads.saturating_mul(chunk * CHUNKS_AHEAD),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_follows_the_items() {
        let mut pace = Pace::new();
        assert_eq!((pace.chunk(), pace.queue(4)), (1, 4));
        for _ in 0..100 {
            pace.learn(10, Duration::from_nanos(500));
        }
        assert_eq!((pace.chunk(), pace.queue(4)), (512, 4 * 512 * CHUNKS_AHEAD));
        pace.learn(1, Duration::from_secs(3600));
        assert_eq!((pace.chunk(), pace.queue(4)), (1, 4));
    }
}

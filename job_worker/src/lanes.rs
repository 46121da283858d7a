use std::time::{Duration, Instant};

/// How often a cursor goes back to the start while there is enough to do: ids become visible out of order, and jobs come
/// back with old ones. While there is nothing else to do, each look starts there.
const RESCAN: Duration = Duration::from_secs(1);

/// How often to look which lanes have jobs, while there are jobs in one and others came back short.
const LOOK_FOR_LANES: Duration = Duration::from_millis(50);

/// A look that walks over much, such as a heap of jobs of an unknown kind, or of dead rows, may take a twentieth of the time
/// at most, but it is not put off for longer than that: it may have been the database that was away.
const LOOK_SHARE: u32 = 20;
const LOOK_AT_LAST: Duration = Duration::from_secs(30);

/// A queue and a priority, with the id up to which its jobs were seen.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) queue: String,
    pub(crate) priority: i32,
    pub(crate) cursor: i64,
    /// Whether it gave fewer jobs than it might, and is left alone until lanes are looked for again.
    pub(crate) short: bool,
}

/// The lanes that had jobs when they were last looked for, and when to look for them again.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// The highest id that there was when they were looked for.
    seen: i64,
    /// When they were last looked for, and how long that took.
    found: Instant,
    finding_cost: Duration,
    /// When the cursors last went back to the start; `None` to do so at the next look.
    rescanned: Option<Instant>,
    /// How long a look from the start took that found nothing.
    rescan_cost: Duration,
    /// Whether the last look found nothing.
    idle: bool,
}

impl Default for Lanes {
    fn default() -> Self {
        Lanes {
            lanes: Vec::new(),
            seen: 0,
            found: Instant::now(),
            finding_cost: Duration::ZERO,
            rescanned: None,
            rescan_cost: Duration::ZERO,
            idle: true,
        }
    }
}

impl Lanes {
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// The lane at a place, the most important first.
    pub(crate) fn at(&self, place: usize) -> &Lane {
        &self.lanes[place]
    }

    /// Whether the last look found nothing, and there was no lane with jobs.
    pub(crate) fn are_empty(&self) -> bool {
        self.idle && self.lanes.is_empty()
    }

    /// Lets the next look start from the start.
    pub(crate) fn rescan(&mut self) {
        self.rescanned = None;
    }

    pub(crate) fn rescan_is_due(&self) -> bool {
        let pause = (self.rescan_cost * LOOK_SHARE).min(LOOK_AT_LAST);
        let pause = if self.idle { pause } else { pause.max(RESCAN) };
        self.rescanned.is_none_or(|at| at.elapsed() >= pause)
    }

    /// Whether to look which lanes have jobs. One statement finds it for all, where a claim finds it for one: with many lanes,
    /// those that are empty are not to be asked one by one.
    pub(crate) fn are_due(&self) -> bool {
        let pause = (self.finding_cost * LOOK_SHARE).clamp(LOOK_FOR_LANES, LOOK_AT_LAST);
        self.idle || self.found.elapsed() >= pause && self.lanes.iter().any(|lane| lane.short)
    }

    /// Takes the lanes that were found by a look that took so long. Their cursors stay, or go back to the start.
    pub(crate) fn found(&mut self, found: Vec<(String, i32)>, seen: i64, rescan: bool, took: Duration) {
        let old = std::mem::take(&mut self.lanes);
        self.seen = seen;
        self.lanes = found
            .into_iter()
            .map(|(queue, priority)| {
                let known = old
                    .iter()
                    .find(|lane| lane.queue == queue && lane.priority == priority);
                Lane {
                    cursor: known.filter(|_| !rescan).map_or(0, |lane| lane.cursor),
                    queue,
                    priority,
                    short: false,
                }
            })
            .collect();
        (self.found, self.finding_cost) = (Instant::now(), took);
    }

    /// A claim gave jobs up to this id.
    pub(crate) fn advance(&mut self, place: usize, id: i64) {
        let lane = &mut self.lanes[place];
        lane.cursor = lane.cursor.max(id);
    }

    /// A claim gave fewer jobs than it might: the lane was looked through up to its end, and what stands in it so far is not
    /// for this worker.
    pub(crate) fn came_short(&mut self, place: usize) {
        self.advance(place, self.seen);
        self.lanes[place].short = true;
    }

    /// A look at the lanes that began then has ended.
    pub(crate) fn looked(&mut self, rescan: bool, began: Instant, found_nothing: bool) {
        self.idle = found_nothing;
        if rescan {
            self.rescanned = Some(Instant::now());
            if found_nothing {
                self.rescan_cost = began.elapsed();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(lanes: &mut Lanes, rescan: bool) {
        let found = vec![("a".to_owned(), 0), ("b".to_owned(), 0)];
        lanes.found(found, 7, rescan, Duration::ZERO);
    }

    #[test]
    fn cursors_stay_until_a_rescan() {
        let mut lanes = Lanes::default();
        two(&mut lanes, true);
        lanes.advance(0, 3);
        lanes.came_short(1);
        two(&mut lanes, false);
        assert_eq!((lanes.at(0).cursor, lanes.at(1).cursor), (3, 7));
        assert!(!lanes.at(1).short);
        two(&mut lanes, true);
        assert_eq!((lanes.at(0).cursor, lanes.at(1).cursor), (0, 0));
    }

    #[test]
    fn lanes_are_looked_for_while_there_is_nothing_and_when_one_came_short() {
        let mut lanes = Lanes::default();
        assert!(lanes.are_due() && lanes.rescan_is_due());
        two(&mut lanes, true);
        lanes.looked(true, Instant::now(), false);
        assert!(!lanes.are_due() && !lanes.rescan_is_due());
        lanes.came_short(0);
        lanes.found = Instant::now().checked_sub(LOOK_FOR_LANES).unwrap();
        assert!(lanes.are_due());
        // Looking is dear: once in twenty times as long.
        lanes.finding_cost = LOOK_FOR_LANES;
        assert!(!lanes.are_due());
        lanes.looked(false, Instant::now(), true);
        assert!(lanes.are_due());
    }
}

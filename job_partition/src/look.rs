use crate::hand::Hand;
use crate::parts::jittered;
use crate::plan::PLACES;
use crate::run::{Db, Stop};
use crate::settle::{ATTEMPTS, FIRST_PAUSE};
use crate::sql::{Numbered, Sql};
use crate::{KeyValue, PartitionBackend, PartitionConnection};
use diesel::deserialize::QueryableByName;
use diesel::r2d2::ManageConnection;
use job_db::{Database, Fault};

/// How many rows beyond the failed ones a look over the whole table gives, to know the partitions that they are in.
const STRAYS: usize = 1000;

impl<M, T, F> Hand<'_, M, T, F>
where
    M: ManageConnection,
    M::Connection: PartitionConnection,
    T: QueryableByName<Db<M>> + 'static,
    F: Fn(&[T], &mut M::Connection) -> anyhow::Result<()>,
{
    /// Reads in a fresh snapshot, as often as it takes; `None` where the run ends meanwhile.
    pub(crate) fn read(&mut self, sql: impl Fn() -> Sql) -> Result<Option<Vec<Numbered>>, Stop> {
        let shared = self.shared;
        let mut tries = 0;
        loop {
            let Some(conn) = self.session.connect(shared)? else {
                return Ok(None);
            };
            let error = match Db::<M>::read(conn, |conn| Db::<M>::numbered(conn, sql())) {
                Ok(found) => return Ok(Some(found)),
                Err(error) => error,
            };
            tries += 1;
            match Db::<M>::fault(&error) {
                Fault::Other => return Err(Stop::Error(error.into())),
                _ if tries > ATTEMPTS => return Err(Stop::Error(error.into())),
                Fault::Disconnected => self.session.discard(),
                Fault::Contended => {}
            }
            shared.tally.retried();
            log::warn!("gatun partition: {error}; trying again");
            if !shared.sleep(jittered(FIRST_PAUSE * 4)) {
                return Ok(None);
            }
        }
    }

    /// Looks over the whole table, and gives the partitions that have rows pending which did not fail.
    pub(crate) fn look(&mut self) -> Result<Vec<usize>, Stop> {
        let shared = self.shared;
        let limit = shared.tally.failures_count() + STRAYS;
        let Some(found) = self.read(|| shared.plan.look(limit))? else {
            return Ok(vec![0]);
        };
        let (mut strays, mut is_placed) = (Vec::new(), true);
        for (key, number) in self.unknown(found)? {
            match shared.plan.part_of(&key, number) {
                Some(part) => strays.push(part),
                None => is_placed = false,
            }
        }
        if !is_placed {
            strays = self.look_by_parts(limit)?;
        }
        strays.sort_unstable();
        strays.dedup();
        Ok(strays)
    }

    /// The partitions that have rows pending, where there are any.
    fn look_by_parts(&mut self, limit: usize) -> Result<Vec<usize>, Stop> {
        let shared = self.shared;
        let count = shared.plan.slices.count();
        let mut strays = Vec::new();
        for first in (0..count).step_by(PLACES) {
            let parts = first..count.min(first + PLACES);
            let Some(found) = self.read(|| shared.plan.look_among(parts.clone(), limit))? else {
                break;
            };
            let found = self.unknown(found)?;
            strays.extend(
                found
                    .iter()
                    .filter_map(|(_, number)| usize::try_from(*number).ok()),
            );
        }
        // Where others have done them meanwhile, nothing is proved yet: any partition leads to another look.
        if strays.is_empty() {
            strays.push(0);
        }
        Ok(strays)
    }

    /// The rows that are not known to fail.
    fn unknown(&self, found: Vec<Numbered>) -> Result<Vec<(KeyValue, i64)>, Stop> {
        let mut unknown = Vec::new();
        for row in found {
            let key = self.shared.plan.table.parse(&row.key).map_err(Stop::Error)?;
            if !self.shared.tally.has_failed(&key) {
                unknown.push((key, row.number));
            }
        }
        Ok(unknown)
    }
}

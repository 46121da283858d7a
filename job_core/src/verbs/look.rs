//! Looks at jobs.

use super::{JobBackend, JobConnection};
use crate::again::Looks;
use crate::job::JobFilter;
use crate::{Counts, Failure, Job, JobError};

verb! {
    pub(crate) fn find<C: JobConnection>(conn: &mut C, id: i64) -> Result<Job, JobError> {
        let mut looks = Looks::default();
        loop {
            let found = wait!(C::Db::find(conn, id));
            if !looks.again(&found) {
                return found?.ok_or(JobError::NotFound(id));
            }
        }
    }
}

verb! {
    /// Finds a job that a snapshot may not show.
    pub(super) fn latest<C: JobConnection>(conn: &mut C, id: i64) -> Result<Option<Job>, JobError> {
        let mut looks = Looks::default();
        loop {
            let found = wait!(C::Db::find_latest(conn, id));
            if !looks.again(&found) {
                return found;
            }
        }
    }
}

verb! {
    pub(crate) fn list<C: JobConnection>(conn: &mut C, filter: &JobFilter) -> Result<Vec<Job>, JobError> {
        let mut looks = Looks::default();
        loop {
            let found = wait!(C::Db::list(conn, filter));
            if !looks.again(&found) {
                return found;
            }
        }
    }
}

verb! {
    pub(crate) fn counts<C: JobConnection>(conn: &mut C) -> Result<Counts, JobError> {
        Ok(Counts::of_rows(wait!(C::Db::count(conn))?))
    }
}

verb! {
    pub(crate) fn counts_in<C: JobConnection>(conn: &mut C, queue: &str) -> Result<Counts, JobError> {
        Ok(Counts::of_rows(wait!(C::Db::count_in(conn, queue))?))
    }
}

verb! {
    pub(crate) fn failures<C: JobConnection>(conn: &mut C, id: i64) -> Result<Vec<Failure>, JobError> {
        Ok(wait!(C::Db::failures(conn, id))?)
    }
}

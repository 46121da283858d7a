use super::{JobBackend, JobConnection};
use crate::notify;
use diesel::result::QueryResult;

verb! {
    /// Wakes the workers, where the database can and the last time was long enough ago.
    pub(crate) fn wake<C: JobConnection>(conn: &mut C) -> QueryResult<()> {
        if C::Db::CAN_NOTIFY && notify::due() {
            wait!(C::Db::notify(conn))?;
        }
        Ok(())
    }
}

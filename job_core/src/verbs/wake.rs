use super::{JobBackend, JobConnection};
use crate::notify;

verb! {
    /// Wakes the workers, where the database can and the last time was long enough ago.
    pub(crate) fn wake<C: JobConnection>(conn: &mut C) {
        if C::Db::CAN_NOTIFY && notify::due() {
            // A hint that fails has no consequence for what was just recorded.
            if let Err(error) = wait!(C::Db::notify(conn)) {
                log::debug!("gatun: could not notify: {error}");
            }
        }
    }
}

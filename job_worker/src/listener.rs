use crate::options::jittered;
use crate::stop::Level;
use crate::team::Team;
use diesel::r2d2::R2D2Connection;
use job_core::{JobConnection, notify};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often to look whether a notification has come; a look costs two microseconds and no round trip.
const LOOK: Duration = Duration::from_millis(3);

/// How long to wait before listening again on a new connection.
const RECONNECT: Duration = Duration::from_secs(2);

/// Wakes the fetcher when the database notifies, until `end`. Ends at once where the database or the connection cannot.
pub(crate) fn listen<C, X>(team: &Team<C, X>)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let mut session = team.session("listener");
    let mut generation = 0;
    while team.stop.is_running() {
        let heard = session.run(|conn| Ok(notify::received(conn)?));
        if session.generation() != generation {
            match session.run(|conn| Ok(notify::listen(conn)?)) {
                Some(Ok(true)) => {
                    generation = session.generation();
                    team.listening.store(true, Ordering::Relaxed);
                    // What was enqueued before we listened gave no notification that we could hear.
                    team.wake_for_news();
                    continue;
                }
                Some(Ok(false)) | None => return,
                Some(Err(error)) => {
                    log::warn!("gatun listener: {error}; polling goes on");
                    team.listening.store(false, Ordering::Relaxed);
                    team.stop.wait_for(Level::Stopping, jittered(RECONNECT));
                    continue;
                }
            }
        }
        match heard {
            Some(Ok(true)) => team.wake_for_news(),
            Some(Ok(false)) => {
                team.stop.wait_for(Level::Stopping, LOOK);
            }
            _ => {
                team.listening.store(false, Ordering::Relaxed);
                team.stop.wait_for(Level::Stopping, jittered(RECONNECT));
            }
        }
    }
}

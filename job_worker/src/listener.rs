use crate::options::jittered;
use crate::session::Session;
use crate::socket::{Socket, Trust};
use crate::stop::Level;
use crate::team::Team;
use diesel::r2d2::R2D2Connection;
use job_core::{JobConnection, notify};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often to look whether a notification has come, where the socket cannot be waited on; a look costs two microseconds
/// and no round trip.
const LOOK: Duration = Duration::from_millis(3);

/// How long to wait on the socket before looking whether the worker stops.
const WAIT: Duration = Duration::from_millis(100);

/// How long to wait before listening again on a new connection, at first and at most.
const RECONNECT: Duration = Duration::from_millis(50);
const RECONNECT_AT_MOST: Duration = Duration::from_secs(2);

/// Wakes the fetcher when the database notifies, until `end`. Ends at once where the database or the connection cannot.
pub(crate) fn listen<C, X>(team: &Team<C, X>)
where
    C: JobConnection + R2D2Connection + 'static,
    X: Send + Sync + 'static,
{
    let mut session = team.session("listener", Level::Stopping);
    let mut generation = 0;
    let mut ear = Ear::default();
    let mut pause = RECONNECT;
    while team.stop.is_running() {
        let heard = session.once(|conn| Ok(notify::received(conn)?));
        if heard.is_ok() && session.generation() != generation {
            // Until it listens, polling is all there is.
            team.listening.store(false, Ordering::Relaxed);
            match session.run(|conn| Ok(notify::listen(conn)?)) {
                Some(Ok(true)) => {
                    pause = RECONNECT;
                    generation = session.generation();
                    team.listening.store(true, Ordering::Relaxed);
                    // What was enqueued before we listened gave no notification that we could hear.
                    team.wake_for_news();
                    ear = Ear::find(&mut session);
                    continue;
                }
                Some(Ok(false)) | None => return,
                Some(Err(error)) => {
                    log::warn!("gatun listener: {error}; polling goes on");
                    team.stop.wait_for(Level::Stopping, jittered(RECONNECT_AT_MOST));
                    continue;
                }
            }
        }
        match heard {
            Ok(heard) => {
                ear.learn(heard);
                if heard {
                    team.wake_for_news();
                } else {
                    ear.wait(team);
                }
            }
            Err(error) => {
                log::warn!("gatun listener: {error}; polling goes on");
                team.listening.store(false, Ordering::Relaxed);
                team.stop.wait_for(Level::Stopping, jittered(pause));
                pause = (pause * 2).min(RECONNECT_AT_MOST);
            }
        }
    }
}

/// How to wait for the next notification on one connection.
#[derive(Default)]
struct Ear {
    socket: Option<Socket>,
    trust: Trust,
    /// Whether the socket announced something, since the last look.
    announced: Option<bool>,
}

impl Ear {
    fn find<C>(session: &mut Session<C>) -> Ear
    where
        C: JobConnection + R2D2Connection + 'static,
    {
        // After an error the session takes another connection, and this is called again.
        let socket = Socket::find(|work| {
            let called = session.once(|conn| Ok(notify::while_unread(conn, work)?));
            called.unwrap_or(false)
        });
        match socket {
            Some(_) => log::debug!("gatun listener: waits on the connection's socket"),
            None => {
                log::debug!(
                    "gatun listener: the socket was not found; the connection is looked at each {LOOK:?}"
                );
            }
        }
        Ear {
            socket,
            ..Ear::default()
        }
    }

    /// Learns what was heard after the last wait.
    fn learn(&mut self, heard: bool) {
        if let Some(announced) = self.announced.take()
            && !self.trust.learn(announced, heard)
        {
            log::debug!(
                "gatun listener: the socket was the wrong one; the connection is looked at each {LOOK:?}"
            );
            self.socket = None;
        }
    }

    fn wait<C: R2D2Connection + 'static, X>(&mut self, team: &Team<C, X>) {
        let Some(socket) = &mut self.socket else {
            team.stop.wait_for(Level::Stopping, LOOK);
            return;
        };
        match socket.wait(WAIT) {
            Ok(announced) => self.announced = Some(announced),
            Err(error) => {
                log::debug!("gatun listener: {error}; the connection is looked at each {LOOK:?}");
                self.socket = None;
            }
        }
    }
}

//! Processes that are suspended in the middle of what they do.

use super::faults::BRIEF;
use super::leases::{LONG, Manager, manager};
use super::support::{db_with, note, notes};
use super::{Conn, Db, on};
use diesel::Connection;
use diesel::connection::{InstrumentationEvent, SimpleConnection};
use job_lock::{Connect, Lock, LockError, Wait};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// When another must have come through at last.
const LIMIT: Duration = Duration::from_secs(20);

/// Connections that stand still for good once they have executed the statement of which `stands_still` says so: as a
/// process does that is suspended in the middle.
#[derive(Clone)]
pub(crate) struct Suspended {
    manager: Manager,
    setting: &'static str,
    stands_still: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    resumed: Arc<Mutex<Receiver<()>>>,
}

impl Suspended {
    pub(crate) fn new(
        db: &Db,
        setting: &'static str,
        stands_still: impl Fn(&str) -> bool + Send + Sync + 'static,
        resumed: Receiver<()>,
    ) -> Self {
        Self {
            manager: manager(db),
            setting,
            stands_still: Arc::new(stands_still),
            resumed: Arc::new(Mutex::new(resumed)),
        }
    }
}

impl Connect for Suspended {
    type Conn = Conn;

    fn connect(&self) -> Result<Conn, LockError> {
        let mut conn = self.manager.connect()?;
        conn.batch_execute(self.setting)?;
        let (stands_still, resumed) = (self.stands_still.clone(), self.resumed.clone());
        conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if let InstrumentationEvent::FinishQuery { query, .. } = event
                && stands_still(&query.to_string())
            {
                let _ = resumed.lock().unwrap().recv();
            }
        });
        Ok(conn)
    }
}

/// Does `step` again and again, on connections that stand still after its first statement, after its second one, and so
/// on, but not once it has set the flag; and each time `beside`, which gets the statement's number, while they stand.
pub(crate) fn after_each_statement<T: Send>(
    db: &Db,
    setting: &'static str,
    step: impl Fn(&Suspended, &AtomicBool) -> T + Sync,
    mut beside: impl FnMut(usize) -> Result<(), String>,
) {
    for last in 1.. {
        let is_done = Arc::new(AtomicBool::new(false));
        let (stood, is_standing) = channel();
        let (resume, resumed) = channel::<()>();
        let (executed, is_done_too) = (AtomicUsize::new(0), is_done.clone());
        let stood = Mutex::new(stood);
        let stands_still = move |_: &str| {
            let is_last = executed.fetch_add(1, Ordering::SeqCst) + 1 == last;
            let stands = is_last && !is_done_too.load(Ordering::SeqCst);
            if stands {
                stood.lock().unwrap().send(()).unwrap();
            }
            stands
        };
        let suspended = Suspended::new(db, setting, stands_still, resumed);
        let result = thread::scope(|scope| {
            let (step, is_done) = (&step, &is_done);
            // It may have lost its session, or what it had.
            scope.spawn(move || drop(step(&suspended, is_done)));
            let result = is_standing.recv().is_ok().then(|| beside(last));
            drop(resume);
            result
        });
        match result {
            Some(Ok(())) => {}
            Some(Err(why)) => panic!("{setting}: {why} beside one that stands still after statement {last}"),
            None => {
                assert!(last > 1, "{setting}: no statement was executed");
                break;
            }
        }
    }
}

fn told<E: std::fmt::Debug>(error: E) -> String {
    format!("{error:?}")
}

#[test]
fn a_candidate_that_is_suspended_in_the_middle_of_taking_a_lease_keeps_nobody_out_for_ever() {
    for setting in on::SESSIONS {
        let db = db_with(&["a"]);
        let take = |suspended: &Suspended, has_it: &AtomicBool| {
            Lock::lease(suspended, "a", BRIEF, |_| {
                has_it.store(true, Ordering::SeqCst);
                Ok::<_, LockError>(())
            })
        };
        after_each_statement(&db, setting, take, |_| {
            Lock::lease_on("a", LONG)
                .wait(Wait::AtMost(LIMIT))
                .hold(&manager(&db), |_| Ok::<_, LockError>(()))
                .map_err(told)
        });
    }
}

#[test]
fn one_that_is_suspended_in_the_middle_of_making_a_lock_keeps_nobody_from_it_for_ever() {
    for setting in on::SESSIONS {
        let db = db_with(&[]);
        let rounds = AtomicUsize::new(0);
        let name = |round: usize| format!("lock {round}");
        let make = |suspended: &Suspended, _: &AtomicBool| {
            let round = rounds.fetch_add(1, Ordering::SeqCst) + 1;
            let mut conn = suspended.connect()?;
            Lock::create(&mut conn, &name(round))
        };
        after_each_statement(&db, setting, make, |round| {
            let (send, made) = channel();
            let mut conn = db.connect();
            let name = name(round);
            thread::spawn(move || send.send(Lock::create(&mut conn, &name)));
            match made.recv_timeout(LIMIT) {
                Ok(result) => result.map(drop).map_err(told),
                Err(error) => Err(told(error)),
            }
        });
    }
}

#[test]
fn a_holder_that_is_suspended_in_the_middle_of_a_renewal_keeps_nobody_out_for_ever() {
    for setting in on::SESSIONS {
        let db = db_with(&["a"]);
        let stands_still = Arc::new(AtomicBool::new(false));
        let (resume, resumed) = channel::<()>();
        let renewal = {
            let stands_still = stands_still.clone();
            move |query: &str| {
                query.contains("UPDATE locks SET expires_at") && stands_still.swap(false, Ordering::SeqCst)
            }
        };
        let suspended = Suspended::new(&db, setting, renewal, resumed);
        let result = Lock::lease(&suspended, "a", BRIEF, |lease| {
            stands_still.store(true, Ordering::SeqCst);
            job_test::eventually("its renewal stands still", || {
                !stands_still.load(Ordering::SeqCst)
            });
            Lock::lease_on("a", LONG)
                .wait(Wait::AtMost(Duration::from_secs(40)))
                .hold(&manager(&db), |next| {
                    assert!(next.token() > lease.token() && lease.is_lost());
                    next.transaction(|conn| Ok::<_, LockError>(note(conn, 1)?))
                })?;
            drop(resume);
            Ok::<_, LockError>(())
        });
        assert!(matches!(result, Err(LockError::LeaseLost(_))), "{result:?}");
        assert_eq!(notes(&db), [1]);
    }
}

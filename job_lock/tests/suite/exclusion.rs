use super::on;
use super::support::{db_with, increment};
use diesel::connection::SimpleConnection;
use job_lock::{Lock, LockError, Wait};
use std::thread;
use std::time::Duration;

const THREADS: usize = 8;
const ROUNDS: usize = 50;

fn all_increments_are_there(wait: Wait) {
    for setting in on::SETTINGS {
        let db = db_with(&["a"]);
        let conns: Vec<_> = (0..THREADS)
            .map(|_| {
                let mut conn = db.connect();
                conn.batch_execute(setting).unwrap();
                conn
            })
            .collect();
        thread::scope(|scope| {
            for mut conn in conns {
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        Lock::on("a")
                            .wait(wait)
                            .synchronize(&mut conn, |locked| {
                                increment(locked.conn());
                                Ok::<_, LockError>(())
                            })
                            .unwrap();
                    }
                });
            }
        });
        let all = (THREADS * ROUNDS) as i64;
        assert_eq!(db.count("SELECT n FROM counter"), all, "{setting}");
        assert_eq!(db.count("SELECT token FROM locks"), all, "{setting}");
    }
}

#[test]
fn eight_threads_lose_no_increment_whatever_the_sessions_isolation() {
    all_increments_are_there(Wait::Forever);
}

#[test]
fn eight_threads_that_poll_lose_no_increment() {
    all_increments_are_there(Wait::AtMost(Duration::from_secs(600)));
}

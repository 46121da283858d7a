use super::on;
use super::support::{db_with, note, notes};
use diesel::connection::SimpleConnection;
use job_lock::{Lock, LockError};
use std::sync::mpsc::channel;
use std::thread;

#[test]
fn an_error_rolls_back_what_the_closure_wrote() {
    let db = db_with(&["a"]);
    let conn = &mut db.connect();
    let result = Lock::synchronize(conn, "a", |locked| {
        note(locked.conn(), 1)?;
        Err::<(), _>(anyhow::anyhow!("no"))
    });
    assert_eq!(result.unwrap_err().to_string(), "no");
    assert!(notes(&db).is_empty());
    Lock::synchronize(conn, "a", |locked| note(locked.conn(), 2)).unwrap();
    assert_eq!(notes(&db), [2]);
}

#[test]
fn the_closures_error_may_be_of_any_kind_and_the_locks_is_found_in_it() {
    let db = db_with(&["a"]);
    let conn = &mut db.connect();

    let result: anyhow::Result<()> = (|| {
        Lock::synchronize(conn, "missing", |locked| anyhow::Ok(note(locked.conn(), 1)?))?;
        Ok(())
    })();
    assert!(matches!(
        result.unwrap_err().downcast_ref(),
        Some(LockError::Unknown(_))
    ));

    let result = Lock::synchronize(conn, "a", |locked| {
        locked.conn().batch_execute("SELECT nonsense FROM nowhere")
    });
    assert!(matches!(result, Err(diesel::result::Error::DatabaseError(..))));

    #[derive(Debug)]
    enum Mine {
        Lock(LockError),
        Other,
    }
    impl From<LockError> for Mine {
        fn from(error: LockError) -> Self {
            Self::Lock(error)
        }
    }
    let result = Lock::synchronize(conn, "missing", |_| Err::<(), _>(Mine::Other));
    assert!(matches!(result, Err(Mine::Lock(LockError::Unknown(_)))));
    let result = Lock::synchronize(conn, "a", |_| Err::<(), _>(Mine::Other));
    assert!(matches!(result, Err(Mine::Other)));
}

#[test]
fn who_loses_the_session_loses_the_writes_and_the_next_holder_proceeds() {
    // SQLite has no sessions that somebody else could end.
    let Some(kill) = on::KILL else { return };
    let db = db_with(&["a"]);
    let (held, is_held) = channel();
    let (kill_it, is_killed) = channel::<()>();
    thread::scope(|scope| {
        let db = &db;
        let first = scope.spawn(move || {
            Lock::synchronize(&mut db.connect(), "a", |locked| {
                note(locked.conn(), 1)?;
                held.send(on::session_id(locked.conn())).unwrap();
                let _ = is_killed.recv();
                note(locked.conn(), 2)
            })
        });
        let id: i64 = is_held.recv().unwrap();
        let next = scope.spawn(move || {
            Lock::synchronize(&mut db.connect(), "a", |locked| {
                note(locked.conn(), 3)?;
                anyhow::Ok(locked.token())
            })
        });
        db.execute(&kill.replace("ID", &id.to_string()));
        // The next one is done before the first one knows.
        assert_eq!(next.join().unwrap().unwrap(), 1);
        drop(kill_it);
        assert!(first.join().unwrap().is_err());
    });
    assert_eq!(notes(&db), [3]);
}

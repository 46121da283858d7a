mod lease;
mod list;
mod slot;

use crate::LockRow;
use crate::backend::{Clash, LockBackend, RowLock, Taken};
use diesel::connection::{
    LoadConnection, TransactionDepthChange, TransactionManager, TransactionManagerStatus,
};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use job_db::{Database, Fault, roll_back_to, transaction_depth};
use std::time::Duration;

/// The owner as the session that reads it knows itself; of another session's the number stays.
const OWNER: &str = "regexp_replace(owner, '/' || pg_backend_pid() || '$', '')";

/// The row is under no lease that goes on.
const FREE: &str = "(expires_at IS NULL OR expires_at <= clock_timestamp())";

job_db::statement! {
    // The session's number tells a holder from others in its process, where its closure has committed the row by hand.
    // clock_timestamp(), since now() is from before the wait. After a wait PostgreSQL computes the row anew.
    struct Advance<'a> on Pg { name: &'a str => Text, owner: &'a str => Text } -> BigInt;
    "UPDATE locks SET token = token + 1, owner = " owner " || '/' || pg_backend_pid(), acquired_at = clock_timestamp(), expires_at = NULL
     WHERE name = " name " AND " {FREE} " RETURNING token"
}

job_db::statement! {
    // Who waits, waits in the queue of an advisory lock, which lives as long as the transaction. In the row's own queue each
    // commit would wake all of them: each finds a newer version of the row and queues up at that one. It is the row that
    // excludes, also those who do not queue here. The table is a part of the lock's number, for schemas with the same names.
    //
    // At another level it finds nothing: there a wait would end with a serialization failure, and the place would be lost. To
    // set the level first would be a statement in vain for nearly all sessions.
    struct Take<'a> on Pg { name: &'a str => Text, owner: &'a str => Text, place: i64 => BigInt } -> (BigInt, BigInt);
    "UPDATE locks SET token = token + 1, owner = " owner " || '/' || pg_backend_pid(), acquired_at = clock_timestamp(), expires_at = NULL
     WHERE name = " name " AND CASE WHEN " {FREE} " AND current_setting('transaction_isolation') = 'read committed'
         THEN pg_advisory_xact_lock(" place " # (tableoid::bigint << 32)) IS NOT NULL ELSE false END
     RETURNING token, txid_current()"
}

job_db::statement! {
    struct IsReadCommitted on Pg {} -> Bool;
    "SELECT current_setting('transaction_isolation') = 'read committed'"
}

job_db::statement! {
    struct LockRowWaiting<'a> on Pg { name: &'a str => Text } -> (BigInt, Nullable<Text>, Bool);
    "SELECT token, " {OWNER} ", " {FREE} " FROM locks WHERE name = " name " FOR UPDATE"
}

job_db::statement! {
    struct LockRowAtOnce<'a> on Pg { name: &'a str => Text } -> (BigInt, Nullable<Text>, Bool);
    "SELECT token, " {OWNER} ", " {FREE} " FROM locks WHERE name = " name " FOR UPDATE SKIP LOCKED"
}

job_db::statement! {
    struct Seen<'a> on Pg { name: &'a str => Text } -> (BigInt, Text);
    "SELECT token, " {OWNER} " FROM locks WHERE name = " name " AND owner IS NOT NULL"
}

job_db::statement! {
    struct Exists<'a> on Pg { name: &'a str => Text } -> Bool;
    "SELECT EXISTS (SELECT 1 FROM locks WHERE name = " name ")"
}

job_db::statement! {
    struct Create<'a> on Pg { name: &'a str => Text } -> ();
    "INSERT INTO locks (name) VALUES (" name ") ON CONFLICT (name) DO NOTHING"
}

impl LockBackend for Pg {
    const PAUSE: Duration = Duration::from_millis(10);
    const HAS_QUEUE: bool = true;

    fn begin<C>(conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        C::TransactionManager::begin_transaction(conn)?;
        conn.batch_execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    }

    fn begin_to_take<C>(conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        C::TransactionManager::begin_transaction(conn)
    }

    fn take<C>(conn: &mut C, name: &str, owner: &str, is_first: bool) -> QueryResult<Option<Taken>>
    where
        C: LoadConnection<Backend = Self>,
    {
        let place = job_db::fnv1a(name.bytes()) as i64;
        let take = |conn: &mut C| -> QueryResult<Option<(i64, i64)>> {
            Take { name, owner, place }.get_result(conn).optional()
        };
        let mut row = take(conn)?;
        if row.is_none() && is_first && !is_read_committed(conn)? {
            roll_back_to(conn, 0);
            Self::begin(conn)?;
            row = take(conn)?;
        }
        Ok(row.map(|(token, transaction)| Taken {
            token,
            mark: Some(transaction),
        }))
    }

    fn commit_if<C>(conn: &mut C, mark: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        // One round trip. In another transaction the first statement divides by zero, and in a failed one it fails too.
        // After an error at COMMIT no transaction is open.
        let result = conn.batch_execute(&format!("SELECT 1 / (txid_current() = {mark})::int; COMMIT"));
        match result {
            Ok(()) => {
                // A connection of Diesel's sees it by itself; one that is wrapped may not.
                if transaction_depth(conn) > 0
                    && let TransactionManagerStatus::Valid(status) =
                        C::TransactionManager::transaction_manager_status_mut(conn)
                {
                    status.change_transaction_depth(TransactionDepthChange::DecreaseDepth)?;
                }
                Ok(true)
            }
            Err(error) if transaction_depth(conn) == 0 || !tells_of_end(&error) => Err(error),
            Err(_) => Ok(false),
        }
    }

    fn lock_row<C>(conn: &mut C, name: &str, limit: Option<Duration>) -> QueryResult<RowLock>
    where
        C: LoadConnection<Backend = Self>,
    {
        let row: Option<(i64, Option<String>, bool)> = match limit {
            None => LockRowWaiting { name }.get_result(conn).optional()?,
            Some(_) => LockRowAtOnce { name }.get_result(conn).optional()?,
        };
        Ok(match row {
            Some((token, owner, true)) => RowLock::Taken { token, owner },
            Some(_) => RowLock::Leased,
            None if limit.is_some() && Self::exists(conn, name)? => RowLock::Held,
            None => RowLock::Missing,
        })
    }

    fn advance<C>(conn: &mut C, name: &str, owner: &str) -> QueryResult<Option<i64>>
    where
        C: LoadConnection<Backend = Self>,
    {
        Advance { name, owner }.get_result(conn).optional()
    }

    fn seen<C>(conn: &mut C, name: &str) -> QueryResult<Option<(i64, String)>>
    where
        C: LoadConnection<Backend = Self>,
    {
        Seen { name }.get_result(conn).optional()
    }

    fn exists<C>(conn: &mut C, name: &str) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        Exists { name }.get_result(conn)
    }

    fn create<C>(conn: &mut C, name: &str) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(Create { name }.execute(conn)? > 0)
    }

    fn list<C>(conn: &mut C) -> QueryResult<Vec<LockRow>>
    where
        C: LoadConnection<Backend = Self>,
    {
        list::list(conn)
    }

    fn clash(error: &Error) -> Option<Clash> {
        let Error::DatabaseError(kind, info) = error else {
            return None;
        };
        if matches!(kind, DatabaseErrorKind::SerializationFailure) {
            return Some(Clash::Stale);
        }
        // Diesel does not pass the error's code on, and the message may be in another language; the names of lock
        // modes in the details are not translated.
        let names_modes = info.details().is_some_and(|details| {
            ["ShareLock", "ExclusiveLock"]
                .iter()
                .any(|mode| details.contains(mode))
        });
        (names_modes || info.message().contains("deadlock detected")).then_some(Clash::Deadlock)
    }

    fn refuses(message: &str) -> bool {
        [
            "authentication failed",
            "no password supplied",
            "does not exist", // the role or the database
            "no pg_hba.conf entry",
            "is not permitted to log in",
            "permission denied for database",
            "invalid URI",
            "invalid connection option",
            "invalid integer value",
            "missing \"=\"",
        ]
        .iter()
        .any(|text| message.contains(text))
    }
}

fn is_read_committed<C>(conn: &mut C) -> QueryResult<bool>
where
    C: LoadConnection<Backend = Pg>,
{
    IsReadCommitted {}.get_result(conn)
}

/// Whether the question about the transaction was answered by an error: it is another one, or has failed. Else nobody knows,
/// since the session was lost or the question was cancelled.
fn tells_of_end(error: &Error) -> bool {
    Pg::fault(error) == Fault::Other && !error.to_string().contains("user request")
}

#[cfg(test)]
mod tests {
    use super::{LockBackend, Pg};

    #[test]
    fn what_will_be_refused_again_is_told_from_what_passes() {
        for refused in [
            "FATAL:  password authentication failed for user \"app\"",
            "FATAL:  role \"app\" does not exist",
            "FATAL:  no pg_hba.conf entry for host \"10.0.0.1\", user \"app\", database \"app\", no encryption",
        ] {
            assert!(Pg::refuses(refused), "{refused}");
        }
        for passing in [
            "FATAL:  the database system is starting up",
            "FATAL:  sorry, too many clients already",
            "connection to server at \"10.0.0.1\", port 5432 failed: Connection refused",
            "timed out waiting for connection",
        ] {
            assert!(!Pg::refuses(passing), "{passing}");
        }
    }
}

mod lease;
mod limit;
mod list;
mod row;
mod slot;

use self::limit::{LIFT_WAIT_LIMIT, RESTORE_WAIT_LIMIT_AND_MARK, with_wait_limit};
use crate::LockRow;
use crate::backend::{Clash, LockBackend, RowLock, Taken};
use diesel::connection::{
    LoadConnection, TransactionDepthChange, TransactionManager, TransactionManagerStatus,
};
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use std::time::Duration;

/// The row is under no lease that goes on.
const FREE: &str = "(expires_at IS NULL OR expires_at <= UTC_TIMESTAMP(6))";

job_db::statement! {
    // The connection's number is for a person who may have to kill it.
    struct Advance<'a> on Mysql { name: &'a [u8] => Binary, owner: &'a str => Text } -> ();
    "UPDATE locks SET token = token + 1, owner = CONCAT(" owner ", '/', CONNECTION_ID()), acquired_at = UTC_TIMESTAMP(6),
       expires_at = NULL
     WHERE name = " name " AND " {FREE}
}

job_db::statement! {
    struct Token<'a> on Mysql { name: &'a [u8] => Binary } -> BigInt;
    "SELECT token FROM locks WHERE name = " name
}

job_db::statement! {
    struct Create<'a> on Mysql { name: &'a [u8] => Binary } -> ();
    "INSERT IGNORE INTO locks (name) VALUES (" name ")"
}

const COMMIT_IF_MARKED: &str = "RELEASE SAVEPOINT gatun_lock; COMMIT";

fn token<C>(conn: &mut C, name: &str) -> QueryResult<Option<i64>>
where
    C: LoadConnection<Backend = Mysql>,
{
    Token {
        name: name.as_bytes(),
    }
    .get_result(conn)
    .optional()
}

impl LockBackend for Mysql {
    const PAUSE: Duration = Duration::from_millis(10);
    const HAS_QUEUE: bool = true;

    fn begin<C>(conn: &mut C) -> QueryResult<()>
    where
        C: LoadConnection<Backend = Self>,
    {
        // Of the next transaction only; the session keeps its own level.
        conn.batch_execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        C::TransactionManager::begin_transaction(conn)
    }

    fn take<C>(conn: &mut C, name: &str, owner: &str, _is_first: bool) -> QueryResult<Option<Taken>>
    where
        C: LoadConnection<Backend = Self>,
    {
        let token = with_wait_limit(conn, LIFT_WAIT_LIMIT, RESTORE_WAIT_LIMIT_AND_MARK, |conn| {
            Self::advance(conn, name, owner)
        })?;
        // Its savepoint has no number.
        Ok(token.map(|token| Taken { token, mark: Some(0) }))
    }

    fn commit_if<C>(conn: &mut C, _mark: i64) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        match conn.batch_execute(COMMIT_IF_MARKED) {
            Ok(()) => {
                if let TransactionManagerStatus::Valid(status) =
                    C::TransactionManager::transaction_manager_status_mut(conn)
                {
                    status.change_transaction_depth(TransactionDepthChange::DecreaseDepth)?;
                }
                Ok(true)
            }
            // The savepoint does not exist; its name is the same in every language.
            Err(Error::DatabaseError(_, info)) if info.message().contains("gatun_lock") => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn lock_row<C>(conn: &mut C, name: &str, limit: Option<Duration>) -> QueryResult<RowLock>
    where
        C: LoadConnection<Backend = Self>,
    {
        if limit.is_none() {
            row::lock_patiently(conn, name)
        } else {
            row::lock_at_once(conn, name)
        }
    }

    fn advance<C>(conn: &mut C, name: &str, owner: &str) -> QueryResult<Option<i64>>
    where
        C: LoadConnection<Backend = Self>,
    {
        let changed = Advance {
            name: name.as_bytes(),
            owner,
        }
        .execute(conn)?;
        if changed == 0 {
            return Ok(None);
        }
        token(conn, name)
    }

    fn seen<C>(conn: &mut C, name: &str) -> QueryResult<Option<(i64, String)>>
    where
        C: LoadConnection<Backend = Self>,
    {
        // A plain read would be dirty at READ UNCOMMITTED, and wait for the holder at SERIALIZABLE. Whose row it is keeps its
        // lock; a free one is locked until the end of a transaction that had no business here.
        let row = row::lock_if_free(conn, name)?;
        Ok(row.and_then(|(token, owner, _)| Some((token, owner?))))
    }

    fn exists<C>(conn: &mut C, name: &str) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        Ok(token(conn, name)?.is_some())
    }

    fn create<C>(conn: &mut C, name: &str) -> QueryResult<bool>
    where
        C: LoadConnection<Backend = Self>,
    {
        let made = Create {
            name: name.as_bytes(),
        }
        .execute(conn)?;
        Ok(made > 0)
    }

    fn list<C>(conn: &mut C) -> QueryResult<Vec<LockRow>>
    where
        C: LoadConnection<Backend = Self>,
    {
        list::list(conn)
    }

    fn clash(error: &Error) -> Option<Clash> {
        match error {
            // Diesel gives this kind to error 1213, and to no other.
            Error::DatabaseError(DatabaseErrorKind::SerializationFailure, _) => Some(Clash::Deadlock),
            // MariaDB with innodb_snapshot_isolation.
            Error::DatabaseError(_, info) if info.message().contains("Record has changed") => {
                Some(Clash::Stale)
            }
            _ => None,
        }
    }

    fn was_cancelled(error: &Error) -> bool {
        // By KILL QUERY. Where a limit has ended the statement, the message goes on and says so.
        matches!(error, Error::DatabaseError(_, info) if info.message().ends_with("execution was interrupted"))
    }

    fn refuses(message: &str) -> bool {
        [
            "Access denied",
            "Unknown database",
            "is not allowed to connect",
            "Invalid connection URL",
        ]
        .iter()
        .any(|text| message.contains(text))
    }
}

//! How a transaction comes to hold its locks.

use crate::backend::{LockBackend, RowLock};
use crate::mark::mark;
use crate::wait::Patience;
use crate::{LockConnection, LockError, LockOptions, Wait, create, lease, owner};
use diesel::connection::TransactionManager;
use diesel::result::{Error, QueryResult};
use job_db::{roll_back_to, transaction_depth};
use std::time::Duration;

/// The locks that a transaction holds.
#[derive(Default)]
pub(crate) struct Tokens<'a> {
    pub(crate) tokens: Vec<(&'a str, i64)>,
    /// By what the database knows its transaction again; `None`: it is marked by a savepoint.
    pub(crate) mark: Option<i64>,
}

/// What came of reaching for one lock.
enum Attempt {
    Token(i64),
    Held,
    Leased,
    Missing,
    Stale,
}

/// Why not all locks were had: a lease ends otherwise than a transaction, which has a queue.
enum Failure {
    Leased(String),
    Error(LockError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error.into())
    }
}

/// Opens a transaction that holds all locks, or a savepoint in the caller's. After an error the caller rolls back.
pub(crate) fn acquire<'a, C: LockConnection>(
    options: &LockOptions<'a>,
    conn: &mut C,
    owner: &str,
) -> Result<Tokens<'a>, LockError> {
    let patience = Patience::new(options.wait);
    if transaction_depth(conn) == 0 {
        in_own_transaction(options, conn, owner, &patience)
    } else if options.join && !options.create_missing {
        in_callers_transaction(options, conn, owner, &patience)
    } else {
        inline(options, conn)
    }
}

fn in_own_transaction<'a, C: LockConnection>(
    options: &LockOptions<'a>,
    conn: &mut C,
    owner: &str,
    patience: &Patience,
) -> Result<Tokens<'a>, LockError> {
    loop {
        let failure = match take_all(options, conn, owner) {
            Ok(tokens) => return Ok(tokens),
            Err(failure) => failure,
        };
        // Nothing stays open or held while the thread sleeps.
        roll_back_to(conn, 0);
        let error = match failure {
            Failure::Leased(_) if patience.pause(lease::PAUSE) => continue,
            Failure::Leased(name) => return Err(LockError::Busy(name)),
            Failure::Error(error) => error,
        };
        match error {
            LockError::Unknown(name) if options.create_missing => {
                create::create_patiently(conn, &name, patience)?;
            }
            // From the queue it comes when the session's own limit on waiting is over.
            LockError::Busy(name) if in_queue::<C>(options) || !patience.pause(C::Db::PAUSE) => {
                return Err(LockError::Busy(name));
            }
            LockError::Busy(_) => {}
            error => return Err(error.explained(conn)),
        }
    }
}

fn in_queue<C: LockConnection>(options: &LockOptions<'_>) -> bool {
    options.wait == Wait::Forever && C::Db::HAS_QUEUE
}

fn take_all<'a, C: LockConnection>(
    options: &LockOptions<'a>,
    conn: &mut C,
    owner: &str,
) -> Result<Tokens<'a>, Failure> {
    if in_queue::<C>(options) {
        C::Db::begin_to_take(conn)?;
    } else {
        C::Db::begin(conn)?;
    }
    let mut tokens = Tokens::default();
    for &name in &options.names {
        let attempt = if in_queue::<C>(options) {
            take_in_queue(conn, name, owner, &mut tokens)
        } else {
            take_row(conn, name, owner, Some(Duration::ZERO))
        };
        if let Ok(Attempt::Leased) = attempt {
            return Err(Failure::Leased(name.to_owned()));
        }
        tokens
            .tokens
            .push((name, token::<C>(attempt, name).map_err(Failure::Error)?));
    }
    if tokens.mark.is_none() {
        mark(conn)?;
    }
    Ok(tokens)
}

fn take_in_queue<C: LockConnection>(
    conn: &mut C,
    name: &str,
    owner: &str,
    tokens: &mut Tokens<'_>,
) -> QueryResult<Attempt> {
    Ok(match C::Db::take(conn, name, owner, tokens.tokens.is_empty())? {
        Some(taken) => {
            tokens.mark = taken.mark;
            Attempt::Token(taken.token)
        }
        None if C::Db::exists(conn, name)? => Attempt::Leased,
        None => Attempt::Missing,
    })
}

fn in_callers_transaction<'a, C: LockConnection>(
    options: &LockOptions<'a>,
    conn: &mut C,
    owner: &str,
    patience: &Patience,
) -> Result<Tokens<'a>, LockError> {
    let depth = transaction_depth(conn);
    // The savepoint lets the caller's transaction go on after an error.
    C::TransactionManager::begin_transaction(conn)?;
    let mut tokens = Tokens::default();
    for &name in &options.names {
        let token = loop {
            let attempt = take_row(conn, name, owner, patience.left());
            // No wait for the end of a lease: on MySQL this transaction keeps the row locked, and so would end it.
            if let Ok(Attempt::Leased) = attempt {
                return Err(LockError::Busy(name.to_owned()));
            }
            match token::<C>(attempt, name) {
                Err(LockError::Busy(_)) if !in_queue::<C>(options) && patience.pause(C::Db::PAUSE) => {}
                Err(error) => {
                    roll_back_to(conn, depth);
                    return Err(error.explained(conn));
                }
                Ok(token) => break token,
            }
        };
        tokens.tokens.push((name, token));
    }
    Ok(tokens)
}

/// Takes a row in two steps: who has it already by this transaction keeps its token.
fn take_row<C: LockConnection>(
    conn: &mut C,
    name: &str,
    owner: &str,
    limit: Option<Duration>,
) -> QueryResult<Attempt> {
    Ok(match C::Db::lock_row(conn, name, limit)? {
        RowLock::Taken {
            token,
            owner: Some(holder),
        } if owner::is_active(&holder) => Attempt::Token(token),
        RowLock::Taken { .. } => C::Db::advance(conn, name, owner)?.map_or(Attempt::Missing, Attempt::Token),
        RowLock::Held => Attempt::Held,
        RowLock::Leased => Attempt::Leased,
        RowLock::Missing => Attempt::Missing,
        RowLock::Stale => Attempt::Stale,
    })
}

/// Inside a closure that holds all locks already, opens a savepoint; anywhere else in a transaction it is an error.
fn inline<'a, C: LockConnection>(options: &LockOptions<'a>, conn: &mut C) -> Result<Tokens<'a>, LockError> {
    let mut tokens = Tokens::default();
    for &name in &options.names {
        match held_token(conn, name)? {
            Some(token) => tokens.tokens.push((name, token)),
            None if options.join => return Err(LockError::CreateInTransaction(name.to_owned())),
            None => return Err(LockError::InTransaction(name.to_owned())),
        }
    }
    C::TransactionManager::begin_transaction(conn)?;
    Ok(tokens)
}

fn held_token<C: LockConnection>(conn: &mut C, name: &str) -> QueryResult<Option<i64>> {
    if owner::none_is_active() {
        return Ok(None);
    }
    let seen = C::Db::seen(conn, name)?;
    Ok(seen.and_then(|(token, holder)| owner::is_active(&holder).then_some(token)))
}

fn token<C: LockConnection>(attempt: QueryResult<Attempt>, name: &str) -> Result<i64, LockError> {
    match attempt {
        Ok(Attempt::Token(token)) => Ok(token),
        Ok(Attempt::Held | Attempt::Leased) => Err(LockError::Busy(name.to_owned())),
        Ok(Attempt::Missing) => Err(LockError::Unknown(name.to_owned())),
        Ok(Attempt::Stale) => Err(LockError::Serialization(name.to_owned())),
        Err(error) => Err(LockError::taking::<C::Db>(error, name)),
    }
}

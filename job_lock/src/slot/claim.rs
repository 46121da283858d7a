use super::heart::Heart;
use super::hold::Hold;
use super::options::SlotOptions;
use super::session::Session;
use crate::alone::in_transaction;
use crate::backend::slot::{SessionLock, SlotBackend, SlotKey};
use crate::connect::connect;
use crate::lease::{Claim, Keeper};
use crate::wait::Patience;
use crate::{Connect, Lease, LeaseOptions, LockConnection, LockError, Wait};
use diesel::result::QueryResult;
use job_db::DbConnection;
use std::sync::Arc;
use std::time::Duration;

/// How long a slot lasts at least where it is a lease, since a file may be busy for long.
const LEAST_TTL: Duration = Duration::from_secs(15);
/// A shorter silence is none, however fast the heart beats.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// How long a claim waits at least, in all, for those who keep the whole database.
const LEAST_WAIT: Duration = Duration::from_secs(5);

type Claimed<M> = Option<(u32, Hold<M>)>;

pub(super) fn claim<M: Connect>(options: &SlotOptions<M>) -> Result<Claimed<M>, LockError> {
    if <<M::Conn as DbConnection>::Db as SlotBackend>::HAS_SESSION_LOCKS {
        claim_session(options)
    } else {
        claim_lease(options)
    }
}

fn claim_session<M: Connect>(options: &SlotOptions<M>) -> Result<Claimed<M>, LockError> {
    let (connections, namespace) = (&options.connections, options.namespace.as_str());
    let mut conn = connect(connections)?;
    if is_shared(connections, &mut conn)? {
        return Err(LockError::SharedSession(namespace.to_owned()));
    }
    for number in 0..options.of {
        let key = SlotKey { namespace, number };
        let took = in_transaction(&mut conn, |conn| {
            <M::Conn as DbConnection>::Db::take_slot(conn, key)
        });
        match took.map_err(|error| {
            LockError::taking::<<M::Conn as DbConnection>::Db>(error, namespace).explained(&mut conn)
        })? {
            SessionLock::Taken => {
                let session = Session::new(conn, key, options.heartbeat.max(LEAST_PATIENCE));
                let heart = Heart::start(session, options.heartbeat)?;
                return Ok(Some((number, Hold::Session(heart))));
            }
            SessionLock::Held => {}
            SessionLock::Unanswered => return Err(LockError::NoAnswer(namespace.to_owned())),
        }
    }
    Ok(None)
}

/// Whether two connections have one session between them, or one has several. A proxy that hands out the session that was
/// used last gives both the same one; one that goes round gives a connection another one at its second transaction.
fn is_shared<M: Connect>(connections: &M, conn: &mut M::Conn) -> Result<bool, LockError> {
    let mut other = connect(connections)?;
    let mine = session(conn)?;
    let others = session(&mut other)?;
    let mut is_shared = mine == others;
    for conn_is_next in [true, true, false, false, true, false, true, true, false] {
        is_shared |= if conn_is_next {
            session(conn)? != mine
        } else {
            session(&mut other)? != others
        };
    }
    Ok(is_shared)
}

fn session<C: LockConnection>(conn: &mut C) -> QueryResult<i64> {
    in_transaction(conn, C::Db::session)
}

fn claim_lease<M: Connect>(options: &SlotOptions<M>) -> Result<Claimed<M>, LockError> {
    let (connections, namespace) = (&options.connections, options.namespace.as_str());
    let ttl = LEAST_TTL.max(3 * options.heartbeat);
    let mut conn = connect(connections)?;
    let own_limit = <<M::Conn as DbConnection>::Db as SlotBackend>::wait_limit(&mut conn)?;
    let patience = Patience::new(Wait::AtMost(LEAST_WAIT.max(own_limit)));
    for number in 0..options.of {
        let lease =
            LeaseOptions::new(&format!("slot/{namespace}/{number}"), ttl).renew_every(options.heartbeat);
        if let Some(claim) = Claim::acquire_if_free(&lease, &mut conn, &patience)? {
            let claim = Arc::new(claim.for_slot(namespace, number));
            let keeper = Keeper::start(connections, conn, claim.clone())?;
            let lease = Lease::new(connections.clone(), claim);
            return Ok(Some((
                number,
                Hold::Lease {
                    lease,
                    _keeper: keeper,
                },
            )));
        }
    }
    Ok(None)
}

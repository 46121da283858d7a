//! LISTEN, which Diesel offers on the bare connection only; a wrapper of it goes without, and its worker polls.

use diesel::connection::SimpleConnection;
use diesel::pg::{Pg, PgRowByRowLoadingMode};
use diesel::result::QueryResult;
use diesel::{PgConnection, RunQueryDsl};
use job_db::statement;
use std::any::Any;

statement! {
    // More than the 16 KiB that libpq reads ahead, and less than any socket holds, so that nobody on the way has to wait.
    struct Filler on Pg {} -> Text;
    "SELECT repeat('.', 4096) FROM generate_series(1, 12)"
}

pub(crate) fn listen<C: Any>(conn: &mut C) -> QueryResult<bool> {
    match bare(conn) {
        Some(conn) => conn.batch_execute("LISTEN gatun").map(|()| true),
        None => Ok(false),
    }
}

pub(crate) fn received<C: Any>(conn: &mut C) -> QueryResult<bool> {
    let Some(conn) = bare(conn) else { return Ok(false) };
    let mut any = false;
    // On a lost connection the iterator would give errors for ever: the first one ends it.
    for notification in conn.notifications_iter() {
        notification?;
        any = true;
    }
    Ok(any)
}

pub(crate) fn while_unread<C: Any>(conn: &mut C, work: &mut dyn FnMut()) -> QueryResult<bool> {
    let Some(conn) = bare(conn) else { return Ok(false) };
    let mut rows = Filler {}.load_iter::<String, PgRowByRowLoadingMode>(conn)?;
    rows.next().transpose()?;
    work();
    for row in rows {
        row?;
    }
    Ok(true)
}

fn bare<C: Any>(conn: &mut C) -> Option<&mut PgConnection> {
    (conn as &mut dyn Any).downcast_mut()
}

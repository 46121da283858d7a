//! LISTEN, which Diesel offers on the bare connection only; a wrapper of it goes without, and its worker polls.

use diesel::PgConnection;
use diesel::connection::SimpleConnection;
use diesel::result::QueryResult;
use std::any::Any;

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

fn bare<C: Any>(conn: &mut C) -> Option<&mut PgConnection> {
    (conn as &mut dyn Any).downcast_mut()
}

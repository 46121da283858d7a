use super::{Conn, SET_UP};
use anyhow::{Context as _, Result, bail};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

diesel::table! {
    backfill_accounts (id) {
        id -> BigInt,
        name -> Text,
        sort_name -> Nullable<Text>,
        times -> Integer,
    }
}

#[diesel::declare_sql_function]
extern "SQL" {
    fn lower(text: Text) -> Text;
}

/// What a worker wants to know of an account.
#[derive(QueryableByName)]
pub(crate) struct Account {
    #[diesel(sql_type = BigInt)]
    pub(crate) id: i64,
    #[diesel(sql_type = Text)]
    pub(crate) name: String,
}

/// How many rows were done how often.
pub(crate) struct Proof {
    pub(crate) never: i64,
    pub(crate) once: i64,
    pub(crate) more: i64,
    /// Done, and not as they should be.
    pub(crate) wrong: i64,
}

/// Makes the table. Half of the ids are negative, and there are gaps; the row in the middle has no name.
pub(crate) fn make(url: &str, rows: i64) -> Result<()> {
    let conn = &mut connect(url)?;
    conn.batch_execute("DROP TABLE IF EXISTS backfill_accounts")?;
    conn.batch_execute(
        "CREATE TABLE backfill_accounts (
           id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL, sort_name VARCHAR(100), times INTEGER NOT NULL DEFAULT 0
         )",
    )?;
    let value = |number| match (number - rows / 2) * 3 {
        0 => "(0, '')".into(),
        id => format!("({id}, 'Account Number {number}')"),
    };
    conn.transaction(|conn| {
        (0..rows).step_by(1000).try_for_each(|first| {
            let values: Vec<String> = (first..rows.min(first + 1000)).map(value).collect();
            conn.batch_execute(&format!(
                "INSERT INTO backfill_accounts (id, name) VALUES {}",
                values.join(", ")
            ))
        })
    })?;
    Ok(())
}

pub(crate) fn prove(url: &str) -> Result<Proof> {
    use self::backfill_accounts::dsl::{backfill_accounts, name, sort_name, times};
    let conn = &mut connect(url)?;
    Ok(Proof {
        never: backfill_accounts.filter(times.eq(0)).count().get_result(conn)?,
        once: backfill_accounts.filter(times.eq(1)).count().get_result(conn)?,
        more: backfill_accounts.filter(times.gt(1)).count().get_result(conn)?,
        wrong: backfill_accounts
            .filter(times.eq(1))
            .filter(sort_name.ne(lower(name).nullable()).or(sort_name.is_null()))
            .count()
            .get_result(conn)?,
    })
}

fn connect(url: &str) -> Result<Conn> {
    let mut conn = match Conn::establish(url) {
        Ok(conn) => conn,
        // A client library that takes a part of the password for the host or the port shows it in its error.
        Err(_) if crate::has_raw_password(url) => bail!(
            "cannot connect to the database of DATABASE_URL: write / ? # and @ in user and password as %2F %3F %23 and %40"
        ),
        Err(error) => return Err(error).context("cannot connect to the database of DATABASE_URL"),
    };
    if !SET_UP.is_empty() {
        conn.batch_execute(SET_UP)?;
    }
    Ok(conn)
}

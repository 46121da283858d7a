//! What a worker with nothing to do costs.

use crate::contender::SETTLE;
use crate::contenders::{Contender, field};
use crate::run::Bench;
use crate::server::Server;
use anyhow::Result;
use diesel::connection::SimpleConnection;
use std::thread::sleep;
use std::time::Duration;

const NAME: &str = "idle";

/// Those of this database that are not about the counting itself.
const CALLS: &str =
    "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
    WHERE datname LIKE 'bench_%' AND query NOT LIKE '%pg_stat_statements%'";

pub fn measure(bench: &mut Bench) -> Result<()> {
    let server = Server::start_counting()?;
    bench.each(|bench, contender| one(bench, &server, contender))
}

fn one(bench: &mut Bench, server: &Server, contender: &'static Contender) -> Result<()> {
    let seconds = (bench.options.scale * 30.0).clamp(5.0, 60.0).round();
    let place = server.place()?;
    contender.call(&place.url, &["setup"])?;
    let mut conn = server.connect()?;
    let args = ["idle", &seconds.to_string()];
    let child = contender.start(&place.url, &args)?;
    // A runtime has to start, too.
    sleep(SETTLE + Duration::from_millis(500));
    let cpu = server.cpu()?;
    conn.batch_execute("SELECT pg_stat_statements_reset()")?;
    // It ends half a second after this, and its last statements are not those of an idle worker.
    let watched = seconds - 1.0;
    sleep(Duration::from_secs_f64(watched));
    let calls = crate::server::number(&mut conn, CALLS)?;
    let cpu = server.cpu()? - cpu;
    let answer = contender.answer(child, &args)?;
    bench.note(NAME, contender.name, "statements/s", calls / watched);
    bench.note(
        NAME,
        contender.name,
        "worker % of a core",
        field(&answer, "cpu_us")? / seconds / 1e4,
    );
    bench.note(NAME, contender.name, "server % of a core", cpu / watched / 1e4);
    Ok(())
}

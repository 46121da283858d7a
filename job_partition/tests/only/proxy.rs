//! Behind PgBouncer in transaction mode, where two transactions of one connection may have different sessions.

use super::suite::items::{Item, assert_complete, assert_each_done_once, items, mark, partition};
use super::{Conn, Db};
use diesel::Connection;
use diesel::connection::CacheSize;
use diesel::prelude::*;
use diesel::r2d2::ConnectionManager;
use job_partition::{Cover, Key};
use job_test::eventually;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A PgBouncer of this test's own, with fewer sessions than it gives connections.
struct Proxy {
    process: Child,
    folder: PathBuf,
    url: String,
}

impl Proxy {
    fn start(db: &Db) -> Self {
        let server = std::env::var("POSTGRES_DATABASE_URL").unwrap();
        let address = server.split('@').nth(1).unwrap().split('/').next().unwrap();
        let (host, port) = address.split_once(':').unwrap();
        let schema = db.text("SELECT current_schema()::text").unwrap();
        let folder = std::env::temp_dir().join(format!(
            "gatun-proxy-{}-{:08x}",
            std::process::id(),
            fastrand::u32(..)
        ));
        fs::create_dir(&folder).unwrap();
        let own_port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let users = folder.join("users");
        fs::write(&users, "\"postgres\" \"\"\n").unwrap();
        let config = folder.join("config");
        fs::write(
            &config,
            format!(
                "[databases]\n* = host={host} port={port} dbname=postgres connect_query='SET search_path = {schema}'\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {own_port}\nunix_socket_dir =\nauth_type = trust\n\
                 auth_file = {}\npool_mode = transaction\ndefault_pool_size = 3\n",
                users.display()
            ),
        )
        .unwrap();
        let places = [
            "/usr/sbin/pgbouncer",
            "/usr/bin/pgbouncer",
            "/usr/local/bin/pgbouncer",
        ];
        let program = places.into_iter().find(|path| fs::exists(path).unwrap());
        let program = program.expect("PgBouncer is not installed: install the package pgbouncer");
        let mut command = Command::new(program);
        // It refuses to run as root; anybody may read what it reads.
        if fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
            command.args(["-u", "postgres"]);
        }
        let process = command
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let url = format!("postgres://postgres@127.0.0.1:{own_port}/postgres");
        eventually("PgBouncer takes connections", || Conn::establish(&url).is_ok());
        Proxy { process, folder, url }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn behind_a_transaction_pooling_proxy_each_row_is_done_once() {
    for cover in [Cover::Range, Cover::Modulo] {
        let db = items(Key::Integer, 4_000);
        let proxy = Proxy::start(&db);
        let run = || {
            partition(Key::Integer)
                .cover(cover)
                .partitions(16)
                .batch(40)
                .threads(4)
                .statement_cache(CacheSize::Disabled)
                .run(
                    &ConnectionManager::<Conn>::new(&proxy.url),
                    |batch: &[Item], conn: &mut Conn| {
                        // One that Diesel would otherwise prepare by name.
                        diesel::select(diesel::dsl::now).execute(conn)?;
                        mark(batch, conn)
                    },
                )
                .unwrap()
        };
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(run);
            (run(), other.join().unwrap())
        });
        assert!(one.is_complete() && other.is_complete(), "{one}\n{other}");
        assert_eq!(one.rows + other.rows, 4_000);
        assert_each_done_once(&db, 4_000);
        assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 0);
    }
}

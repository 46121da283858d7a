use super::items::{
    ALL, Item, assert_complete, assert_done_at_most_once, assert_each_done_once, has, items, mark, mark_as,
    partition, pending,
};
use super::{Conn, Db, KILL};
use diesel::r2d2::ConnectionManager;
use job_partition::{Cover, Key};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

const URL: &str = "GATUN_PARTITION_URL";
const SHAPE: &str = "GATUN_PARTITION_SHAPE";
const HANG_AT: &str = "GATUN_PARTITION_HANG_AT";

/// The worker processes are this test binary, told by its environment to run this "test" alone.
#[test]
fn worker_process() {
    let (Ok(url), Ok(shape)) = (std::env::var(URL), std::env::var(SHAPE)) else {
        return;
    };
    let (cover, kind) = ALL[shape.parse::<usize>().unwrap()];
    let hang_at = std::env::var(HANG_AT).ok().map(|id| id.parse::<i64>().unwrap());
    let mut line = String::new();
    println!("ready");
    std::io::stdin().read_line(&mut line).unwrap();
    let name = std::process::id().to_string();
    let report = partition(kind)
        .cover(cover)
        .batch(40 + std::process::id() as usize % 20)
        .threads(4)
        .run(
            &ConnectionManager::<Conn>::new(url),
            |batch: &[Item], conn: &mut Conn| {
                mark_as(&name, batch, conn)?;
                if hang_at.is_some_and(|id| has(batch, id)) {
                    println!("in the batch");
                    std::io::stdout().flush()?;
                    // It never comes.
                    std::io::stdin().read_to_end(&mut Vec::new())?;
                }
                Ok(())
            },
        )
        .unwrap();
    assert!(report.is_complete(), "{report}");
    println!("rows {}", report.rows);
}

struct Worker {
    child: Child,
    stdin: ChildStdin,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Worker {
    fn start(db: &Db, shape: usize, hang_at: Option<i64>) -> Self {
        let path = module_path!().split_once("::").unwrap().1;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", &format!("{path}::worker_process"), "--nocapture"])
            .env(URL, db.url())
            .env(SHAPE, shape.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(id) = hang_at {
            command.env(HANG_AT, id.to_string());
        }
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let mut worker = Worker {
            child,
            stdin,
            lines: Box::new(lines),
        };
        worker.wait_for("ready");
        worker
    }

    fn go(&mut self) {
        self.stdin.write_all(b"\n").unwrap();
    }

    /// What stands behind `text` in the line that has it.
    fn wait_for(&mut self, text: &str) -> String {
        let found = self
            .lines
            .find_map(|line| line.split_once(text).map(|(_, rest)| rest.trim().to_owned()));
        found.unwrap_or_else(|| panic!("the worker has ended without saying {text:?}"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn three_processes_of_four_threads_do_each_row_once() {
    for (shape, (cover, kind)) in ALL.into_iter().enumerate() {
        // With modulo each partition is a scan of the whole table.
        let count = if cover == Cover::Range { 20_000 } else { 4_000 };
        let db = items(kind, count);
        let mut workers: Vec<Worker> = (0..3).map(|_| Worker::start(&db, shape, None)).collect();
        workers.iter_mut().for_each(Worker::go);
        let rows: u64 = workers
            .iter_mut()
            .map(|worker| worker.wait_for("rows ").parse::<u64>().unwrap())
            .sum();
        assert_eq!(rows, count, "{cover:?} {kind:?}");
        assert_each_done_once(&db, count);
    }
}

#[test]
fn a_killed_worker_leaves_its_batch_to_the_others() {
    let db = items(Key::Integer, 2_000);
    // Each worker comes to the batch that the one before it was killed in, and is killed in its turn.
    for _ in 0..4 {
        let mut victim = Worker::start(&db, 0, Some(1_000));
        victim.go();
        victim.wait_for("in the batch");
        assert!(pending(&db) > 0, "the batch is not committed");
        // SIGKILL.
        victim.child.kill().unwrap();
        victim.child.wait().unwrap();
        assert_done_at_most_once(&db);
    }
    let report = partition(Key::Integer)
        .threads(2)
        .run(&db.manager(), mark)
        .unwrap();
    assert!(report.is_complete(), "{report}");
    assert_each_done_once(&db, 2_000);
}

#[test]
fn two_processes_of_four_threads_complete_the_table_beside_a_third_that_is_killed() {
    let db = items(Key::Integer, 4_000);
    let mut victim = Worker::start(&db, 0, Some(2_000));
    victim.go();
    victim.wait_for("in the batch");
    let before = db.count("SELECT count(*) FROM audit");
    let mut others = [0, 1].map(|_| Worker::start(&db, 0, None));
    others.iter_mut().for_each(Worker::go);
    if KILL.is_some() {
        // On SQLite they wait for the file.
        job_test::eventually("the others work beside it", || {
            db.count("SELECT count(*) FROM audit") > before
        });
    }
    assert!(pending(&db) > 0, "its batch is not committed");
    victim.child.kill().unwrap();
    victim.child.wait().unwrap();
    let rows: i64 = others
        .iter_mut()
        .map(|worker| worker.wait_for("rows ").parse::<i64>().unwrap())
        .sum();
    assert!(rows > 0);
    assert_each_done_once(&db, 4_000);
    assert_complete(&partition(Key::Integer).run(&db.manager(), mark).unwrap(), 0);
}

use super::Db;
use super::support::{any, claim, echo, strings};
use job_core::{Job, NewJob, Perform, WorkerRow};

const ALIKE: [&str; 10] = ["a", "A", "a ", " a", "a  ", "á", "a\u{301}", "ß", "ss", "🦀"];

#[test]
fn names_are_compared_byte_by_byte_as_queues() {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids: Vec<i64> = ALIKE
        .iter()
        .map(|&name| any().queue(name).enqueue(conn).unwrap().id)
        .collect();
    for (&name, &id) in ALIKE.iter().zip(&ids) {
        let worker = WorkerRow::register(conn, &strings(&[name]), &strings(&["echo"])).unwrap();
        let listed = Job::filter().queue(name).load(conn).unwrap();
        assert_eq!(
            listed.iter().map(|job| job.id).collect::<Vec<_>>(),
            [id],
            "{name:?}"
        );
        assert_eq!(Job::counts_in(conn, name).unwrap().total(), 1, "{name:?}");
        let job = claim(conn, &worker);
        assert_eq!(job.id(), id, "{name:?}");
        job.complete(conn, &()).unwrap();
        assert!(Job::find_new_job(conn, &worker).unwrap().is_none());
        assert_eq!(Job::find(conn, id).unwrap().queue, name);
    }
    db.assert_invariants();
}

#[test]
fn names_are_compared_byte_by_byte_as_unique_keys() {
    let db = Db::new();
    let conn = &mut db.connect();
    for _ in 0..2 {
        for name in ALIKE {
            let job = any().unique(name).enqueue(conn).unwrap();
            assert_eq!(job.unique_key.as_deref(), Some(name));
        }
        let jobs: Vec<NewJob> = ALIKE.iter().map(|&name| any().unique(name)).collect();
        Job::enqueue_all(conn, jobs).unwrap();
    }
    assert_eq!(db.count("SELECT count(*) FROM jobs"), ALIKE.len() as i64);
    db.assert_invariants();
}

macro_rules! kind {
    ($name:ident, $kind:literal) => {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct $name;
        impl Perform for $name {
            const KIND: &'static str = $kind;
            type Context = ();
            type Output = ();
            fn perform(&self, _: &job_core::Run<'_, ()>) -> anyhow::Result<()> {
                Ok(())
            }
        }
    };
}
kind!(Small, "kind");
kind!(Capital, "Kind");
kind!(Blank, "kind ");
kind!(Crab, "🦀 kind");

#[test]
fn names_are_compared_byte_by_byte_as_kinds() {
    let db = Db::new();
    let conn = &mut db.connect();
    let ids = Job::enqueue_all(conn, [Small.job(), Capital.job(), Blank.job(), Crab.job()]).unwrap();
    for (kind, id) in ["kind", "Kind", "kind ", "🦀 kind"].into_iter().zip(ids) {
        let worker = WorkerRow::register(conn, &strings(&["default"]), &strings(&[kind])).unwrap();
        let listed = Job::filter().kind(kind).load(conn).unwrap();
        assert_eq!(
            listed.iter().map(|job| job.id).collect::<Vec<_>>(),
            [id],
            "{kind:?}"
        );
        let job = claim(conn, &worker);
        assert_eq!((job.id(), job.kind.as_str()), (id, kind));
        assert!(Job::find_new_job(conn, &worker).unwrap().is_none());
    }
    db.assert_invariants();
}

#[test]
fn case_39_a_long_queue_name_with_emoji_is_as_good_as_any() {
    let db = Db::new();
    let conn = &mut db.connect();
    let queue = format!("{}{}", "q".repeat(128), "🚢".repeat(31));
    let worker = WorkerRow::register(conn, &strings(&[&queue]), &strings(&["echo"])).unwrap();
    let job = echo("big").job().queue(&queue).enqueue(conn).unwrap();
    assert_eq!(claim(conn, &worker).id(), job.id);
    assert_eq!(WorkerRow::list(conn).unwrap()[0].queues, [queue]);
    db.assert_invariants();
}

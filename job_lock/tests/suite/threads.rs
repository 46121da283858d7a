//! Where no thread can be started.

use super::Conn;
use super::leases::{LONG, manager};
use super::slots::namespace;
use super::support::db_with;
use diesel::r2d2::ConnectionManager;
use job_lock::{Leader, Lock, LockError, Slot, Wait};
use std::process::Command;
use std::sync::Arc;

const URL: &str = "GATUN_TEST_URL";
const SPACE: &str = "GATUN_TEST_NAMESPACE";

#[test]
fn without_a_thread_that_renews_it_a_lease_is_an_error_and_its_closure_does_not_run() {
    let db = db_with(&["a", "b"]);
    let test = module_path!().split_once("::").unwrap().1;
    let output = Command::new(std::env::current_exe().unwrap())
        .args([&format!("{test}::try_without_threads"), "--exact", "--ignored"])
        .args(["--nocapture", "--test-threads=1"])
        .env(URL, db.url())
        .env(SPACE, namespace(&db))
        // No machine has so much memory for a thread's stack.
        .env("RUST_MIN_STACK", (1_u64 << 46).to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    // They were given back.
    for name in ["a", "b"] {
        Lock::lease_on(name, LONG)
            .wait(Wait::No)
            .hold(&manager(&db), |_| Ok::<_, LockError>(()))
            .unwrap();
    }
}

#[test]
#[ignore = "it is the other process of another test"]
fn try_without_threads() {
    let manager = Arc::new(ConnectionManager::<Conn>::new(std::env::var(URL).unwrap()));
    let leased: Result<(), LockError> = Lock::lease(&manager, "a", LONG, |_| panic!("ran"));
    let led: Result<(), LockError> = Leader::new(&manager, "b", LONG).run(|| false, |_| panic!("ran"));
    for result in [leased, led] {
        assert!(matches!(result, Err(LockError::NoThread { .. })), "{result:?}");
    }
    let slot = Slot::claim(&manager, &std::env::var(SPACE).unwrap(), 1);
    assert!(matches!(slot, Err(LockError::NoThread { .. })), "{slot:?}");
    // It was given back at once, and not when this process ended.
    let next = Slot::claim(&manager, &std::env::var(SPACE).unwrap(), 1);
    assert!(matches!(next, Err(LockError::NoThread { .. })), "{next:?}");
}

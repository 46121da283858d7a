use super::items::{
    Item, assert_complete, assert_done_at_most_once, assert_each_done_once, items, mark, partition,
};
use job_partition::{Control, Key, Outcome, PartitionError, Pause};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn a_stop_comes_at_the_end_of_a_batch_and_a_later_run_goes_on() {
    let db = items(Key::Integer, 500);
    let control = Control::new();
    let report = partition(Key::Integer)
        .control(&control)
        .batch(10)
        .run(&db.manager(), |batch, conn| {
            control.stop();
            mark(batch, conn)
        })
        .unwrap();
    assert_eq!(report.outcome, Outcome::Stopped);
    assert!((1..=10).contains(&report.rows), "{report}");
    assert_done_at_most_once(&db);
    assert_complete(
        &partition(Key::Integer).run(&db.manager(), mark).unwrap(),
        500 - report.rows,
    );
    assert_each_done_once(&db, 500);
}

#[test]
fn nothing_is_begun_while_it_is_paused() {
    let db = items(Key::Integer, 200);
    let control = Control::new();
    let is_resumed = AtomicBool::new(false);
    let (paused, resume) = sync_channel(1);
    std::thread::scope(|scope| {
        let (control, is_resumed) = (&control, &is_resumed);
        scope.spawn(move || {
            resume.recv().unwrap();
            is_resumed.store(true, Ordering::SeqCst);
            control.resume();
        });
        let calls = AtomicUsize::new(0);
        let report = partition(Key::Integer)
            .control(control)
            .batch(10)
            .run(&db.manager(), |batch, conn| {
                if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                    control.pause();
                    paused.send(()).unwrap();
                } else {
                    assert!(is_resumed.load(Ordering::SeqCst));
                }
                mark(batch, conn)
            })
            .unwrap();
        assert_complete(&report, 200);
    });
}

#[test]
fn a_paused_run_can_be_stopped() {
    let db = items(Key::Integer, 200);
    let control = Control::new();
    let (paused, stop) = sync_channel(1);
    std::thread::scope(|scope| {
        let control = &control;
        scope.spawn(move || {
            stop.recv().unwrap();
            control.stop();
        });
        let report = partition(Key::Integer)
            .control(control)
            .batch(10)
            .run(&db.manager(), |batch, conn| {
                control.pause();
                paused.send(()).unwrap();
                mark(batch, conn)
            })
            .unwrap();
        assert_eq!(report.outcome, Outcome::Stopped);
    });
}

#[test]
fn a_throttle_is_asked_before_each_batch_and_holds_it_up() {
    let db = items(Key::Integer, 100);
    let asked = Arc::new(AtomicUsize::new(0));
    let ask = Arc::clone(&asked);
    let report = partition(Key::Integer)
        .partitions(1)
        .batch(25)
        .throttle(move || {
            let number = ask.fetch_add(1, Ordering::SeqCst);
            (number % 3 != 2).then(|| Pause::new(Duration::from_millis(1), "the replica lags"))
        })
        .run(&db.manager(), |batch, conn| {
            assert_eq!(asked.load(Ordering::SeqCst) % 3, 0, "it has just said yes");
            mark(batch, conn)
        })
        .unwrap();
    assert_complete(&report, 100);
    assert!(asked.load(Ordering::SeqCst) >= 4 * 3);
}

#[test]
fn a_stop_ends_a_throttle_that_never_says_yes() {
    let db = items(Key::Integer, 10);
    let control = Control::new();
    let stop = control.clone();
    let report = partition(Key::Integer)
        .control(&control)
        .throttle(move || {
            stop.stop();
            Some(Pause::new(Duration::from_secs(3600), "never"))
        })
        .run(&db.manager(), |_: &[Item], _| unreachable!())
        .unwrap();
    assert_eq!(report.outcome, Outcome::Stopped);
}

#[test]
fn progress_is_told_to_the_end() {
    let db = items(Key::Integer, 300);
    let last = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&last);
    let report = partition(Key::Integer)
        .threads(2)
        .on_progress(move |progress| *seen.lock().unwrap() = Some(progress.clone()))
        .run(&db.manager(), mark)
        .unwrap();
    assert_complete(&report, 300);
    let last = last.lock().unwrap().clone().unwrap();
    assert_eq!((last.rows, last.failed), (300, 0));
    assert_eq!(last.drained, last.partitions);
    assert_eq!(last.partitions, report.partitions);
    assert!(last.to_string().starts_with("300 rows done, "), "{last}");
}

#[test]
fn a_target_changes_the_size_of_batches_within_their_bounds() {
    let db = items(Key::Integer, 2_000);
    let largest = AtomicUsize::new(0);
    let report = partition(Key::Integer)
        .partitions(1)
        .batch(10)
        .target(Duration::from_secs(3600))
        .batch_bounds(5..=160)
        .run(&db.manager(), |batch, conn| {
            largest.fetch_max(batch.len(), Ordering::SeqCst);
            mark(batch, conn)
        })
        .unwrap();
    assert_complete(&report, 2_000);
    assert_eq!(largest.load(Ordering::SeqCst), 160);
}

#[test]
fn a_panic_of_on_progress_costs_the_progress_and_not_the_report() {
    let db = items(Key::Integer, 100);
    let report = partition(Key::Integer)
        .on_progress(|_| panic!("no terminal"))
        .run(&db.manager(), mark)
        .unwrap();
    assert_complete(&report, 100);
}

/// One thread ends the run while another is throttled for a day, or paused.
#[test]
fn an_end_of_the_run_ends_a_throttle_and_a_pause() {
    for is_paused in [false, true] {
        let db = items(Key::Integer, 100);
        let (control, is_held) = (Control::new(), Arc::new(AtomicBool::new(false)));
        let (held, own) = (Arc::clone(&is_held), control.clone());
        let asked = AtomicUsize::new(0);
        let error = partition(Key::Integer)
            .threads(2)
            .batch(10)
            .control(&control)
            .throttle(move || {
                // The second one is held up.
                if asked.fetch_add(1, Ordering::SeqCst) != 1 {
                    return None;
                }
                if is_paused {
                    own.pause();
                }
                held.store(true, Ordering::SeqCst);
                (!is_paused).then(|| Pause::new(Duration::MAX, "for ever"))
            })
            .run(&db.manager(), |_: &[Item], _| {
                job_test::eventually("the other one is held up", || is_held.load(Ordering::SeqCst));
                Ok(())
            })
            .unwrap_err();
        assert!(matches!(error, PartitionError::NotMarked { .. }), "{error}");
    }
}

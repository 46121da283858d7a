use job_worker::InParallel;
use job_worker::parallel::{End, NotDone, ThreadError};
use std::convert::Infallible;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{self, ThreadId};

#[test]
fn each_thread_calls_init_once_and_keeps_what_it_gave() {
    let calls = AtomicUsize::new(0);
    let barrier = Barrier::new(3);
    let report = (0..300)
        .in_parallel()
        .threads(3)
        // What a thread has of its own need not be Send.
        .init(|| {
            calls.fetch_add(1, SeqCst);
            Ok::<_, Infallible>(Rc::new(thread::current().id()))
        })
        .run(|own: &mut Rc<ThreadId>, item| {
            if item < 3 {
                barrier.wait();
            }
            assert_eq!(**own, thread::current().id());
            Ok::<_, Infallible>(item)
        })
        .unwrap();
    assert_eq!(report.into_result().unwrap(), (0..300).collect::<Vec<_>>());
    assert_eq!(calls.load(SeqCst), 3);
}

#[test]
fn what_a_panic_leaves_behind_does_not_reach_the_next_item() {
    // An item that panics leaves its thread's transaction open.
    let summary = (0..100)
        .in_parallel()
        .threads(2)
        .init(|| Ok::<_, Infallible>(false))
        .for_each_outcome(
            |open: &mut bool, item| {
                assert!(!std::mem::replace(open, true), "a transaction is open");
                if item % 10 == 0 {
                    panic!("in the transaction");
                }
                *open = false;
                Ok::<_, Infallible>(())
            },
            |_, outcome| {
                if let Err(NotDone::Panicked(panic)) = outcome {
                    assert_eq!(panic.message(), "in the transaction");
                }
            },
        )
        .unwrap();
    assert_eq!((summary.counts().ok, summary.counts().panicked), (90, 10));
}

#[test]
fn a_thread_that_does_not_start_leaves_its_share_to_the_others() {
    let calls = AtomicUsize::new(0);
    let barrier = Barrier::new(3);
    let report = (0..1_000)
        .in_parallel()
        .threads(3)
        .init(|| {
            barrier.wait();
            match calls.fetch_add(1, SeqCst) {
                0 => Err("no connection"),
                1 => panic!("no driver"),
                _ => Ok(()),
            }
        })
        .run(|(), item| Ok::<_, Infallible>(item))
        .unwrap();
    let mut errors: Vec<_> = report.thread_errors().iter().map(ToString::to_string).collect();
    errors.sort();
    assert_eq!(errors, ["init failed: no connection", "init panicked: no driver"]);
    assert_eq!(report.into_result().unwrap().len(), 1_000);
}

#[test]
fn when_no_thread_is_left_the_rest_is_skipped() {
    let report = std::iter::repeat(())
        .in_parallel()
        .threads(3)
        .init(|| Err::<(), _>("no connection"))
        .run(|(), ()| Ok::<_, Infallible>(()))
        .unwrap();
    assert_eq!(report.end(), End::ThreadsGone);
    assert_eq!(report.thread_errors().len(), 3);
    assert!(report.failures().all(|(_, why)| *why == NotDone::Skipped));
    assert_eq!(report.counts().ok, 0);
    assert!(report.into_result().is_err());
}

#[test]
fn threads_that_cannot_start_again_leave_the_rest_skipped() {
    let calls = AtomicUsize::new(0);
    let report = (0..10)
        .in_parallel()
        .threads(1)
        .queue(9)
        .init(|| match calls.fetch_add(1, SeqCst) {
            0 => Ok(()),
            _ => Err("the server is gone"),
        })
        .run(|(), item| match item {
            3 => panic!("the connection is lost"),
            _ => Ok::<_, Infallible>(()),
        })
        .unwrap();
    assert_eq!(report.end(), End::ThreadsGone);
    assert_eq!((report.counts().ok, report.counts().panicked), (3, 1));
    assert_eq!(report.counts().items(), report.outcomes().len() as u64);
}

/// Which comes first, the end of the input or that of the last thread, must not be seen.
#[test]
fn an_input_that_is_done_to_its_end_has_ended_though_no_thread_is_left() {
    for _ in 0..300 {
        let empty = std::iter::from_fn(|| None::<()>)
            .in_parallel()
            .threads(2)
            .init(|| Err::<(), _>("no connection"))
            .run(|(), ()| Ok::<_, Infallible>(()))
            .unwrap();
        assert!(empty.is_complete(), "{empty:?}");

        let calls = AtomicUsize::new(0);
        let last = (0..1)
            .in_parallel()
            .threads(1)
            .init(|| match calls.fetch_add(1, SeqCst) {
                0 => Ok(()),
                _ => Err("the server is gone"),
            })
            .run(|(), _| -> Result<(), Infallible> { resume_unwind(Box::new("lost")) })
            .unwrap();
        assert_eq!((last.end(), last.counts().panicked), (End::InputEnded, 1));
    }
}

#[test]
fn a_panic_in_the_drop_of_what_init_gave_is_told() {
    struct Own;
    impl Drop for Own {
        fn drop(&mut self) {
            panic!("not closed");
        }
    }
    let report = (0..10)
        .in_parallel()
        .threads(1)
        .init(|| Ok::<_, Infallible>(Own))
        .run(|_, item| Ok::<_, Infallible>(item))
        .unwrap();
    assert!(
        matches!(report.thread_errors(), [ThreadError::DropPanicked(panic)] if panic.message() == "not closed")
    );
    assert_eq!(report.into_result().unwrap().len(), 10);
}

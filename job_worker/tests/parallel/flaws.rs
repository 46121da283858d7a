use job_worker::InParallel;
use job_worker::parallel::NotDone;
use std::fmt::Display;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

/// The idea as it was published, in Rust: a queue without a bound, which is filled first, and errors that are printed.
fn original<T: Send, E: Display>(
    input: impl Iterator<Item = T>,
    n: usize,
    work: impl Fn(T) -> Result<(), E> + Sync,
) {
    let (give, take) = mpsc::channel();
    let take = Mutex::new(take);
    input.for_each(|item| give.send(item).unwrap());
    drop(give);
    thread::scope(|scope| {
        for _ in 0..n {
            scope.spawn(|| {
                while let Ok(item) = { take.lock().unwrap().recv() } {
                    if let Err(error) = work(item) {
                        eprintln!("{error}");
                    }
                }
            });
        }
    });
}

/// An item that knows how many of it there are.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(alive: &'a AtomicUsize, most: &AtomicUsize) -> Self {
        most.fetch_max(alive.fetch_add(1, SeqCst) + 1, SeqCst);
        Counted(alive)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// The most items that were there at once.
fn most_at_once(run: impl FnOnce(&mut dyn Iterator<Item = Counted<'_>>)) -> usize {
    let (alive, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    run(&mut (0..10_000).map(|_| Counted::new(&alive, &most)));
    assert_eq!(alive.load(SeqCst), 0);
    most.load(SeqCst)
}

#[test]
fn flaw_the_queue_has_no_bound() {
    let work = |_: Counted<'_>| Ok::<_, String>(());
    assert_eq!(most_at_once(|input| original(input, 3, work)), 10_000);
    let most = most_at_once(|input| {
        let report = input.in_parallel().threads(3).queue(5).run(work).unwrap();
        assert!(report.is_complete());
    });
    assert!(most <= 3 + 5, "{most} items at once");
}

#[test]
fn flaw_errors_are_lost() {
    let work = |number: u32| {
        if number % 100 == 7 {
            Err(format!("no {number}"))
        } else {
            Ok(())
        }
    };
    // All that the caller gets of the original is that it came back.
    let () = original(0..1_000, 3, work);
    let report = (0..1_000).in_parallel_n(3, work).unwrap();
    let failures: Vec<_> = report
        .failures()
        .map(|(index, why)| (index, why.clone()))
        .collect();
    let expected: Vec<_> = (0..10)
        .map(|hundred| hundred * 100 + 7)
        .map(|index| (index, NotDone::Failed(format!("no {index}"))))
        .collect();
    assert_eq!(failures, expected);
    let error = report.into_result().unwrap_err();
    assert_eq!(error.failures(), expected);
    assert_eq!(
        error.to_string(),
        "to the end of the input: 990 ok, 10 failed, 0 panicked, 0 skipped; item 7 failed: no 7"
    );
}

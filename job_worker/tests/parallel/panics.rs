use crate::panic_of;
use job_worker::InParallel;
use job_worker::parallel::{NotDone, StopToken};
use std::convert::Infallible;
use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[test]
fn a_panic_of_the_input_goes_on_unwinding() {
    let done = AtomicUsize::new(0);
    let message = panic_of(|| {
        (0..)
            .map(|number| if number == 50 { panic!("no more") } else { number })
            .in_parallel_n(3, |_| {
                done.fetch_add(1, SeqCst);
                Ok::<_, Infallible>(())
            })
    });
    assert_eq!(message, "no more");
    assert!(done.load(SeqCst) <= 50);
}

#[test]
fn a_panic_in_the_drop_of_the_input_goes_on_unwinding() {
    struct Input;
    impl Iterator for Input {
        type Item = ();
        fn next(&mut self) -> Option<()> {
            None
        }
    }
    impl Drop for Input {
        fn drop(&mut self) {
            panic!("not closed");
        }
    }
    assert_eq!(
        panic_of(|| Input.in_parallel_n(3, Ok::<_, Infallible>)),
        "not closed"
    );
}

#[test]
fn a_panic_of_a_callback_goes_on_unwinding() {
    // The inputs are endless: that it comes back shows that nothing more is pulled.
    let message = panic_of(|| {
        let builder = (0..).in_parallel().threads(3).on_progress(|progress| {
            if progress.counts.ok > 100 {
                panic!("the terminal is gone");
            }
        });
        builder.run(Ok::<u64, Infallible>)
    });
    assert_eq!(message, "the terminal is gone");
    let message = panic_of(|| {
        (0..)
            .in_parallel()
            .threads(3)
            .for_each_outcome(Ok::<u64, Infallible>, |index, _| {
                if index == 100 {
                    panic!("the file is full");
                }
            })
    });
    assert_eq!(message, "the file is full");
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn a_panic_in_the_drop_of_an_item_is_its_outcome() {
    let report = (0..20)
        .map(|number| (number % 2 == 0).then(|| Bomb))
        .in_parallel_n(2, |item| {
            drop(item);
            Ok::<_, Infallible>(())
        })
        .unwrap();
    assert_eq!((report.counts().ok, report.counts().panicked), (10, 10));
}

#[test]
fn a_panic_in_the_drop_of_a_skipped_item_is_its_outcome() {
    let token = StopToken::new();
    let report = (0..3)
        .map(|number| (number, (number > 0).then(|| Bomb)))
        .inspect(|(number, _)| {
            // Nothing is started before the last item was pulled.
            if *number == 2 {
                token.stop();
                token.stop();
            }
        })
        .in_parallel()
        .threads(1)
        .queue(3)
        .stop(&token)
        .run(|(number, bomb)| {
            while !token.is_stopped() {
                std::thread::yield_now();
            }
            std::mem::forget(bomb);
            Ok::<_, Infallible>(number)
        })
        .unwrap();
    let dropped = |index: usize| matches!(&report.outcomes()[index], Err(NotDone::Panicked(panic)) if panic.message() == "dropped");
    assert!(dropped(1) && dropped(2));
}

#[test]
fn a_panic_may_carry_anything() {
    let report = (0..3)
        .in_parallel_n(2, |number| -> Result<(), Infallible> {
            match number {
                0 => panic!("number {number}"),
                1 => panic_any(1),
                _ => panic_any(Bomb),
            }
        })
        .unwrap();
    let messages: Vec<_> = report.failures().map(|(_, why)| why.to_string()).collect();
    let other = "panicked: a value that is no text";
    assert_eq!(messages, ["panicked: number 0", other, other]);
}

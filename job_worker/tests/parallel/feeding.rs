use job_worker::InParallel;
use job_worker::parallel::{Order, ParallelError, StopToken};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

/// What a test waits at most before it fails; none waits so long when it passes.
const FAR: Duration = Duration::from_secs(60);

#[test]
fn as_many_threads_as_asked_for_are_at_it_at_once() {
    let barrier = Barrier::new(5);
    let report = (0..50).in_parallel_n(5, |_| {
        barrier.wait();
        Ok::<_, Infallible>(())
    });
    assert!(report.unwrap().is_complete());
}

#[test]
fn the_default_queue_is_as_long_as_there_are_threads() {
    let (pulled, at_gate) = (AtomicUsize::new(0), Barrier::new(4));
    let seen = AtomicUsize::new(0);
    // Until items have shown that they are quick, they are taken to be slow.
    let report = (0..1_000)
        .inspect(|_| {
            pulled.fetch_add(1, SeqCst);
        })
        .in_parallel_n(4, |item| {
            if item < 4 {
                at_gate.wait();
                seen.fetch_max(pulled.load(SeqCst), SeqCst);
                at_gate.wait();
            }
            Ok::<_, Infallible>(())
        });
    assert!(report.unwrap().is_complete());
    assert!((4..=8).contains(&seen.load(SeqCst)), "{seen:?} were pulled");
}

#[test]
fn without_a_queue_an_item_is_pulled_when_a_thread_is_free() {
    let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let report = (0..5_000)
        .inspect(|_| {
            most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
        })
        .in_parallel()
        .threads(3)
        .queue(0)
        .run(|_| {
            running.fetch_sub(1, SeqCst);
            Ok::<_, Infallible>(())
        });
    assert!(report.unwrap().is_complete());
    assert!(most.load(SeqCst) <= 3);
}

#[test]
fn an_item_goes_to_a_thread_as_soon_as_it_is_pulled() {
    // The input gives the next item only when the one before has been told.
    let (tell, hear) = mpsc::channel();
    let mut next = 0;
    let input = std::iter::from_fn(|| {
        if next > 0 {
            assert_eq!(hear.recv_timeout(FAR), Ok(next - 1));
        }
        next += 1;
        (next <= 5_000).then_some(next - 1)
    });
    let summary = input
        .in_parallel()
        .threads(2)
        .for_each_outcome(Ok::<_, Infallible>, |_, value| tell.send(value.unwrap()).unwrap());
    assert_eq!(summary.unwrap().into_result().unwrap().ok, 5_000);
}

#[test]
fn a_slow_item_holds_back_neither_items_nor_outcomes() {
    const ITEMS: usize = 20_000;
    for threads in [2, 4] {
        // The slow item comes when the others have shown that they are quick, and ends when all others have been told.
        let (tell, hear) = mpsc::channel();
        let hear = std::sync::Mutex::new(hear);
        let mut told = 0;
        let summary = (0..ITEMS)
            .in_parallel()
            .threads(threads)
            .for_each_outcome(
                |item| match item {
                    15_000 => hear.lock().unwrap().recv_timeout(FAR),
                    _ => Ok(()),
                },
                |_, outcome| {
                    assert!(outcome.is_ok());
                    told += 1;
                    if told == ITEMS - 1 {
                        tell.send(()).unwrap();
                    }
                },
            )
            .unwrap();
        assert_eq!(summary.into_result().unwrap().ok, ITEMS as u64);
    }
}

#[test]
fn behind_a_slow_item_the_others_go_no_further_than_the_window() {
    const WINDOW: usize = 10;
    let (pulled, finished) = (AtomicUsize::new(0), Barrier::new(2));
    let mut told = Vec::new();
    let summary = (0..500)
        .inspect(|_| {
            pulled.fetch_add(1, SeqCst);
        })
        .in_parallel()
        .threads(2)
        .order(Order::Input)
        .window(WINDOW)
        .for_each_outcome(
            |item| {
                if item == 0 || item == WINDOW - 1 {
                    finished.wait();
                }
                // The first item comes to its end only when the last one in the window has been started.
                Ok::<_, Infallible>(if item == 0 { pulled.load(SeqCst) } else { 0 })
            },
            |index, value| told.push((index, value.unwrap())),
        )
        .unwrap();
    assert_eq!(summary.into_result().unwrap().ok, 500);
    assert_eq!(told[0], (0, WINDOW));
    assert!(told.iter().map(|(index, _)| *index).eq(0..500));
}

#[test]
fn the_input_stays_on_the_callers_thread() {
    let numbers = Rc::new(vec![1, 2, 3]);
    let input = numbers
        .iter()
        .zip(std::iter::repeat(numbers.clone()))
        .map(|(number, _)| *number);
    let doubled = input.in_parallel_n(2, |number| Ok::<_, Infallible>(number * 2));
    assert_eq!(doubled.unwrap().into_result().unwrap(), [2, 4, 6]);
}

#[test]
fn an_endless_input_ends_with_the_token() {
    let token = StopToken::new();
    let mut told = 0u32;
    let summary = std::iter::repeat(())
        .in_parallel()
        .threads(2)
        .stop(&token)
        .for_each_outcome(Ok::<_, Infallible>, |_, _| {
            told += 1;
            if told == 100_000 {
                token.stop();
            }
        })
        .unwrap();
    assert_eq!(summary.end(), job_worker::parallel::End::Stopped);
    // What was pulled before the stop was done: nothing is skipped.
    assert_eq!(
        (summary.counts().ok, summary.counts().skipped),
        (u64::from(told), 0)
    );
}

#[test]
fn more_threads_than_any_system_gives_are_refused_before_the_input_is_touched() {
    for threads in [usize::MAX, (1 << 16) + 1] {
        let input = (0_u64..).inspect(|_| panic!("the input was touched"));
        let refused = input
            .in_parallel()
            .threads(threads)
            .for_each_outcome(Ok::<_, String>, |_, _| ());
        assert!(
            matches!(refused, Err(ParallelError::TooManyThreads(number)) if number == threads),
            "{refused:?}"
        );
    }
}

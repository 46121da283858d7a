use job_worker::InParallel;
use job_worker::parallel::{End, Halt, NotDone, StopToken};
use std::convert::Infallible;
use std::sync::Barrier;
use std::sync::mpsc;

/// An endless input of which every item fails.
fn halted(threads: usize, halt: Halt) -> job_worker::parallel::Report<(), u64> {
    let report = (0..).in_parallel().threads(threads).queue(10).halt(halt).run(Err);
    let report = report.unwrap();
    assert_eq!(report.end(), End::Halted);
    assert!(report.counts().failed >= 5);
    // Each item that was pulled has its outcome.
    assert_eq!(report.counts().items(), report.outcomes().len() as u64);
    report
}

#[test]
fn halting_soon_does_what_was_pulled() {
    for threads in [1, 4] {
        let report = halted(threads, Halt::Soon { after: 5 });
        assert_eq!(report.counts().skipped, 0);
        assert!(report.counts().failed <= 5 + (threads as u64 + 10));
    }
}

#[test]
fn halting_now_starts_nothing_more() {
    assert_eq!(halted(1, Halt::Now { after: 5 }).counts().failed, 5);
    let counts = halted(4, Halt::Now { after: 5 }).counts();
    // Each of the other threads may have had an item in hand.
    assert!(counts.failed <= 5 + 3);
}

#[test]
fn panics_count_as_failures() {
    let report = (0..)
        .in_parallel()
        .threads(2)
        .halt(Halt::Soon { after: 3 })
        .run(|_: u64| -> Result<(), Infallible> { panic!("never") })
        .unwrap();
    assert_eq!(report.end(), End::Halted);
    assert!(report.counts().panicked >= 3);
}

#[test]
fn failures_below_the_number_do_not_halt() {
    let report = (0..100)
        .in_parallel()
        .threads(2)
        .halt(Halt::Now { after: 5 })
        .run(|number| if number < 4 { Err(number) } else { Ok(()) })
        .unwrap();
    assert_eq!(report.end(), End::InputEnded);
    assert_eq!((report.counts().ok, report.counts().failed), (96, 4));
}

#[test]
fn a_second_stop_skips_what_was_not_started() {
    // Two items are at it and three wait when the stops come; the input is endless.
    let token = StopToken::new();
    let started = Barrier::new(3);
    let (pulled, all_pulled) = mpsc::channel();
    let stopped = Barrier::new(3);
    std::thread::scope(|scope| {
        let (token, started, stopped) = (&token, &started, &stopped);
        scope.spawn(move || {
            started.wait();
            assert_eq!(all_pulled.iter().take(5).last(), Some(4));
            token.stop();
            token.stop();
            stopped.wait();
        });
        let report = (0..)
            .inspect(|item| {
                let _ = pulled.send(*item);
            })
            .in_parallel()
            .threads(2)
            .queue(3)
            .stop(token)
            .run(|item: u64| {
                started.wait();
                stopped.wait();
                Ok::<_, Infallible>(item)
            })
            .unwrap();
        assert_eq!(report.end(), End::Stopped);
        assert_eq!(report.outcomes()[..2], [Ok(0), Ok(1)]);
        assert_eq!(report.outcomes()[2..], [const { Err(NotDone::Skipped) }; 3]);
    });
}

#[test]
fn a_token_that_was_stopped_before_lets_nothing_be_pulled() {
    let token = StopToken::new();
    token.stop();
    let input = std::iter::from_fn(|| -> Option<u8> { unreachable!("it was pulled") });
    let report = input
        .in_parallel()
        .threads(2)
        .stop(&token)
        .run(Ok::<_, Infallible>)
        .unwrap();
    assert_eq!((report.end(), report.counts().items()), (End::Stopped, 0));
    assert!(report.into_result().is_err());
}

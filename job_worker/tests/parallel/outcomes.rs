use job_worker::InParallel;
use job_worker::parallel::{End, Halt, NotDone, Order, ParallelError};
use std::collections::HashSet;
use std::convert::Infallible;

fn halve(number: u64) -> Result<u64, String> {
    match number % 10 {
        9 => panic!("no tens"),
        odd if odd % 2 == 1 => Err(format!("{number} is odd")),
        _ => Ok(number / 2),
    }
}

#[test]
fn each_item_has_its_outcome_at_its_index() {
    for threads in [1, 2, 7] {
        for items in [0, 1, 2, 100, 3_000] {
            let report = (0..items).in_parallel_n(threads, halve).unwrap();
            assert_eq!(report.outcomes().len() as u64, items);
            for (number, outcome) in (0..items).zip(report.outcomes()) {
                match number % 10 {
                    9 => assert!(
                        matches!(outcome, Err(NotDone::Panicked(panic)) if panic.message() == "no tens")
                    ),
                    1 | 3 | 5 | 7 => assert_eq!(outcome, &Err(NotDone::Failed(format!("{number} is odd")))),
                    _ => assert_eq!(outcome, &Ok(number / 2)),
                }
            }
            let counts = report.counts();
            assert_eq!(counts.items(), items);
            assert_eq!((counts.panicked, counts.skipped), (items / 10, 0));
            assert_eq!(report.end(), End::InputEnded);
            assert_eq!(report.ignore_failures().len() as u64, counts.ok);
        }
    }
}

#[test]
fn each_item_is_done_once_in_every_shape() {
    const ITEMS: usize = 20_000;
    for order in [Order::Unordered, Order::Input] {
        for queue in [None, Some(0), Some(1), Some(100)] {
            for window in [1, 3, 1_024] {
                let mut told = Vec::new();
                let builder = (0..ITEMS).in_parallel().threads(3).order(order).window(window);
                let builder = match queue {
                    Some(items) => builder.queue(items),
                    None => builder,
                };
                let summary = builder
                    .for_each_outcome(Ok::<_, Infallible>, |index, value| {
                        told.push((index, value.unwrap()))
                    })
                    .unwrap();
                assert_eq!(summary.into_result().unwrap().ok, ITEMS as u64);
                if order == Order::Unordered {
                    told.sort_unstable();
                }
                assert!(told.into_iter().eq((0..ITEMS).map(|item| (item, item))));
                if order == Order::Unordered {
                    // It has no window.
                    break;
                }
            }
        }
    }
}

#[test]
fn options_with_which_nothing_can_be_done_are_errors() {
    let nothing = |_: u8| Ok::<_, Infallible>(());
    let error = |result: Result<_, ParallelError>| -> ParallelError {
        let result: Result<job_worker::parallel::Report<(), Infallible>, _> = result;
        result.unwrap_err()
    };
    assert_eq!(error([1].in_parallel_n(0, nothing)), ParallelError::NoThreads);
    assert_eq!(
        error([1].in_parallel().window(0).run(nothing)),
        ParallelError::NoWindow
    );
    for halt in [Halt::Soon { after: 0 }, Halt::Now { after: 0 }] {
        assert_eq!(
            error([1].in_parallel().halt(halt).run(nothing)),
            ParallelError::HaltAtStart
        );
    }
}

#[test]
fn a_summary_keeps_the_first_failures() {
    let mut failed = HashSet::new();
    let summary = (0..1_000)
        .in_parallel()
        .threads(2)
        .order(Order::Input)
        .keep_failures(3)
        .for_each_outcome(Err::<(), u32>, |index, outcome| {
            assert_eq!(outcome, Err(&NotDone::Failed(index as u32)));
            failed.insert(index);
        })
        .unwrap();
    assert_eq!(failed.len(), 1_000);
    assert_eq!(summary.counts().failed, 1_000);
    let kept: Vec<_> = (0..3)
        .map(|index| (index, NotDone::Failed(index as u32)))
        .collect();
    assert_eq!(summary.failures(), kept);
    assert!(summary.into_result().is_err());
}

#[test]
fn progress_comes_to_the_last_item() {
    let mut seen = Vec::new();
    let report = (0..500)
        .in_parallel()
        .threads(2)
        .on_progress(|progress| seen.push(*progress))
        .run(halve)
        .unwrap();
    assert!(seen.is_sorted_by_key(|progress| progress.counts.items()));
    assert!(seen.iter().all(|progress| progress.total == Some(500)));
    assert_eq!(seen.last().unwrap().counts, report.counts());
}

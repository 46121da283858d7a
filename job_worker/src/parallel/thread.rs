use super::error::ThreadError;
use super::hand::Indexed;
use super::outcome::{NotDone, Outcome, Panic, caught};
use super::shared::Shared;
use super::token::Level;
use std::error::Error;
use std::time::Instant;

/// What `init` gives.
pub(super) type Init<C> = Result<C, Box<dyn Error + Send + Sync>>;

/// One thread: takes items until there are none.
pub(super) fn take_part<T, C, R, E>(
    shared: &Shared<'_, T, R, E>,
    me: usize,
    init: &(impl Fn() -> Init<C> + Sync),
    work: &(impl Fn(&mut C, T) -> Result<R, E> + Sync),
) {
    if let Some(context) = start(shared, init) {
        do_items(shared, me, context, init, work);
    }
    leave(shared, me);
}

/// Says that the thread does nothing more.
pub(super) fn leave<T, R, E>(shared: &Shared<'_, T, R, E>, me: usize) {
    let hand = &shared.hands[me];
    shared.tell(hand, &mut Vec::new());
    shared.queue.leave(hand);
}

fn do_items<T, C, R, E>(
    shared: &Shared<'_, T, R, E>,
    me: usize,
    mut context: C,
    init: &impl Fn() -> Init<C>,
    work: &impl Fn(&mut C, T) -> Result<R, E>,
) {
    let hand = &shared.hands[me];
    let mut last: Option<Indexed<Outcome<R, E>>> = None;
    let mut buffer = Vec::new();
    let (mut done, mut began) = (0, Instant::now());
    while shared.level() < Level::Now {
        let Some((index, item)) = hand.next(last.take()) else {
            let took = began.elapsed();
            shared.tell(hand, &mut buffer);
            if !shared.queue.refill(&shared.hands, me, (done, took)) {
                break;
            }
            (done, began) = (0, Instant::now());
            continue;
        };
        let outcome = match caught(|| work(&mut context, item)) {
            Ok(result) => result.map_err(NotDone::Failed),
            Err(payload) => Err(NotDone::Panicked(Panic::new(payload))),
        };
        done += 1;
        if let Err(why) = &outcome {
            shared.count_failure();
            if matches!(why, NotDone::Panicked(_)) {
                // What a panic leaves behind, such as an open transaction, must not reach the next item.
                hand.lay_down(Some((index, outcome)));
                end(shared, context);
                match start(shared, init) {
                    Some(fresh) => context = fresh,
                    None => return,
                }
                continue;
            }
        }
        last = Some((index, outcome));
    }
    hand.lay_down(last);
    end(shared, context);
}

/// Calls `init`.
fn start<T, C, R, E>(shared: &Shared<'_, T, R, E>, init: &impl Fn() -> Init<C>) -> Option<C> {
    let error = match caught(init) {
        Ok(Ok(context)) => return Some(context),
        Ok(Err(error)) => ThreadError::InitFailed(error),
        Err(payload) => ThreadError::InitPanicked(Panic::new(payload)),
    };
    shared.note(error);
    None
}

/// Drops what `init` gave.
fn end<T, C, R, E>(shared: &Shared<'_, T, R, E>, context: C) {
    if let Err(payload) = caught(|| drop(context)) {
        shared.note(ThreadError::DropPanicked(Panic::new(payload)));
    }
}

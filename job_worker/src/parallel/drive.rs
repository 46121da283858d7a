use super::error::ThreadError;
use super::options::{Options, Order};
use super::outcome::{NotDone, Panic, Payload, caught, drop_quietly};
use super::queue::Room;
use super::shared::Shared;
use super::sink::{Emit, Sink};
use super::summary::{Counts, End};
use super::thread::{Init, leave, take_part};
use super::token::Level;
use std::panic::resume_unwind;
use std::sync::PoisonError;
use std::thread;

/// How it went, the outcomes apart.
pub(super) struct Ending {
    pub(super) counts: Counts,
    pub(super) end: End,
    pub(super) thread_errors: Vec<ThreadError>,
}

/// Starts the threads, feeds them, waits for them and tells what nobody has started. The options have been checked.
///
/// A panic of the input or of a callback ends it like a stop now, and then goes on unwinding.
pub(super) fn drive<I, C, R, E>(
    input: I,
    mut options: Options<'_>,
    init: &(impl Fn() -> Init<C> + Sync),
    work: &(impl Fn(&mut C, I::Item) -> Result<R, E> + Sync),
    emit: Emit<'_, R, E>,
) -> Ending
where
    I: Iterator<Item: Send>,
    R: Send,
    E: Send,
{
    let (least, most) = input.size_hint();
    // More threads than items would have nothing to do.
    let threads = options.threads.min(most.unwrap_or(usize::MAX)).max(1);
    let in_order = options.order == Order::Input;
    let window = in_order.then_some(options.window);
    let sink = Sink::new(
        emit,
        options.on_progress.take(),
        most.filter(|most| *most == least),
        in_order,
    );
    let shared = Shared::new(threads, &options, window, sink);

    let fed = thread::scope(|scope| {
        for me in 0..threads {
            let thread = thread::Builder::new().name(format!("in_parallel-{me}"));
            if let Err(error) = thread.spawn_scoped(scope, {
                let shared = &shared;
                move || take_part(shared, me, init, work)
            }) {
                shared.note(ThreadError::NotSpawned(error));
                leave(&shared, me);
            }
        }
        let fed = caught(|| feed(&shared, input));
        if fed.is_err() {
            shared.raise(Level::Now);
        }
        shared.queue.close();
        while !shared.queue.wait_for_threads() {
            sweep(&shared);
        }
        fed
    });
    let skipped = skip_rest(&shared);
    end(shared, fed, skipped)
}

/// Pulls the input while there is room, and gives whether it came to its end.
fn feed<T, R, E>(shared: &Shared<'_, T, R, E>, mut input: impl Iterator<Item = T>) -> bool {
    let mut room = shared.queue.wait_for_room(false);
    while shared.level() == Level::Running {
        match room {
            Room::Free => match input.next() {
                Some(item) => room = shared.queue.push(item),
                None => return true,
            },
            Room::Full => {
                room = shared.queue.wait_for_room(true);
                if room == Room::Full {
                    sweep(shared);
                }
            }
            Room::NoThreads => return shared.queue.is_empty() && is_over(shared, &mut input),
        }
    }
    false
}

/// Whether the input ends where no thread is left: when the last one goes must not decide whether that is seen. What it
/// gives instead of its end is skipped.
fn is_over<T, R, E>(shared: &Shared<'_, T, R, E>, input: &mut impl Iterator<Item = T>) -> bool {
    let Some(item) = input.next() else {
        return true;
    };
    shared.queue.push(item);
    false
}

/// Tells what lies in the hands of threads, which may be stuck in a slow item.
fn sweep<T, R, E>(shared: &Shared<'_, T, R, E>) {
    let mut buffer = Vec::new();
    for hand in &shared.hands {
        shared.tell(hand, &mut buffer);
    }
}

/// Tells the items that nobody has started, now that the threads are gone, and gives whether there were any.
fn skip_rest<T, R, E>(shared: &Shared<'_, T, R, E>) -> bool {
    let rest = shared.queue.take_rest();
    let skipped = !rest.is_empty();
    for (index, item) in rest {
        let why = match caught(|| drop(item)) {
            Ok(()) => NotDone::Skipped,
            Err(payload) => NotDone::Panicked(Panic::new(payload)),
        };
        shared.hands[0].lay_down(Some((index, Err(why))));
    }
    sweep(shared);
    skipped
}

fn end<T, R, E>(shared: Shared<'_, T, R, E>, fed: Result<bool, Payload>, skipped: bool) -> Ending {
    let end = match fed {
        Ok(true) if !skipped => End::InputEnded,
        _ if shared.is_halted() => End::Halted,
        _ if shared.level() > Level::Running => End::Stopped,
        _ => End::ThreadsGone,
    };
    let sink = shared.sink.into_inner().unwrap_or_else(PoisonError::into_inner);
    let counts = sink.counts();
    let thrown = sink.end();
    if let Err(payload) = fed {
        drop_quietly(thrown);
        resume_unwind(payload);
    }
    if let Some(payload) = thrown {
        resume_unwind(payload);
    }
    Ending {
        counts,
        end,
        thread_errors: shared
            .thread_errors
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds after the only thread has left, and gives whether the input ended and whether items are left over.
    fn fed_late(input: impl Iterator<Item = u8>) -> (bool, bool) {
        let mut emit = |_: usize, _: Result<(), NotDone<()>>| {};
        let sink = Sink::new(&mut emit, None, None, false);
        let shared: Shared<'_, u8, (), ()> = Shared::new(1, &Options::new(), None, sink);
        leave(&shared, 0);
        let is_over = feed(&shared, input);
        (is_over, skip_rest(&shared))
    }

    #[test]
    fn an_input_that_is_over_is_so_whether_a_thread_is_left_or_not() {
        assert_eq!(fed_late(std::iter::empty()), (true, false));
        assert_eq!(fed_late(0..1), (false, true));
        assert_eq!(fed_late(std::iter::repeat(0)), (false, true));
    }
}

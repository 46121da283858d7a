use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::RawFd;
use std::time::Duration;

/// How often a search may begin anew: a notification that comes at the wrong moment spoils it.
const TRIES: usize = 3;

/// In how many rounds the socket must behave like the one that is looked for, and in how many it must have been told from
/// all others.
const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 10;

/// How long to wait for the first bytes, and after some for those of other sockets.
const FIRST: Duration = Duration::from_millis(50);
const NEXT: Duration = Duration::from_millis(5);

/// A connection's socket, to be waited on. It is not ours: nothing is read from it, and the one who closes it is the
/// connection.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: RawFd,
    poll: Poll,
    events: Events,
}

impl Socket {
    /// Finds, among all sockets of this process, the one that has something to read whenever there is something unread on
    /// the connection, and never else. `while_unread` calls what it is given while there is, and gives whether it did so.
    pub(crate) fn find(mut while_unread: impl FnMut(&mut dyn FnMut()) -> bool) -> Option<Socket> {
        for _ in 0..TRIES {
            let mut candidates = sockets().ok()?;
            for round in 1..=MOST_ROUNDS {
                let mut readable = Vec::new();
                if !while_unread(&mut || readable = lastingly_readable(&candidates).unwrap_or_default()) {
                    return None;
                }
                let still = readable_of(&readable, Duration::ZERO).ok()?;
                readable.retain(|fd| !still.contains(fd));
                candidates = readable;
                match candidates[..] {
                    [] => break,
                    [fd] if round >= ROUNDS => return Socket::new(fd).ok(),
                    _ => {}
                }
            }
        }
        None
    }

    fn new(fd: RawFd) -> io::Result<Socket> {
        let poll = Poll::new()?;
        poll.registry()
            .register(&mut SourceFd(&fd), Token(0), Interest::READABLE)?;
        Ok(Socket {
            fd,
            poll,
            events: Events::with_capacity(1),
        })
    }

    /// Waits until there is something to read or the other side is gone, at most so long, and gives whether it is so.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        // Anew each time: else it would tell only of what has come since the last time.
        self.poll
            .registry()
            .reregister(&mut SourceFd(&self.fd), Token(0), Interest::READABLE)?;
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Ok(()) => Ok(!self.events.is_empty()),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The sockets of this process; where files cannot be told from sockets, the files too.
fn sockets() -> io::Result<Vec<RawFd>> {
    let listed = fs::read_dir("/proc/self/fd").or_else(|_| fs::read_dir("/dev/fd"))?;
    Ok(listed
        .flatten()
        .filter(|entry| {
            fs::read_link(entry.path()).map_or(true, |link| link.to_string_lossy().starts_with("socket:"))
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect())
}

/// Those that get something to read and still have it when nothing more comes: others are read meanwhile by their owners.
fn lastingly_readable(fds: &[RawFd]) -> io::Result<Vec<RawFd>> {
    readable_of(&readable_of(fds, FIRST)?, Duration::ZERO)
}

/// Those that have something to read, or get it within that time. One that is closed in the meantime has not.
fn readable_of(fds: &[RawFd], first: Duration) -> io::Result<Vec<RawFd>> {
    let mut poll = Poll::new()?;
    for (number, fd) in fds.iter().enumerate() {
        let registered = poll
            .registry()
            .register(&mut SourceFd(fd), Token(number), Interest::READABLE);
        if let Err(error) = registered {
            log::trace!("gatun: descriptor {fd} cannot be waited on: {error}");
        }
    }
    let mut events = Events::with_capacity(fds.len().max(1));
    let mut readable = Vec::new();
    let mut timeout = first;
    loop {
        match poll.poll(&mut events, Some(timeout)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            polled => polled?,
        }
        let known = readable.len();
        for event in events.iter().filter(|event| event.is_readable()) {
            let fd = fds[event.token().0];
            if !readable.contains(&fd) {
                readable.push(fd);
            }
        }
        if readable.len() == known || first.is_zero() {
            return Ok(readable);
        }
        timeout = NEXT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn write(socket: &mut UnixStream) {
        socket.write_all(b"unread").unwrap();
    }

    fn read(socket: &mut UnixStream) {
        socket.read_exact(&mut [0; 6]).unwrap();
    }

    #[test]
    fn the_socket_is_told_from_silent_full_and_busy_ones() {
        let (mut server, mut client) = UnixStream::pair().unwrap();
        let (_silent, _other) = UnixStream::pair().unwrap();
        let (mut filler, _full) = UnixStream::pair().unwrap();
        write(&mut filler);
        let (mut sender, mut receiver) = UnixStream::pair().unwrap();
        let busy = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while busy.load(Ordering::Relaxed) {
                    write(&mut sender);
                    read(&mut receiver);
                }
            });
            let found = Socket::find(|work| {
                write(&mut server);
                work();
                read(&mut client);
                true
            });
            busy.store(false, Ordering::Relaxed);
            assert_eq!(found.map(|socket| socket.fd), Some(client.as_raw_fd()));
        });
    }

    #[test]
    fn a_notification_in_the_middle_of_the_search_does_not_spoil_it() {
        let (mut server, mut client) = UnixStream::pair().unwrap();
        let mut calls = 0;
        let found = Socket::find(|work| {
            calls += 1;
            write(&mut server);
            work();
            read(&mut client);
            match calls {
                2 => write(&mut server),
                // What came is read by the next call.
                3 => read(&mut client),
                _ => {}
            }
            true
        });
        assert_eq!(found.map(|socket| socket.fd), Some(client.as_raw_fd()));
    }

    #[test]
    fn no_socket_is_found_where_there_is_none() {
        assert!(Socket::find(|_| false).is_none());
        assert!(
            Socket::find(|work| {
                work();
                true
            })
            .is_none()
        );
    }

    #[test]
    fn a_wait_ends_when_there_is_something_to_read_as_long_as_there_is() {
        let (mut server, mut client) = UnixStream::pair().unwrap();
        let mut socket = Socket::new(client.as_raw_fd()).unwrap();
        assert!(!socket.wait(Duration::ZERO).unwrap());
        write(&mut server);
        assert!(socket.wait(Duration::from_secs(60)).unwrap());
        assert!(
            socket.wait(Duration::from_secs(60)).unwrap(),
            "it is still unread"
        );
        read(&mut client);
        assert!(!socket.wait(Duration::ZERO).unwrap());
        drop(server);
        assert!(
            socket.wait(Duration::from_secs(60)).unwrap(),
            "the other side is gone"
        );
        drop(client);
        assert!(socket.wait(Duration::ZERO).is_err());
    }
}

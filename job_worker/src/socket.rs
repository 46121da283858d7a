//! Waits on the socket of a connection, which Diesel has but does not tell. Where it cannot be found, the caller looks at
//! the connection now and then.

#[cfg(all(unix, feature = "listen"))]
mod unix;
#[cfg(all(unix, feature = "listen"))]
pub(crate) use unix::Socket;

/// How often in a row something may be heard that the socket did not announce, or the other way round, before it is taken
/// for the wrong one.
const MISSED: u32 = 3;
const IN_VAIN: u32 = 100;

/// Whether what a socket announces is what is heard on the connection.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    missed: u32,
    in_vain: u32,
}

impl Trust {
    /// Learns whether the socket had something, and whether it was heard then; gives whether the socket is still trusted.
    pub(crate) fn learn(&mut self, announced: bool, heard: bool) -> bool {
        match (announced, heard) {
            (true, true) => *self = Trust::default(),
            (false, true) => self.missed += 1,
            // A part of a message, or something that is no notification.
            (true, false) => self.in_vain += 1,
            (false, false) => self.in_vain = 0,
        }
        self.missed < MISSED && self.in_vain < IN_VAIN
    }
}

/// No socket is ever found.
#[cfg(not(all(unix, feature = "listen")))]
#[derive(Debug)]
pub(crate) enum Socket {}

#[cfg(not(all(unix, feature = "listen")))]
impl Socket {
    pub(crate) fn find(_while_unread: impl FnMut(&mut dyn FnMut()) -> bool) -> Option<Socket> {
        None
    }

    pub(crate) fn wait(&mut self, _timeout: std::time::Duration) -> std::io::Result<bool> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_trusted_until_it_is_wrong_again_and_again() {
        let mut trust = Trust::default();
        for _ in 0..1_000 {
            // A wait that ends just before something comes, and a message in parts.
            assert!(trust.learn(false, true) && trust.learn(true, false) && trust.learn(true, true));
            // What comes now and then and is no notification.
            assert!(trust.learn(true, false) && trust.learn(false, false));
        }
        assert_eq!((0..10).filter(|_| trust.learn(false, true)).count(), 2);
        let mut trust = Trust::default();
        assert_eq!((0..1_000).filter(|_| trust.learn(true, false)).count(), 99);
    }
}

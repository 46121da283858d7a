use super::free_port;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A proxy on the way to a server, which can be made to swallow all that comes: the connections stay, and nothing answers,
/// as when a network cable was pulled.
#[derive(Debug)]
pub struct Tap {
    port: u16,
    target: String,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    swallows: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl Tap {
    /// A proxy to the server of this URL, whose authority must have a port.
    pub fn start(url: &str) -> Self {
        let rest = url.split_once("://").expect("a URL").1;
        let authority = rest.split(['/', '?']).next().unwrap_or(rest);
        let target = authority.rsplit('@').next().unwrap_or(authority).to_owned();
        let listener = loop {
            if let Ok(listener) = TcpListener::bind(("127.0.0.1", free_port())) {
                break listener;
            }
        };
        let tap = Self {
            port: listener.local_addr().expect("an address").port(),
            target,
            shared: Arc::default(),
        };
        let (target, shared) = (tap.target.clone(), tap.shared.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(&target) {
                    forward(&client, &server, &shared);
                    forward(&server, &client, &shared);
                    shared.keep([client, server]);
                }
            }
        });
        tap
    }

    /// The URL through the proxy.
    pub fn url(&self, url: &str) -> String {
        url.replacen(&self.target, &format!("127.0.0.1:{}", self.port), 1)
    }

    /// Swallows from now on, or passes on again what comes from now on.
    pub fn swallow(&self, swallows: bool) {
        self.shared.swallows.store(swallows, Ordering::SeqCst);
    }
}

impl Shared {
    fn keep(&self, streams: [TcpStream; 2]) {
        let mut kept = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(streams);
    }
}

impl Drop for Tap {
    /// Ends the connections, so that who hangs is told.
    fn drop(&mut self) {
        let streams = self.shared.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in streams.iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn forward(from: &TcpStream, to: &TcpStream, shared: &Arc<Shared>) {
    let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else {
        return;
    };
    let shared = shared.clone();
    thread::spawn(move || {
        let mut buffer = [0; 16384];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if !shared.swallows.load(Ordering::SeqCst) && to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

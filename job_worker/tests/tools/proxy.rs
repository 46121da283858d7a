//! A network between a worker and its database, which fails as the test says.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// An answer that is to be lost: on the connection whose client has sent `after`, the answer to the next packet that holds
/// `victim`; then the connection is cut.
#[derive(Clone)]
struct Loss {
    after: String,
    victim: String,
}

/// What a test has said, and what came through.
#[derive(Default)]
struct Network {
    refuses: AtomicBool,
    holds: AtomicBool,
    accepted: AtomicUsize,
    lost: AtomicUsize,
    loss: Mutex<Option<Loss>>,
    /// Connections whose client has sent this text carry nothing back from then on, and are not closed.
    swallowing: Mutex<Option<String>>,
    swallowed: AtomicUsize,
    links: Mutex<Vec<TcpStream>>,
    /// What the clients have sent, by connection.
    sent: Mutex<Vec<Vec<u8>>>,
}

pub(crate) struct Proxy {
    url: String,
    network: Arc<Network>,
}

impl Proxy {
    /// A proxy in front of the server of a database's URL.
    pub(crate) fn to(url: &str) -> Self {
        let host = url
            .find('@')
            .or_else(|| url.find("://").map(|at| at + 2))
            .unwrap()
            + 1;
        let end = url[host..].find(['/', '?']).map_or(url.len(), |at| host + at);
        let server = url[host..end].to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let network = Arc::new(Network::default());
        let net = Arc::clone(&network);
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                net.accepted.fetch_add(1, Ordering::SeqCst);
                while net.holds.load(Ordering::SeqCst) {
                    thread::yield_now();
                    thread::park_timeout(std::time::Duration::from_millis(5));
                }
                if net.refuses.load(Ordering::SeqCst) {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(&server) {
                    link(&net, client, server);
                }
            }
        });
        Proxy {
            url: format!("{}{here}{}", &url[..host], &url[end..]),
            network,
        }
    }

    /// The database's URL through this proxy.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// How many connections were asked for.
    pub(crate) fn accepted(&self) -> usize {
        self.network.accepted.load(Ordering::SeqCst)
    }

    /// Lets nobody through, but does not refuse.
    pub(crate) fn hold(&self, holds: bool) {
        self.network.holds.store(holds, Ordering::SeqCst);
    }

    /// Cuts all connections, and lets no new ones through until it is `mend`ed.
    pub(crate) fn cut(&self) {
        self.network.refuses.store(true, Ordering::SeqCst);
        for link in self.network.links.lock().unwrap().drain(..) {
            let _ = link.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
        self.network.refuses.store(false, Ordering::SeqCst);
    }

    /// Loses one answer; see [`Loss`].
    pub(crate) fn lose_answer(&self, after: &str, victim: &str) {
        *self.network.loss.lock().unwrap() = Some(Loss {
            after: after.to_owned(),
            victim: victim.to_owned(),
        });
    }

    /// How many answers were lost.
    pub(crate) fn lost(&self) -> usize {
        self.network.lost.load(Ordering::SeqCst)
    }

    /// From now on, connections whose client sends this text are half dead: nothing comes back, and nobody closes them.
    pub(crate) fn swallow(&self, text: &str) {
        *self.network.swallowing.lock().unwrap() = Some(text.to_owned());
    }

    /// How many connections are half dead.
    pub(crate) fn swallowed(&self) -> usize {
        self.network.swallowed.load(Ordering::SeqCst)
    }

    /// What the clients have sent so far, by connection.
    pub(crate) fn sent(&self) -> Vec<Vec<u8>> {
        self.network.sent.lock().unwrap().clone()
    }
}

fn has(bytes: &[u8], text: &str) -> bool {
    text.is_empty() || bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Carries bytes in both directions until one side ends.
fn link(net: &Arc<Network>, client: TcpStream, server: TcpStream) {
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
        net.links.lock().unwrap().push(stream.try_clone().unwrap());
    }
    let at = {
        let mut sent = net.sent.lock().unwrap();
        sent.push(Vec::new());
        sent.len() - 1
    };
    let lose = Arc::new(AtomicBool::new(false));
    let swallow = Arc::new(AtomicBool::new(false));
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (net_up, lose_up, swallow_up) = (Arc::clone(net), Arc::clone(&lose), Arc::clone(&swallow));
    thread::spawn(move || {
        let (mut buffer, mut armed) = (vec![0; 1 << 16], None::<Loss>);
        while let Some(chunk) = read(&mut from, &mut buffer) {
            net_up.sent.lock().unwrap()[at].extend_from_slice(chunk);
            if let Some(loss) = &armed
                && has(chunk, &loss.victim)
            {
                lose_up.store(true, Ordering::SeqCst);
                armed = None;
            }
            let mut loss = net_up.loss.lock().unwrap();
            if loss.as_ref().is_some_and(|loss| has(chunk, &loss.after)) {
                armed = loss.take();
            }
            drop(loss);
            if net_up
                .swallowing
                .lock()
                .unwrap()
                .as_ref()
                .is_some_and(|text| has(chunk, text))
                && !swallow_up.swap(true, Ordering::SeqCst)
            {
                net_up.swallowed.fetch_add(1, Ordering::SeqCst);
            }
            if to.write_all(chunk).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (net_down, mut from, mut to) = (Arc::clone(net), server, client);
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Some(chunk) = read(&mut from, &mut buffer) {
            if swallow.load(Ordering::SeqCst) {
                continue;
            }
            if lose.load(Ordering::SeqCst) {
                net_down.lost.fetch_add(1, Ordering::SeqCst);
                let _ = from.shutdown(Shutdown::Both);
                break;
            }
            if to.write_all(chunk).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

fn read<'a>(stream: &mut TcpStream, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    match stream.read(buffer) {
        Ok(0) | Err(_) => None,
        Ok(number) => Some(&buffer[..number]),
    }
}

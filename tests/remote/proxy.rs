//! A proxy that delays: bytes pass in both directions after a fixed time, as on a long line, and as fast as they come. Threads copy, and a queue between two of
//! them holds what is under way.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A proxy. It ends its connections when it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    line: Arc<Line>,
    listening: Option<JoinHandle<()>>,
}

struct Line {
    server: SocketAddr,
    /// How long bytes are under way, in microseconds.
    delay: AtomicU64,
    ended: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// A proxy on a port of this machine, before a server. A byte is under way for `delay`, so a round trip takes twice as long.
    pub(crate) fn start(server: SocketAddr, delay: Duration) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let delay = AtomicU64::new(delay.as_micros() as u64);
        let line = Arc::new(Line { server, delay, ended: AtomicBool::new(false), streams: Mutex::default() });
        let serving = line.clone();
        let listening = std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if serving.ended.load(Ordering::SeqCst) {
                    return;
                }
                serving.connect(client);
            }
        });
        Proxy { address, line, listening: Some(listening) }
    }

    /// Its address for clients: `grpc://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("grpc://{}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes how long the bytes that come from now on are under way.
    pub(crate) fn set_delay(&self, delay: Duration) {
        self.line.delay.store(delay.as_micros() as u64, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.line.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that listens.
        drop(TcpStream::connect(self.address));
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
        for stream in self.line.streams.lock().unwrap().iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Line {
    /// Connects a client with the server. Without a server, the client's connection is closed.
    fn connect(self: &Arc<Line>, client: TcpStream) {
        let Ok(server) = TcpStream::connect(self.server) else { return };
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
        }
        self.streams.lock().unwrap().extend([&client, &server].map(|stream| stream.try_clone().unwrap()));
        for (from, to) in [(&client, &server), (&server, &client)] {
            self.pass(from.try_clone().unwrap(), to.try_clone().unwrap());
        }
    }

    /// Passes bytes on in one direction, and at last the end.
    fn pass(self: &Arc<Line>, mut from: TcpStream, mut to: TcpStream) {
        let (queue, queued) = mpsc::channel::<(Instant, Vec<u8>)>();
        let line = self.clone();
        std::thread::spawn(move || {
            let mut bytes = vec![0; 256 << 10];
            loop {
                let count = from.read(&mut bytes).unwrap_or(0);
                let due = Instant::now() + Duration::from_micros(line.delay.load(Ordering::SeqCst));
                // Nothing stands for the end.
                if queue.send((due, bytes[..count].to_vec())).is_err() || count == 0 {
                    return;
                }
            }
        });
        std::thread::spawn(move || {
            for (due, bytes) in queued {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                if bytes.is_empty() || to.write_all(&bytes).is_err() {
                    let _ = to.shutdown(Shutdown::Write);
                    return;
                }
            }
        });
    }
}

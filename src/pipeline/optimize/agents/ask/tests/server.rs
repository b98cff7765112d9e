//! A server on this machine that follows a script, in the order in which requests come. It reads the next request while it still answers one, and keeps what it
//! read.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use serde_json::{Value, json};

/// What the server does with one request.
pub(super) enum Does {
    /// Answers with status, headers and body.
    Answers(u16, Vec<(&'static str, String)>, String),
    /// Closes the connection without a response.
    Drops,
    /// Announces a length, sends less, and closes.
    Breaks,
    /// Sends nothing until the client is gone.
    Hangs,
    /// Reports that it has the request, waits for permission to go on, then answers.
    Waits(mpsc::Sender<()>, mpsc::Receiver<()>, String),
}

/// A request that it read.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) headers: Vec<String>,
    pub(super) body: Value,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) requests: Arc<Mutex<Vec<Request>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// A server that follows this script. Connections after the last entry are refused.
    pub(super) fn new(script: Vec<Does>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let kept = Arc::clone(&requests);
        let thread = std::thread::spawn(move || {
            std::thread::scope(|scope| {
                for does in script {
                    let Ok((stream, _)) = listener.accept() else { return };
                    // An empty line stops the server: see `drop`.
                    let Some(request) = read(&stream) else { return };
                    kept.lock().unwrap().push(request);
                    scope.spawn(|| act(stream, does));
                }
                // Connections after the last entry are refused, even while earlier ones are still being answered.
                drop(listener);
            });
        });
        Server { address, requests, thread: Some(thread) }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/v1/", self.address)
    }

    /// Waits until the server has read this many requests.
    pub(super) fn has_read(&self, count: usize) {
        while self.requests.lock().unwrap().len() < count {
            std::thread::yield_now();
        }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may be waiting for a connection that never comes.
        if let Ok(mut stream) = TcpStream::connect(self.address) {
            let _ = stream.write_all(b"\r\n");
        }
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = vec![];
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_string();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let length = lines.iter().find_map(|l| l.to_lowercase().strip_prefix("content-length: ")?.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = lines.first()?.split(' ').nth(1)?.to_string();
    Some(Request { path, headers: lines.split_off(1), body: serde_json::from_slice(&body).ok()? })
}

fn act(mut stream: TcpStream, does: Does) {
    match does {
        Does::Answers(status, headers, body) => write(&mut stream, status, &headers, &body),
        Does::Drops => {}
        Does::Breaks => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"choices\": [{");
        }
        Does::Hangs => {
            let _ = stream.read(&mut [0]);
        }
        Does::Waits(has, go, body) => {
            let _ = has.send(());
            let _ = go.recv();
            write(&mut stream, 200, &[], &body);
        }
    }
}

fn write(stream: &mut TcpStream, status: u16, headers: &[(&str, String)], body: &str) {
    let mut text = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
    // The client may be gone, which is no error of the server.
    let _ = stream.write_all(format!("{text}\r\n{body}").as_bytes());
}

/// A chat completion.
pub(super) fn completion(content: &str, finish: &str, tokens: Option<(u64, u64)>) -> String {
    let mut body =
        json!({ "choices": [{ "message": { "role": "assistant", "content": content }, "finish_reason": finish }] });
    if let Some((input, output)) = tokens {
        body["usage"] = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
    }
    body.to_string()
}

/// A good answer.
pub(super) fn says(content: &str) -> Does {
    Does::Answers(200, vec![], completion(content, "stop", Some((1000, 200))))
}

/// A status with a message as endpoints write it.
pub(super) fn fails(status: u16, message: &str) -> Does {
    Does::Answers(status, vec![], json!({ "error": { "message": message, "type": "x" } }).to_string())
}

//! A client of HTTP/1.1 on a socket: what it sends is what a test says, byte for byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The longest time to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header by its name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The same, if it has this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// A connection that is kept.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
    token: Option<String>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr, token: Option<&str>) -> std::io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Connection { reader: BufReader::new(stream), token: token.map(Into::into) })
    }

    /// The socket, for tests that send anything.
    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        self.reader.get_mut()
    }

    /// Sends a request without waiting for its answer.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: Option<&[u8]>) -> std::io::Result<()> {
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: test\r\n");
        if let Some(token) = &self.token {
            text += &format!("authorization: Bearer {token}\r\n");
        }
        if let Some(body) = body {
            text += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        bytes.extend(body.unwrap_or_default());
        self.stream().write_all(&bytes)
    }

    /// Reads the status and the headers of an answer.
    pub(crate) fn head(&mut self) -> std::io::Result<(u16, Vec<(String, String)>)> {
        let status = self.line()?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.ok_or_else(|| std::io::Error::other(format!("no status: {status:?}")))?;
        let mut headers = vec![];
        loop {
            let line = self.line()?;
            match line.split_once(':') {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_string())),
                None => return Ok((code, headers)),
            }
        }
    }

    /// A line without its end.
    pub(crate) fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_string())
    }

    /// Reads an answer.
    pub(crate) fn answer(&mut self) -> std::io::Result<Answer> {
        let (status, headers) = self.head()?;
        let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, n)| n.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.reader.read_exact(&mut body)?;
        Ok(Answer { status, headers, body })
    }

    /// Sends a request and reads its answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: Option<&[u8]>) -> std::io::Result<Answer> {
        self.send(method, path, body)?;
        self.answer()
    }
}

//! A registry on this machine, as small as a client can bear it: blobs, manifests, tags and uploads in memory, logins, redirects and faults. Knows the
//! protocol, but not what is stored.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use kforge::release::artifact::files::sha256;

/// What a registry demands.
#[derive(Debug, Clone, Default)]
pub(crate) enum Login {
    /// Nothing.
    #[default]
    Nothing,
    /// This value of the header `Authorization`.
    Basic(String),
    /// A token, which the service at this address gives.
    Token {
        /// The address of the service.
        realm: String,
        /// The token.
        token: String,
    },
}

/// What happens instead of the answer to a request whose method and path contain these texts.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// A status with a header and a body.
    Says(u16, &'static str, String),
    /// The connection is closed before the answer.
    Drops,
    /// Nothing is sent until the client is gone.
    Hangs,
    /// Nothing more is sent in the middle of the body.
    Stops,
    /// The connection is closed in the middle of the body.
    Cuts,
    /// The body has another first byte.
    Corrupts,
}

/// The contents and the manner of a registry.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
    /// Manifests with their types, by digest.
    pub(crate) manifests: BTreeMap<String, (String, Vec<u8>)>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) login: Login,
    /// The names under which the service for tokens states one; `token` if there are none.
    pub(crate) token_names: Vec<&'static str>,
    /// Whether it lists what refers to a manifest.
    pub(crate) lists_referrers: bool,
    /// Sends whoever fetches contents to this address, followed by the digest.
    pub(crate) redirects_to: Option<String>,
    /// Names this address for uploads, instead of its own.
    pub(crate) uploads_to: Option<String>,
    /// How many tags a page has.
    pub(crate) page: usize,
    /// Faults that happen once each, in order, each to the first request that it fits.
    pub(crate) faults: VecDeque<(&'static str, &'static str, Fault)>,
    /// Each request: `METHOD PATH`, and its header `Authorization`.
    pub(crate) requests: Vec<(String, Option<String>)>,
    /// What requests for tokens hold: the query or the body.
    pub(crate) tokens: Vec<String>,
    uploads: u64,
}

/// The registry. It serves until the test ends.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    path: String,
    query: String,
    authorization: Option<String>,
    content_type: String,
    body: Vec<u8>,
}

struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Reply {
    fn new(status: u16) -> Reply {
        Reply { status, headers: vec![], body: vec![] }
    }

    fn header(mut self, name: &str, value: impl Into<String>) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn body(mut self, body: impl Into<Vec<u8>>) -> Reply {
        self.body = body.into();
        self
    }
}

impl Server {
    pub(crate) fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { page: 1000, ..State::default() }));
        let server = Server { address, state };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), server) = (stream, serving.clone()) else { return };
                std::thread::spawn(move || server.serve(&stream));
            }
        });
        server
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// `oci://ADDRESS/NAME`.
    pub(crate) fn repository(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.address)
    }

    /// The requests that begin with this method and hold this text in their path.
    pub(crate) fn count(&self, method: &str, path: &str) -> usize {
        let state = self.state();
        state.requests.iter().filter(|(line, _)| line.starts_with(method) && line.contains(path)).count()
    }

    fn serve(&self, stream: &TcpStream) {
        let Some(mut request) = read(stream) else { return };
        if request.method == "CONNECT" {
            // It is a proxy, too, that leads to itself wherever it is asked to go.
            let mut stream = stream;
            let _ = stream.write_all(b"HTTP/1.1 200 X\r\n\r\n");
            let Some(inner) = read(stream) else { return };
            request = inner;
        }
        let line = format!("{} {}", request.method, request.path);
        let fault = {
            let mut state = self.state();
            state.requests.push((line, request.authorization.clone()));
            let fits =
                |(method, path, _): &(&str, &str, Fault)| request.method == *method && request.path.contains(path);
            let at = state.faults.iter().position(fits);
            at.and_then(|at| state.faults.remove(at)).map(|(_, _, fault)| fault)
        };
        let mut stream = stream;
        match fault {
            Some(Fault::Drops) => {}
            Some(Fault::Hangs) => drop(stream.read(&mut [0])),
            Some(Fault::Says(status, header, body)) => {
                let (name, value) = header.split_once(": ").unwrap_or(("X-None", ""));
                write(&mut stream, &request, &Reply::new(status).header(name, value).body(body), usize::MAX);
            }
            Some(fault @ (Fault::Cuts | Fault::Stops)) => {
                let reply = self.answer(&request);
                write(&mut stream, &request, &reply, reply.body.len() / 2);
                if matches!(fault, Fault::Stops) {
                    let _ = stream.read(&mut [0]);
                }
            }
            Some(Fault::Corrupts) => {
                let mut reply = self.answer(&request);
                reply.body[0] ^= 1;
                write(&mut stream, &request, &reply, usize::MAX);
            }
            None => write(&mut stream, &request, &self.answer(&request), usize::MAX),
        }
    }

    fn answer(&self, request: &Request) -> Reply {
        let mut state = self.state();
        if request.path == "/token" {
            let text = String::from_utf8_lossy(&request.body).into_owned();
            state.tokens.push(if text.is_empty() { request.query.clone() } else { text });
            let Login::Token { token, .. } = &state.login else { return Reply::new(404) };
            let names = if state.token_names.is_empty() { &["token"][..] } else { &state.token_names };
            let fields: Vec<String> = names.iter().map(|name| format!("\"{name}\": \"{token}\"")).collect();
            return Reply::new(200).body(format!("{{{}, \"other\": 1}}", fields.join(", ")));
        }
        let demand = match &state.login {
            Login::Nothing => None,
            Login::Basic(value) => Some((value.clone(), "Basic realm=\"r\"".to_string())),
            Login::Token { realm, token } => {
                Some((format!("Bearer {token}"), format!("Bearer realm=\"{realm}\",service=\"registry\"")))
            }
        };
        // A store elsewhere demands nothing.
        if let Some((_, demand)) = demand.filter(|(value, _)| request.authorization.as_ref() != Some(value))
            && request.path.starts_with("/v2/")
        {
            let said = "{\"errors\":[{\"code\":\"UNAUTHORIZED\",\"message\":\"authentication required\"}]}";
            return Reply::new(401).header("WWW-Authenticate", demand).body(said);
        }
        if let Some(digest) = request.path.strip_prefix("/store/") {
            return state.blobs.get(digest).map_or(Reply::new(404), |blob| Reply::new(200).body(blob.clone()));
        }
        let parts: Vec<&str> = request.path.trim_start_matches("/v2/").split('/').collect();
        match (&request.method[..], &parts[..]) {
            ("GET", [.., "tags", "list"]) => tags(&state, request),
            ("GET" | "HEAD", [.., "manifests", name]) => {
                let digest = state.tags.get(*name).cloned().unwrap_or_else(|| name.to_string());
                match state.manifests.get(&digest) {
                    Some((of, bytes)) => Reply::new(200)
                        .header("Content-Type", of)
                        .header("Docker-Content-Digest", digest)
                        .body(bytes.clone()),
                    None => Reply::new(404).body("{\"errors\":[{\"code\":\"MANIFEST_UNKNOWN\"}]}"),
                }
            }
            ("PUT", [.., "manifests", name]) => {
                let digest = format!("sha256:{}", sha256(&request.body));
                if name.starts_with("sha256:") && *name != digest {
                    return Reply::new(400);
                }
                if !name.starts_with("sha256:") {
                    state.tags.insert(name.to_string(), digest.clone());
                }
                let manifest: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
                state.manifests.insert(digest, (request.content_type.clone(), request.body.clone()));
                let subject = manifest["subject"]["digest"].as_str().filter(|_| state.lists_referrers);
                subject.map_or(Reply::new(201), |subject| Reply::new(201).header("OCI-Subject", subject))
            }
            ("GET", [.., "referrers", subject]) if state.lists_referrers => {
                let refers = |bytes: &[u8]| -> Option<serde_json::Value> {
                    let manifest: serde_json::Value = serde_json::from_slice(bytes).unwrap();
                    (manifest["subject"]["digest"].as_str() == Some(subject)).then_some(manifest)
                };
                let all = state.manifests.iter().filter_map(|(digest, (of, bytes))| {
                    let manifest = refers(bytes)?;
                    Some(serde_json::json!({
                        "mediaType": of, "digest": digest, "size": bytes.len(), "artifactType": manifest["artifactType"],
                    }))
                });
                let index = serde_json::json!({
                    "schemaVersion": 2,
                    "mediaType": "application/vnd.oci.image.index.v1+json",
                    "manifests": all.collect::<Vec<_>>(),
                });
                Reply::new(200)
                    .header("Content-Type", "application/vnd.oci.image.index.v1+json")
                    .body(index.to_string())
            }
            ("HEAD" | "GET", [.., "blobs", digest]) => match (state.blobs.get(*digest), &state.redirects_to) {
                (Some(_), Some(to)) if request.method == "GET" => {
                    Reply::new(307).header("Location", format!("{to}{digest}"))
                }
                (Some(blob), _) => Reply::new(200).body(blob.clone()),
                (None, _) => Reply::new(404),
            },
            ("POST", [.., "blobs", "uploads", ""]) => {
                state.uploads += 1;
                let own = format!("{}{}", request.path, state.uploads);
                Reply::new(202).header("Location", state.uploads_to.clone().unwrap_or(own))
            }
            ("PUT", [.., "blobs", "uploads", _]) => {
                let digest = format!("sha256:{}", sha256(&request.body));
                if request.query != format!("digest={}", digest.replace(':', "%3A")) {
                    return Reply::new(400).body("{\"errors\":[{\"code\":\"DIGEST_INVALID\"}]}");
                }
                state.blobs.insert(digest, request.body.clone());
                Reply::new(201)
            }
            _ => Reply::new(404),
        }
    }
}

/// A page of tags, with the address of the next.
fn tags(state: &State, request: &Request) -> Reply {
    let from: usize = request.query.strip_prefix("from=").map_or(0, |from| from.parse().unwrap());
    let names: Vec<&String> = state.tags.keys().skip(from).take(state.page).collect();
    let reply = Reply::new(200).body(serde_json::json!({ "name": "n", "tags": names }).to_string());
    match from + state.page < state.tags.len() {
        true => reply.header("Link", format!("<{}?from={}>; rel=\"next\"", request.path, from + state.page)),
        false => reply,
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
    let header = |name: &str| {
        let named = lines.iter().filter_map(|line| line.split_once(": "));
        named.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_string()).next()
    };
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let mut words = lines.first()?.split(' ').map(String::from);
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Request {
        method,
        path: path.into(),
        query: query.into(),
        authorization: header("authorization"),
        content_type: header("content-type").unwrap_or_default(),
        body,
    })
}

/// Writes a reply, with at most this many bytes of its body.
fn write(stream: &mut &TcpStream, request: &Request, reply: &Reply, most: usize) {
    let mut text =
        format!("HTTP/1.1 {} X\r\nContent-Length: {}\r\nConnection: close\r\n", reply.status, reply.body.len());
    reply.headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
    let body = if request.method == "HEAD" { &[][..] } else { &reply.body[..reply.body.len().min(most)] };
    // The client may be gone, which is no error of the server.
    let _ = stream.write_all(&[format!("{text}\r\n").as_bytes(), body].concat());
}

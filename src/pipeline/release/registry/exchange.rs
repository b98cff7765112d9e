//! One request to a registry: repetitions, redirects and logins. Knows HTTP and who may receive a login; does not know what is requested.
//!
//! | decision | because |
//! |---|---|
//! | a login goes only to the host that the user named, and to the service for tokens that this host names by https | redirects and uploads may lead to a store that knows neither |
//! | no login over plain http, except to this machine, and none because of a demand that came so | everybody between here and there could read it, or write the demand |
//! | plain http only to this machine, or to a host for which the user asked for it | the digest protects contents, but not tags |
//! | no redirect leads from https to http | the user named https |
//! | a busy registry is asked again a few times, with pauses | 429 and 5xx pass |
//! | answers have a largest size, a longest time, and a longest silence | a registry is not trusted |
//! | what a registry says is shown without logins and control characters | a registry may repeat what it received, and a terminal obeys control characters |

mod login;
mod origin;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use ureq::Agent as Client;
use ureq::http::{HeaderMap, Method, Request};

use super::credentials::{Credentials, Secret};
use super::error::{RegistryError, UsedLogin};
use crate::optimize::agents::ask::{proxy, seconds};
use kforge_foundation::config::Environment;

pub(super) use self::origin::Origin;

/// How often a request is sent before it counts as failed.
const ATTEMPTS: u32 = 5;
/// The same where nothing arrives within the time limit.
const SLOW_ATTEMPTS: u32 = 2;
/// The most redirects of one request.
const MOST_REDIRECTS: u32 = 5;
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long it may take to reach a host.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// The least speed that is waited for, in bytes per second.
const LEAST_SPEED: u64 = 50_000;
/// The most bytes of an error, and of a token's answer.
const LARGEST_TEXT: u64 = 1 << 20;
/// The most characters of a message that are shown.
const LONGEST_MESSAGE: usize = 300;
/// How often a pause looks whether the user interrupted.
const TICK: Duration = Duration::from_millis(50);

/// What is done in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Pull,
    /// Reading and writing.
    PullPush,
}

/// A request.
pub(super) struct Call<'c> {
    /// What it is for, in words that complete `cannot ...`.
    pub(super) what: &'c str,
    pub(super) method: Method,
    pub(super) address: String,
    /// Further headers.
    pub(super) headers: &'c [(&'static str, String)],
    pub(super) body: Option<&'c [u8]>,
    /// The most bytes of a successful answer.
    pub(super) limit: u64,
    /// Whether it may be sent again.
    pub(super) repeats: bool,
}

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// How a registry is reached.
pub struct Means {
    /// Also reach it in plain text.
    pub plain_http: bool,
    /// What is done there.
    pub access: Access,
    /// The environment, for proxies and logins.
    pub environment: Environment,
    /// Ends requests once it is set.
    pub interrupted: Arc<AtomicBool>,
    /// How long a registry may send nothing.
    pub limit: Duration,
    /// The first pause before a request is repeated. Each pause is twice the one before.
    pub pause: Duration,
}

/// What was learnt about logins.
struct State {
    /// The header that is sent to the registry.
    authorization: Option<Secret>,
    /// What no message may contain.
    secrets: Vec<Secret>,
    /// The login that was used.
    used: UsedLogin,
}

/// The requests to one repository.
pub(super) struct Exchange {
    /// The host as the user named it.
    pub(super) host: String,
    pub(super) origin: Origin,
    repository: String,
    means: Means,
    credentials: Credentials,
    clients: RefCell<HashMap<Origin, Client>>,
    state: RefCell<State>,
}

/// Why one attempt gave no answer.
enum Failed {
    /// Another may.
    Again(String),
    /// Nothing arrived in time.
    Slow(String),
    Never(RegistryError),
}

impl Exchange {
    /// The requests to a repository of a host.
    ///
    /// # Errors
    /// It would have to be reached in plain text.
    pub(super) fn new(host: &str, repository: &str, means: Means) -> Result<Exchange, RegistryError> {
        // Docker's own registry answers under another name.
        let api = if host == "docker.io" { "registry-1.docker.io" } else { host };
        let no_host = || RegistryError::Protocol { host: host.into(), why: "its address has no host" };
        let mut origin = Origin::of(&format!("https://{api}/")).ok_or_else(no_host)?;
        if means.plain_http || origin.is_here() {
            origin = Origin::of(&format!("http://{api}/")).ok_or_else(no_host)?;
        }
        let state = State { authorization: None, secrets: vec![], used: UsedLogin::None(host.into()) };
        Ok(Exchange {
            host: host.into(),
            origin,
            repository: repository.into(),
            credentials: Credentials::new(means.environment.clone()),
            means,
            clients: RefCell::default(),
            state: RefCell::new(state),
        })
    }

    /// The address of something in the repository.
    pub(super) fn address(&self, path: &str) -> String {
        format!("{}/v2/{}/{path}", self.origin.address(), self.repository)
    }

    /// Sends a request and returns the answer, whatever its status, after redirects and logins.
    ///
    /// # Errors
    /// There is no answer, or the registry demands a login that does not exist or does not suffice.
    pub(super) fn send(&self, call: &Call<'_>) -> Result<Answer, RegistryError> {
        let mut address = call.address.clone();
        let (mut redirects, mut renewed) = (0, false);
        loop {
            let origin = self.permitted(&address)?;
            let is_own = origin == self.origin;
            let authorization = self.state.borrow().authorization.clone().filter(|_| is_own);
            let answer = self.repeated(call, &origin, &address, authorization.as_ref())?;
            match answer.status {
                401 if is_own && !renewed => {
                    renewed = true;
                    self.log_in(call.what, &answer)?;
                }
                401 | 403 if is_own => return Err(self.denied(call.what, &answer)),
                301 | 302 | 303 | 307 | 308 if call.method == Method::GET || call.method == Method::HEAD => {
                    redirects += 1;
                    if redirects > MOST_REDIRECTS {
                        return Err(self.redirect("it redirects again and again"));
                    }
                    address = self.location(&answer, &address)?;
                }
                _ => return Ok(answer),
            }
        }
    }

    /// The address to which an answer to a request leads.
    ///
    /// # Errors
    /// It is one that kforge does not go to.
    pub(super) fn location(&self, answer: &Answer, from: &str) -> Result<String, RegistryError> {
        let to = answer.header("location").ok_or_else(|| self.redirect("it states no address"))?;
        self.resolved(to, from)
    }

    /// An address that may lack its host, which is then that of `from`.
    pub(super) fn resolved(&self, to: &str, from: &str) -> Result<String, RegistryError> {
        let origin = || Origin::of(from).ok_or_else(|| self.redirect("its address has no host"));
        let has_scheme = to.split(['/', '?', '#']).next().is_some_and(|first| first.contains(':'));
        let address = match to.strip_prefix('/') {
            Some(rest) if !rest.starts_with('/') => format!("{}{to}", origin()?.address()),
            Some(_) => to.to_string(),
            None if has_scheme => to.to_string(),
            // Below the folder of the address from which it comes.
            None => {
                let path = from.split(['?', '#']).next().unwrap_or(from);
                let folder = if to.starts_with('?') { Some(path.len()) } else { path.rfind('/').map(|end| end + 1) };
                if to.split(['/', '?', '#']).any(|part| part == "..") {
                    return Err(self.redirect("its address has `..`"));
                }
                format!("{}{to}", &path[..folder.unwrap_or(0)])
            }
        };
        self.permitted(&address).map(|_| address)
    }

    /// The origin of an address, if requests may go there.
    fn permitted(&self, address: &str) -> Result<Origin, RegistryError> {
        let origin = Origin::of(address).ok_or_else(|| self.redirect("its address has no host, or a user's name"))?;
        let (own, asked) = (&self.origin, self.means.plain_http);
        let is_plain_permitted = !own.https && (origin.is_here() || asked && origin.host == own.host);
        match (origin.https || is_plain_permitted, origin == *own) {
            (true, _) => Ok(origin),
            (false, true) => Err(RegistryError::Plain(self.host.clone())),
            (false, false) => Err(self.redirect("its address is not one of https")),
        }
    }

    fn redirect(&self, why: &'static str) -> RegistryError {
        RegistryError::Redirect { host: self.host.clone(), why }
    }

    /// The error for an answer that is not the expected one.
    pub(super) fn refused(&self, what: &str, answer: &Answer) -> RegistryError {
        RegistryError::Status {
            what: what.into(),
            host: self.host.clone(),
            status: answer.status,
            message: self.message(&answer.body),
        }
    }

    fn denied(&self, what: &str, answer: &Answer) -> RegistryError {
        RegistryError::Denied {
            what: what.into(),
            host: self.host.clone(),
            login: self.state.borrow().used.clone(),
            message: self.message(&answer.body),
        }
    }

    /// Sends one request until there is an answer that another attempt would not change.
    fn repeated(
        &self,
        call: &Call<'_>,
        origin: &Origin,
        address: &str,
        authorization: Option<&Secret>,
    ) -> Result<Answer, RegistryError> {
        let attempts = if call.repeats { ATTEMPTS } else { 1 };
        for attempt in 1.. {
            if self.means.interrupted.load(Ordering::Relaxed) {
                return Err(RegistryError::Interrupted);
            }
            let stated = match self.once(call, origin, address, authorization) {
                Ok(answer) if !matches!(answer.status, 408 | 425 | 429 | 500 | 502..=504) => return Ok(answer),
                Ok(answer) if attempt >= attempts => return Ok(answer),
                Ok(answer) => answer.header("retry-after").and_then(seconds).map(Duration::from_secs),
                Err(Failed::Never(error)) => return Err(error),
                Err(Failed::Again(why)) if attempt >= attempts => return Err(self.unreachable(call.what, origin, why)),
                Err(Failed::Slow(why)) if attempt >= attempts.min(SLOW_ATTEMPTS) => {
                    return Err(self.unreachable(call.what, origin, why));
                }
                Err(Failed::Again(_) | Failed::Slow(_)) => None,
            };
            self.pause(attempt, stated)?;
        }
        Err(self.unreachable(call.what, origin, "no attempt was made".into()))
    }

    fn unreachable(&self, what: &str, origin: &Origin, why: String) -> RegistryError {
        let address = origin.address();
        let host = address.split_once("://").map_or(address.as_str(), |(_, host)| host);
        RegistryError::Unreachable { what: what.into(), host: host.into(), why }
    }

    /// Waits before the next attempt.
    pub(super) fn pause(&self, attempt: u32, stated: Option<Duration>) -> Result<(), RegistryError> {
        let own = self.means.pause * 2u32.pow(attempt.min(10) - 1);
        let until = Instant::now() + stated.unwrap_or(own).max(own).min(LONGEST_PAUSE);
        loop {
            if self.means.interrupted.load(Ordering::Relaxed) {
                return Err(RegistryError::Interrupted);
            }
            match until.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => std::thread::sleep(left.min(TICK)),
                _ => return Ok(()),
            }
        }
    }

    fn once(
        &self,
        call: &Call<'_>,
        origin: &Origin,
        address: &str,
        authorization: Option<&Secret>,
    ) -> Result<Answer, Failed> {
        let client = self.client(origin, address).map_err(Failed::Never)?;
        let mut request = Request::builder().method(call.method.clone()).uri(address);
        for (name, value) in call.headers {
            request = request.header(*name, value);
        }
        if let Some(authorization) = authorization {
            request = request.header("Authorization", authorization.reveal());
        }
        let failed = |error: &ureq::Error| {
            let why = self.clean(error.to_string());
            match error {
                ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                    Failed::Never(self.unreachable(call.what, origin, why))
                }
                ureq::Error::Timeout(_) => Failed::Slow(why),
                _ => Failed::Again(why),
            }
        };
        let never = |_| Failed::Never(self.redirect("its address cannot be requested"));
        let bytes = call.limit.max(call.body.map_or(0, |body| body.len() as u64));
        let limit = Some(self.means.limit + Duration::from_secs(bytes / LEAST_SPEED));
        let response = match call.body {
            Some(body) => {
                let request = request.body(body).map_err(never)?;
                client.run(client.configure_request(request).timeout_global(limit).build())
            }
            None => {
                let request = request.body(()).map_err(never)?;
                client.run(client.configure_request(request).timeout_global(limit).build())
            }
        };
        let mut response = response.map_err(|error| failed(&error))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let limit = if (200..300).contains(&status) { call.limit } else { LARGEST_TEXT };
        let body = match call.method == Method::HEAD {
            true => vec![],
            false => self.body(call.what, response.body_mut().as_reader(), limit)?,
        };
        Ok(Answer { status, headers, body })
    }

    /// Reads a body piece by piece, so that an interruption is seen.
    fn body(&self, what: &str, mut reader: impl Read, limit: u64) -> Result<Vec<u8>, Failed> {
        let (mut body, mut piece) = (vec![], vec![0; 64 << 10]);
        loop {
            if self.means.interrupted.load(Ordering::Relaxed) {
                return Err(Failed::Never(RegistryError::Interrupted));
            }
            match reader.read(&mut piece) {
                Ok(0) => return Ok(body),
                Ok(read) => body.extend_from_slice(&piece[..read]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => {
                    let error = ureq::Error::from(e);
                    let why = self.clean(error.to_string());
                    return Err(if matches!(error, ureq::Error::Timeout(_)) {
                        Failed::Slow(why)
                    } else {
                        Failed::Again(why)
                    });
                }
            }
            if body.len() as u64 > limit {
                let what = format!("what `{}` sends to {what}", self.host);
                return Err(Failed::Never(RegistryError::TooLarge { what, limit }));
            }
        }
    }

    /// The client for an origin. Each has its proxy.
    fn client(&self, origin: &Origin, address: &str) -> Result<Client, RegistryError> {
        if let Some(client) = self.clients.borrow().get(origin) {
            return Ok(client.clone());
        }
        let config = Client::config_builder()
            .timeout_connect(Some(CONNECT_LIMIT))
            .timeout_recv_response(Some(self.means.limit))
            .timeout_per_read(Some(self.means.limit))
            .timeout_per_write(Some(self.means.limit))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy(address, &self.means.environment)?)
            .user_agent(concat!("kforge/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = Client::from(config);
        self.clients.borrow_mut().insert(origin.clone(), client.clone());
        Ok(client)
    }

    /// What an error of a registry says.
    fn message(&self, body: &[u8]) -> String {
        #[derive(Deserialize)]
        struct Errors {
            errors: Vec<Said>,
        }
        #[derive(Deserialize)]
        struct Said {
            #[serde(default)]
            code: String,
            #[serde(default)]
            message: String,
        }
        let errors = serde_json::from_slice::<Errors>(body).map(|said| said.errors).unwrap_or_default();
        let said = errors.iter().map(|one| if one.message.is_empty() { &one.code } else { &one.message });
        self.clean(said.cloned().collect::<Vec<_>>().join("; ")).chars().take(LONGEST_MESSAGE).collect()
    }

    /// A text without logins and control characters.
    fn clean(&self, text: String) -> String {
        let text = self.state.borrow().secrets.iter().fold(text, |text, secret| secret.clean(text));
        text.replace(char::is_control, " ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_https_no_way_leads_to_http_and_logins_go_nowhere_in_plain_text() {
        let of = |host: &str, plain_http: bool| {
            let means = Means {
                plain_http,
                access: Access::Pull,
                environment: Environment::default(),
                interrupted: Arc::default(),
                limit: Duration::from_secs(1),
                pause: Duration::from_millis(1),
            };
            Exchange::new(host, "p", means).unwrap()
        };
        let login = |exchange: &Exchange, to: &str| exchange.may_receive_login(&Origin::of(to).unwrap()).is_ok();
        for (host, plain_http, to, goes, with_login) in [
            ("a.test", false, "https://a.test/", true, true),
            ("a.test", false, "https://b.test/", true, true),
            ("a.test", false, "http://a.test/", false, false),
            ("a.test", false, "http://127.0.0.1/", false, false),
            ("a.test", true, "http://a.test/", true, false),
            ("a.test", true, "http://b.test/", false, false),
            ("a.test", true, "https://b.test/", true, false),
            ("a.test", true, "https://a.test/", true, false),
            ("a.test", true, "http://127.0.0.1/", true, false),
            ("127.0.0.1:5000", false, "http://127.0.0.1:5001/", true, true),
            ("localhost", false, "http://[::1]/", true, true),
            ("localhost", false, "http://a.test/", false, false),
            ("localhost", false, "https://a.test/", true, true),
        ] {
            let exchange = of(host, plain_http);
            assert_eq!(exchange.permitted(to).is_ok(), goes, "{host} to {to}");
            assert_eq!(login(&exchange, to), with_login, "{host} to {to}");
        }
        let exchange = of("a.test", false);
        let resolved = |to: &str| exchange.resolved(to, "https://a.test/v2/p/uploads/?x=1").ok();
        for (to, expected) in [
            ("/v2/y", Some("https://a.test/v2/y")),
            ("y?z=1", Some("https://a.test/v2/p/uploads/y?z=1")),
            ("?z=1", Some("https://a.test/v2/p/uploads/?z=1")),
            ("https://b.test/y", Some("https://b.test/y")),
            ("../y", None),
            ("//b.test/y", None),
            ("ftp://b.test/y", None),
        ] {
            assert_eq!(resolved(to).as_deref(), expected, "{to}");
        }
        assert_eq!(of("docker.io", false).address("tags/list"), "https://registry-1.docker.io/v2/p/tags/list");
        assert_eq!(of("localhost:5000", false).address("x"), "http://localhost:5000/v2/p/x");
    }
}

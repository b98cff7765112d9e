//! Connections: accepted up to a limit, with a time for headers, and ended when the service has drained.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::auth::{Auth, Tokens, TokensError};
use super::places::Places;
use super::stalled::Stalled;
use super::{App, TraceSet, TraceSetError, Traffic, body, openapi, router};
use crate::service::{Ending, Service};

/// The most time of the headers of a request, and of a connection without one.
const HEADERS: Duration = Duration::from_secs(30);

/// How long a client may take nothing of an answer.
const STALLED: Duration = Duration::from_secs(60);

/// The most bytes of headers.
const MOST_HEADERS: usize = 64 << 10;

/// The time between two looks for the signal that ends the server.
const TICK: Duration = Duration::from_millis(20);

/// How long answers that are being written may take once the service has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// How long to wait after an error of accepting, such as too many open files.
const AFTER_ERROR: Duration = Duration::from_millis(50);

/// The open files that the service needs besides connections: the journal, workspaces, and the pipes of workers.
const OTHER_FILES: u64 = 1024;

/// How many of so many files may be connections: no more than are wanted.
fn places(files: Option<u64>, wanted: usize) -> usize {
    let Some(files) = files else { return wanted };
    let left = files.saturating_sub(OTHER_FILES).max(files / 2);
    wanted.min(usize::try_from(left).unwrap_or(usize::MAX)).max(1)
}

/// Raises the limit of open files as far as so many connections need it and the system allows it. Returns the number of connections that it leaves room for.
fn room_for(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let needed = (wanted as u64).saturating_add(OTHER_FILES);
    if limit.current.is_some_and(|current| current < needed) {
        let raised = Rlimit { current: Some(limit.maximum.map_or(needed, |most| most.min(needed))), ..limit };
        // What the system refuses stays as it is.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    places(getrlimit(Resource::Nofile).current, wanted)
}

/// The settings of the server.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The file of tokens; none if every request is accepted.
    pub tokens: Option<PathBuf>,
    /// Whether requests without tokens are accepted from other machines.
    pub allow_unauthenticated: bool,
    /// The most bytes of a body.
    pub most_body: usize,
    /// The most time of a body.
    pub body_time: Duration,
    /// The most connections at once.
    pub most_connections: usize,
    /// The dataset whose definitions and workloads are offered as `flashinfer-bench serve` does it.
    pub flashinfer_trace: Option<PathBuf>,
    /// How long to wait for evaluations that run when the server is to end.
    pub drain: Duration,
}

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process listens on the address.
    #[error("port {} of {} is in use, perhaps by another `kforge serve`: name another one with `--listen {}:PORT`, or 0 for any that is free", .0.port(), .0.ip(), host(.0))]
    InUse(SocketAddr),
    /// No interface of this machine has the address.
    #[error("this machine has no address {0}: name one of its own, or 0.0.0.0 for all of them")]
    NoAddress(IpAddr),
    /// The address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Other machines could send requests without a token.
    #[error(
        "{0} can be reached from other machines, and there are no tokens: name a file of tokens with `--tokens`, or pass `--allow-unauthenticated`"
    )]
    Open(IpAddr),
    /// The tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// The dataset cannot be read.
    #[error(transparent)]
    Traces(#[from] TraceSetError),
    /// The system gives no threads.
    #[error("cannot start the server: {0}")]
    Runtime(io::Error),
}

/// What hears how many evaluations still run while the server ends.
pub type Says = Box<dyn Fn(usize) + Send>;

/// The host of an address as it is written before a port.
fn host(address: &SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// A server that listens.
pub struct Server {
    config: HttpConfig,
    auth: Auth,
    traces: Option<Arc<TraceSet>>,
    listener: std::net::TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Reads the tokens, and listens. Connections wait until [`Server::run`].
    ///
    /// # Errors
    /// The address cannot be used, or the tokens cannot be read.
    pub fn bind(config: HttpConfig) -> Result<Server, ListenError> {
        let auth = match &config.tokens {
            Some(path) => Auth::Tokens(Tokens::read(path)?),
            None if config.listen.ip().is_loopback() || config.allow_unauthenticated => Auth::Open,
            None => return Err(ListenError::Open(config.listen.ip())),
        };
        let traces = config.flashinfer_trace.as_deref().map(TraceSet::read).transpose()?.map(Arc::new);
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse(config.listen),
            io::ErrorKind::AddrNotAvailable => ListenError::NoAddress(config.listen.ip()),
            _ => ListenError::Bind { address: config.listen, source },
        };
        let listener = std::net::TcpListener::bind(config.listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server { config, auth, traces, listener, address })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `ending` is asked for. Then no task is accepted, evaluations that run may end, and the service is drained. `says` hears how many
    /// still run.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn run(self, service: &Arc<Service>, ending: &Ending, says: Says) -> Result<(), ListenError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ListenError::Runtime)?;
        let most = room_for(self.config.most_connections);
        let app = App {
            // Others have as many left.
            under_way: Arc::new(Places::new(most.div_ceil(2))),
            service: service.clone(),
            auth: Arc::new(self.auth),
            limits: body::Limits::new(self.config.most_body, self.config.body_time),
            document: Arc::new(openapi()),
            traffic: Arc::default(),
            traces: self.traces,
        };
        let ended = runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener).map_err(ListenError::Runtime)?;
            let graceful = GracefulShutdown::new();
            let drained = drained(service.clone(), ending.clone(), self.config.drain, says);
            tokio::pin!(drained);
            tokio::select! {
                () = accept(&listener, app, most, &graceful) => {}
                () = &mut drained => {}
            }
            drop(listener);
            // Answers that are being written may be finished.
            let last = if ending.is_at_once() { Duration::ZERO } else { LAST_ANSWERS };
            drop(tokio::time::timeout(last, graceful.shutdown()).await);
            Ok(())
        });
        runtime.shutdown_background();
        ended
    }
}

/// Ends when the server was asked to end and the service has drained.
async fn drained(service: Arc<Service>, ending: Ending, longest: Duration, says: Says) {
    while !ending.is_asked() {
        tokio::time::sleep(TICK).await;
    }
    service.stop_accepting();
    // It waits for threads. A panic there is a bug that has been printed.
    drop(tokio::task::spawn_blocking(move || service.drain(longest, &ending, &*says)).await);
}

async fn accept(listener: &TcpListener, app: App, most: usize, graceful: &GracefulShutdown) {
    let places = Arc::new(Semaphore::new(most));
    let router = router(app.clone());
    loop {
        // Connections beyond the limit wait in the system's queue.
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                tokio::time::sleep(AFTER_ERROR).await;
                continue;
            }
        };
        // Answers are written whole, so waiting for more to send gains nothing. Without it, they are only later.
        let _ = stream.set_nodelay(true);
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(MOST_HEADERS);
        let connection = builder
            .serve_connection(TokioIo::new(Stalled::new(stream, STALLED)), TowerToHyperService::new(router.clone()));
        let connection = graceful.watch(connection);
        let traffic: Arc<Traffic> = app.traffic.clone();
        tokio::spawn(async move {
            traffic.connections.fetch_add(1, Ordering::Relaxed);
            // A connection that broke has nobody to report it to.
            let _ = connection.await;
            traffic.connections.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_service() {
        let cases = [(None, 4096), (Some(5120), 4096), (Some(1 << 20), 4096), (Some(1024), 512), (Some(2048), 1024)];
        for (files, expected) in cases {
            assert_eq!(places(files, 4096), expected, "{files:?}");
        }
        assert_eq!((places(Some(1), 4096), places(Some(1024), 2)), (1, 2));
    }
}

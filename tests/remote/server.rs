//! A remote cache for tests and benches: the services of the Remote Execution API that a cache has, in memory, on a port of this machine. A test changes how it
//! answers and what it stores while it runs. Knows the protocol, and nothing of what kforge stores.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use re::action_cache_server::ActionCacheServer;
use re::capabilities_server::CapabilitiesServer;
use re::content_addressable_storage_server::ContentAddressableStorageServer;

use bazel_remote_apis::google::bytestream::byte_stream_server::ByteStreamServer;
use bazel_remote_apis::google::longrunning::Operation;
use bazel_remote_apis::google::longrunning::operations_server::OperationsServer;
use re::execution_server::ExecutionServer;
use tokio::sync::{oneshot, watch};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

#[path = "server/bots.rs"]
pub(crate) mod bots;
#[path = "server/execution.rs"]
pub(crate) mod execution;
#[path = "server/services.rs"]
mod services;

use execution::{Worker, process};

pub(crate) use re::compressor::Value as Compressor;
pub(crate) use re::digest_function::Value as Function;

/// What gRPC's servers take in one message, in bytes.
pub(crate) const MESSAGE: usize = 4 << 20;

/// A method of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Method {
    GetCapabilities,
    GetActionResult,
    UpdateActionResult,
    FindMissingBlobs,
    BatchReadBlobs,
    BatchUpdateBlobs,
    Read,
    Write,
    QueryWriteStatus,
    Execute,
    WaitExecution,
    CancelOperation,
    CreateBotSession,
    UpdateBotSession,
}

/// A status in place of answers.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    /// The method; none means every method.
    method: Option<Method>,
    code: tonic::Code,
    /// How many requests it is for; none means all.
    left: Option<usize>,
}

impl Refusal {
    /// For the next `count` requests of a method, or of all methods.
    pub(crate) fn next(count: usize, method: impl Into<Option<Method>>, code: tonic::Code) -> Refusal {
        Refusal { method: method.into(), code, left: Some(count) }
    }

    /// For all requests of a method, or of all methods, until it is removed.
    pub(crate) fn always(method: impl Into<Option<Method>>, code: tonic::Code) -> Refusal {
        Refusal { method: method.into(), code, left: None }
    }
}

/// What a server identifies itself with, as PEM.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    pub(crate) certificate: String,
    pub(crate) key: String,
    /// The authority of clients. If it is given, a client must have a certificate of it.
    pub(crate) client_authority: Option<String>,
}

/// Whether the blob with this hash is missing.
pub(crate) type Missing = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What a server announces and demands, and its faults.
#[derive(Clone)]
pub(crate) struct Options {
    /// The announced digest functions. The server refuses others.
    pub(crate) functions: Vec<Function>,
    /// The announced compressors. The server refuses others.
    pub(crate) compressors: Vec<Compressor>,
    /// The announced greatest size of the blobs in a batch, in bytes; 0 announces no limit. Beyond it is `INVALID_ARGUMENT`. Independent of it, a message
    /// beyond [`MESSAGE`] is `RESOURCE_EXHAUSTED`.
    pub(crate) max_batch: i64,
    /// The only name of an instance that is found.
    pub(crate) instance: String,
    /// The bearer token that every request must have.
    pub(crate) token: Option<String>,
    /// Uploads and updates are `PERMISSION_DENIED`, and the capabilities say that there are no updates.
    pub(crate) read_only: bool,
    /// Updates are `PERMISSION_DENIED`, and the capabilities say that there are none. Uploads are taken.
    pub(crate) stores_no_results: bool,
    /// Uploads and updates are `RESOURCE_EXHAUSTED`.
    pub(crate) full: bool,
    /// How long every answer takes.
    pub(crate) delay: Duration,
    /// The greatest number of requests in flight. Beyond it is `RESOURCE_EXHAUSTED`, at once.
    pub(crate) limit: Option<usize>,
    /// The first one that fits a request answers it.
    pub(crate) refusals: Vec<Refusal>,
    /// Every blob is read with another first byte.
    pub(crate) wrong_bytes: bool,
    /// Blobs that are missing although they are stored.
    pub(crate) missing: Option<Missing>,
    /// Action results have exit code 1.
    pub(crate) failed: bool,
    /// Action results have no output files.
    pub(crate) no_outputs: bool,
    /// Action results have the first half of their `stdout_raw`.
    pub(crate) truncated_stdout: bool,
    /// Whether an upload of a stored blob is answered after its first message, as the protocol allows.
    pub(crate) answers_early: bool,
    /// Whether actions are executed.
    pub(crate) executes: bool,
    /// What a worker does.
    pub(crate) worker: Worker,
    /// Workers that registered execute actions, in place of `worker`.
    pub(crate) by_bots: bool,
    /// Results are remembered although their actions say that they must not be.
    pub(crate) remembers_observations: bool,
    /// A request to skip the memory is ignored.
    pub(crate) ignores_skip: bool,
    /// Whether the Remote Workers API is served. Read when the server starts.
    pub(crate) serves_bots: bool,
    /// The names of the platform properties that are known. Others are `FAILED_PRECONDITION`.
    pub(crate) properties: Vec<String>,
    /// No worker takes an action.
    pub(crate) queues_forever: bool,
    /// Failed actions are remembered.
    pub(crate) remembers_failures: bool,
    /// Requests of this method are never answered; streams begin and fall silent.
    pub(crate) hangs: Option<Method>,
    /// Operations go from one stage to the other and back, for ever.
    pub(crate) alternates: bool,
    /// Outputs of executed actions have a byte more than the worker wrote.
    pub(crate) other_outputs: bool,
    /// How many streams about operations end after their first message.
    pub(crate) breaking_streams: usize,
    /// Read when the server starts.
    pub(crate) tls: Option<Tls>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            functions: vec![Function::Sha256],
            compressors: vec![],
            max_batch: 4_193_280,
            instance: String::new(),
            token: None,
            read_only: false,
            stores_no_results: false,
            full: false,
            delay: Duration::ZERO,
            limit: None,
            refusals: vec![],
            wrong_bytes: false,
            missing: None,
            failed: false,
            no_outputs: false,
            truncated_stdout: false,
            answers_early: false,
            executes: false,
            worker: Arc::new(process),
            by_bots: false,
            remembers_observations: false,
            ignores_skip: false,
            serves_bots: true,
            properties: vec!["OSFamily".into(), "ISA".into()],
            queues_forever: false,
            remembers_failures: false,
            hangs: None,
            alternates: false,
            other_outputs: false,
            breaking_streams: 0,
            tls: None,
        }
    }
}

/// What a server was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Requests by method, the refused ones included.
    pub(crate) requests: BTreeMap<Method, usize>,
    /// Blobs that were given out and taken in.
    pub(crate) blobs_read: usize,
    pub(crate) blobs_written: usize,
    /// Requests without an answer, now and at most. Without a delay the server answers each request before it takes the next one, so the most is 1.
    pub(crate) in_flight: usize,
    pub(crate) most_in_flight: usize,
}

impl Counts {
    /// The requests of a method.
    pub(crate) fn of(&self, method: Method) -> usize {
        self.requests.get(&method).copied().unwrap_or_default()
    }

    /// The requests of all methods.
    pub(crate) fn all(&self) -> usize {
        self.requests.values().sum()
    }
}

/// A blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob {
    /// Of the digest under which it was stored. A test may change the bytes.
    pub(crate) function: Function,
    pub(crate) size: i64,
    pub(crate) bytes: Vec<u8>,
}

/// An action result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stored {
    pub(crate) function: Function,
    pub(crate) result: re::ActionResult,
}

/// Everything that a server is and has.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) options: Options,
    /// Action results by the hash of their actions.
    pub(crate) results: BTreeMap<String, Stored>,
    /// Blobs by hash.
    pub(crate) blobs: BTreeMap<String, Blob>,
    pub(crate) counts: Counts,
    /// The workers that registered.
    pub(crate) bots: bots::Bots,
    /// Operations by name, and the senders of those that no worker takes.
    operations: BTreeMap<String, watch::Receiver<Operation>>,
    queued: Vec<watch::Sender<Operation>>,
}

/// A server. It stops when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    secure: bool,
    state: Arc<Mutex<State>>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// What a frame of zstd holds; none if it is damaged.
pub(crate) fn uncompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![];
    std::io::Read::read_to_end(&mut ruzstd::decoding::StreamingDecoder::new(bytes).ok()?, &mut out).ok()?;
    Some(out)
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// Starts a server that stores nothing yet.
    pub(crate) fn start(options: Options) -> Server {
        let secure = options.tls.is_some();
        let state = Arc::new(Mutex::new(State { options, ..State::default() }));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut server = Server { address, secure, state, running: None };
        server.restart();
        server
    }

    /// Its address for clients: `grpc://127.0.0.1:PORT`, or with TLS `grpcs://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", if self.secure { "grpcs" } else { "grpc" }, self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the server is and has, to read and to change. The server waits while a test holds it.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Closes the listener and all connections at once, as the death of a server does. What is stored stays.
    pub(crate) fn stop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }

    /// Starts a stopped server again, at its address and with what it stores.
    pub(crate) fn restart(&mut self) {
        self.stop();
        let listener = TcpListener::bind(self.address).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let state = self.state.clone();
        let serving = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, state) => {}
                    _ = stopped => {}
                }
            });
            // The end of the runtime ends the connections.
        };
        let thread = std::thread::Builder::new().name("remote cache".into()).spawn(serving).unwrap();
        self.running = Some((stop, thread));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let incoming = futures_util::stream::unfold(listener, async |listener| {
        let accepted = listener.accept().await.and_then(|(stream, _)| stream.set_nodelay(true).map(|()| stream));
        Some((accepted, listener))
    });
    // Windows that let large blobs pass without waiting for a client that is far away.
    let mut server = tonic::transport::Server::builder()
        .initial_connection_window_size(16 << 20)
        .initial_stream_window_size(8 << 20);
    let tls = lock(&state).options.tls.clone();
    if let Some(tls) = tls {
        let mut config = ServerTlsConfig::new().identity(Identity::from_pem(tls.certificate, tls.key));
        if let Some(authority) = tls.client_authority {
            config = config.client_ca_root(Certificate::from_pem(authority));
        }
        server = server.tls_config(config).unwrap();
    }
    let serves_bots = lock(&state).options.serves_bots;
    let services = services::Services(state);
    // The services themselves refuse large messages, with the code that other servers use.
    let storage = ContentAddressableStorageServer::new(services.clone()).max_decoding_message_size(16 * MESSAGE);
    let served = server
        .add_service(CapabilitiesServer::new(services.clone()))
        .add_service(ActionCacheServer::new(services.clone()))
        .add_service(storage)
        .add_service(ExecutionServer::new(services.clone()))
        .add_service(OperationsServer::new(services.clone()))
        .add_service(ByteStreamServer::new(services.clone()))
        .add_optional_service(serves_bots.then_some(bots::BotsServer(services)))
        .serve_with_incoming(incoming);
    served.await.unwrap();
}

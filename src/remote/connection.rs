//! A connection to a server, with its credentials.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::bytestream::byte_stream_client::ByteStreamClient;
use bazel_remote_apis::google::longrunning::operations_client::OperationsClient;
use kforge_foundation::config::ServerUrl;
use reapi::action_cache_client::ActionCacheClient;
use reapi::capabilities_client::CapabilitiesClient;
use reapi::content_addressable_storage_client::ContentAddressableStorageClient;
use reapi::execution_client::ExecutionClient;
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

use super::capabilities::Capabilities;
use super::credentials;
use super::error::RemoteError;
use super::retry::{failed, within};

/// How much a stream and a connection may have in flight, in bytes: enough for 64 MB/s at a round trip of 100 ms.
const WINDOW: u32 = 8 << 20;
/// The largest message that is read, in bytes. Batches are smaller; some servers send larger parts of streams than they accept.
const LARGEST_MESSAGE: usize = 16 << 20;

/// How to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Its address.
    pub url: ServerUrl,
    /// The instance at the server; may be empty.
    pub instance: String,
    /// How long the server may take to answer a request.
    pub timeout: Duration,
    /// A file with a bearer token.
    pub token_file: Option<PathBuf>,
    /// A program that gives headers.
    pub credential_helper: Option<PathBuf>,
    /// The environment of that program: its own configuration is there.
    pub environment: BTreeMap<String, String>,
    /// How the connection is encrypted, if it is.
    pub tls: Tls,
}

/// How a connection is encrypted: files in PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// The authorities whose certificates the server may have, instead of those of the system.
    pub ca: Option<PathBuf>,
    /// The certificate of this client, for servers that ask for one.
    pub certificate: Option<PathBuf>,
    /// The key of that certificate.
    pub key: Option<PathBuf>,
}

/// Adds the credentials to each request.
#[derive(Clone)]
pub(crate) struct Credentials(MetadataMap);

impl Interceptor for Credentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        for entry in self.0.iter() {
            if let tonic::metadata::KeyAndValueRef::Ascii(key, value) = entry {
                request.metadata_mut().append(key, value.clone());
            }
        }
        Ok(request)
    }
}

pub(crate) type Service = InterceptedService<Channel, Credentials>;

/// A connection to a server. Clones share it.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) actions: ActionCacheClient<Service>,
    pub(crate) contents: ContentAddressableStorageClient<Service>,
    pub(crate) streams: ByteStreamClient<Service>,
    pub(crate) execution: ExecutionClient<Service>,
    pub(crate) operations: OperationsClient<Service>,
    /// For services that no crate has a client of.
    pub(crate) service: Service,
    pub(crate) capabilities: Capabilities,
    pub(crate) instance: String,
    pub(crate) timeout: Duration,
}

impl Connection {
    /// Connects, and asks what the server can do.
    pub(crate) async fn open(access: &Access, interrupted: &AtomicBool) -> Result<Connection, RemoteError> {
        let credentials = Credentials(credentials::headers(access, interrupted)?);
        let endpoint = endpoint(access)?;
        // The limit of the endpoint is for TCP alone.
        let connected = within(access.timeout.saturating_mul(2), "connect", endpoint.connect()).await?;
        let channel = connected.map_err(|e| RemoteError::Connect(causes(&e)))?;
        let service = InterceptedService::new(channel, credentials);
        let request = reapi::GetCapabilitiesRequest { instance_name: access.instance.clone() };
        let mut client = CapabilitiesClient::new(service.clone());
        let method = "GetCapabilities";
        let answer = within(access.timeout, method, client.get_capabilities(request)).await?.map_err(failed(method))?;
        Ok(Connection {
            actions: ActionCacheClient::new(service.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            contents: ContentAddressableStorageClient::new(service.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            streams: ByteStreamClient::new(service.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            execution: ExecutionClient::new(service.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            operations: OperationsClient::new(service.clone()),
            service,
            capabilities: Capabilities::of(answer.get_ref())?,
            instance: access.instance.clone(),
            timeout: access.timeout,
        })
    }

    /// The name of a resource for streams: the instance, and what follows it.
    pub(crate) fn resource(&self, rest: &str) -> String {
        if self.instance.is_empty() { rest.to_string() } else { format!("{}/{rest}", self.instance) }
    }
}

fn endpoint(access: &Access) -> Result<Endpoint, RemoteError> {
    let wrong = |e: tonic::transport::Error| RemoteError::Credentials(causes(&e));
    let endpoint = Endpoint::from_shared(access.url.http())
        .map_err(wrong)?
        .user_agent(concat!("kforge/", env!("CARGO_PKG_VERSION")))
        .map_err(wrong)?
        .connect_timeout(access.timeout)
        .tcp_nodelay(true)
        .initial_connection_window_size(WINDOW)
        .initial_stream_window_size(WINDOW / 2)
        .http2_keep_alive_interval(Duration::from_secs(30));
    if !access.url.is_encrypted {
        return Ok(endpoint);
    }
    let mut tls = match &access.tls.ca {
        Some(path) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(credentials::read(path)?)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    match (&access.tls.certificate, &access.tls.key) {
        (Some(certificate), Some(key)) => {
            tls = tls.identity(Identity::from_pem(credentials::read(certificate)?, credentials::read(key)?));
        }
        (None, None) => {}
        _ => return Err(RemoteError::Credentials("a certificate needs a key, and a key a certificate".into())),
    }
    endpoint.tls_config(tls).map_err(wrong)
}

/// An error with its causes: tonic's own text says nothing of them.
fn causes(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = chain.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

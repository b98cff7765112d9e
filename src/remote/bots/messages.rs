//! The messages and methods of the Remote Workers API (`google.devtools.remoteworkers.v1test2`) that a worker uses, written by hand: no crate has them. A field that
//! a worker neither sets nor reads is left out.

use std::time::Duration;

use bazel_remote_apis::google::protobuf::{Any, Timestamp};
use bazel_remote_apis::google::rpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::connection::Service;

/// How much longer than the server the worker waits.
const BEYOND: Duration = Duration::from_secs(1);

/// How a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum BotStatus {
    Unspecified = 0,
    /// It takes leases.
    Ok = 1,
    /// It leaves.
    Terminating = 4,
}

/// How far a lease is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum LeaseState {
    Unspecified = 0,
    /// The server has given it to a worker.
    Pending = 1,
    /// The worker has it.
    Active = 2,
    /// The worker has ended it.
    Completed = 4,
    /// The server does not want its result. Only the server sets this.
    Cancelled = 5,
}

/// A name and a value. Properties of devices and of workers look the same.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(crate) struct Property {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// What a worker is made of. The first device is the one that executes.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Device {
    #[prost(string, tag = "1")]
    pub(crate) handle: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) properties: Vec<Property>,
}

/// What a worker is.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Worker {
    #[prost(message, repeated, tag = "1")]
    pub(crate) devices: Vec<Device>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) properties: Vec<Property>,
}

/// Work that a server has given to a worker.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Lease {
    #[prost(string, tag = "7")]
    pub(crate) id: String,
    /// An action, or its digest.
    #[prost(message, optional, tag = "8")]
    pub(crate) payload: Option<Any>,
    /// The result of the action.
    #[prost(message, optional, tag = "9")]
    pub(crate) result: Option<Any>,
    #[prost(enumeration = "LeaseState", tag = "2")]
    pub(crate) state: i32,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<rpc::Status>,
    #[prost(message, optional, tag = "5")]
    pub(crate) expire_time: Option<Timestamp>,
}

/// What a server and a worker know of each other.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BotSession {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) bot_id: String,
    #[prost(enumeration = "BotStatus", tag = "3")]
    pub(crate) status: i32,
    #[prost(message, optional, tag = "4")]
    pub(crate) worker: Option<Worker>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) leases: Vec<Lease>,
    /// When the server counts the worker as lost if it hears nothing.
    #[prost(message, optional, tag = "6")]
    pub(crate) expire_time: Option<Timestamp>,
    #[prost(string, tag = "7")]
    pub(crate) version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct CreateBotSessionRequest {
    #[prost(string, tag = "1")]
    parent: String,
    #[prost(message, optional, tag = "2")]
    bot_session: Option<BotSession>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct UpdateBotSessionRequest {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    bot_session: Option<BotSession>,
}

/// Registers a worker. A server may answer only when there is work, but before `limit` is over.
pub(crate) async fn create(
    service: Service,
    parent: &str,
    session: BotSession,
    limit: Duration,
) -> Result<BotSession, Status> {
    let request = CreateBotSessionRequest { parent: parent.into(), bot_session: Some(session) };
    called(service, "/google.devtools.remoteworkers.v1test2.Bots/CreateBotSession", request, limit).await
}

/// Says how the worker and its leases are, and hears what the server wants. A server may answer only when that changes, but before `limit` is over.
pub(crate) async fn update(service: Service, session: BotSession, limit: Duration) -> Result<BotSession, Status> {
    let request = UpdateBotSessionRequest { name: session.name.clone(), bot_session: Some(session) };
    called(service, "/google.devtools.remoteworkers.v1test2.Bots/UpdateBotSession", request, limit).await
}

async fn called<M: prost::Message + 'static>(
    service: Service,
    path: &'static str,
    message: M,
    limit: Duration,
) -> Result<BotSession, Status> {
    let mut client = tonic::client::Grpc::new(service);
    let mut request = Request::new(message);
    // The server reads it. Here it ends with the first bytes of an answer.
    request.set_timeout(limit);
    let codec: ProstCodec<M, BotSession> = ProstCodec::default();
    let answered = async {
        client.ready().await.map_err(|e| Status::unavailable(e.to_string()))?;
        client.unary(request, PathAndQuery::from_static(path), codec).await.map(tonic::Response::into_inner)
    };
    let late = |_| Status::deadline_exceeded("the answer did not end in time");
    tokio::time::timeout(limit + BEYOND, answered).await.map_err(late)?
}

//! The service of the Remote Workers API: workers register and get leases, one by one. Its messages are written here once more, so that a test does not believe
//! those of kforge. A test queues leases, cancels them, forgets sessions, and reads what workers said.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bazel_remote_apis::google::protobuf::{Any, Timestamp};
use bazel_remote_apis::google::rpc;
use tonic::codegen::{Service, http};
use tonic::server::{NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::Method;
use super::services::Services;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Property {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Device {
    #[prost(string, tag = "1")]
    pub(crate) handle: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) properties: Vec<Property>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Worker {
    #[prost(message, repeated, tag = "1")]
    pub(crate) devices: Vec<Device>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Lease {
    #[prost(string, tag = "7")]
    pub(crate) id: String,
    #[prost(message, optional, tag = "8")]
    pub(crate) payload: Option<Any>,
    #[prost(message, optional, tag = "9")]
    pub(crate) result: Option<Any>,
    #[prost(int32, tag = "2")]
    pub(crate) state: i32,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<rpc::Status>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BotSession {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) bot_id: String,
    #[prost(int32, tag = "3")]
    pub(crate) status: i32,
    #[prost(message, optional, tag = "4")]
    pub(crate) worker: Option<Worker>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) leases: Vec<Lease>,
    #[prost(message, optional, tag = "6")]
    pub(crate) expire_time: Option<Timestamp>,
    #[prost(string, tag = "7")]
    pub(crate) version: String,
}

/// Both requests: the name of the instance or session, and the session.
#[derive(Clone, PartialEq, prost::Message)]
struct Asked {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    bot_session: Option<BotSession>,
}

/// States of leases.
pub(crate) const PENDING: i32 = 1;
pub(crate) const ACTIVE: i32 = 2;
pub(crate) const COMPLETED: i32 = 4;
pub(crate) const CANCELLED: i32 = 5;

/// How long a worker without work waits for an answer.
const WAIT: Duration = Duration::from_millis(500);

/// The workers and their leases.
#[derive(Default)]
pub(crate) struct Bots {
    /// The sessions by name, as their workers described them last.
    pub(crate) sessions: BTreeMap<String, BotSession>,
    /// Leases that no worker has yet.
    pub(crate) queue: VecDeque<Lease>,
    /// Leases that ended, by id, as their workers said.
    pub(crate) ended: BTreeMap<String, Lease>,
    /// The lease with this id is cancelled: by its state, or by leaving it out.
    pub(crate) cancelled: Option<(String, Cancels)>,
    /// The state in which leases are given.
    pub(crate) gives_active: bool,
    /// A worker gets all leases that there are.
    pub(crate) gives_all: bool,
    created: usize,
}

/// How a server cancels a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancels {
    ByState,
    ByLeavingOut,
}

impl Bots {
    /// What a worker said, and what it hears.
    fn heard(&mut self, mut session: BotSession) -> BotSession {
        for lease in session.leases.extract_if(.., |lease| lease.state == COMPLETED) {
            self.ended.insert(lease.id.clone(), lease);
        }
        if let Some((id, how)) = self.cancelled.clone()
            && let Some(at) = session.leases.iter().position(|lease| lease.id == id)
        {
            match how {
                Cancels::ByState => session.leases[at].state = CANCELLED,
                Cancels::ByLeavingOut => drop(session.leases.remove(at)),
            }
        }
        while (session.leases.is_empty() || self.gives_all)
            && session.status == 1
            && let Some(mut lease) = self.queue.pop_front()
        {
            lease.state = if self.gives_active { ACTIVE } else { PENDING };
            session.leases.push(lease);
        }
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        session.expire_time = Some(Timestamp { seconds: since.as_secs() as i64 + 30, nanos: 0 });
        self.sessions.insert(session.name.clone(), session.clone());
        session
    }
}

/// The service by the name under which servers find it.
#[derive(Clone)]
pub(super) struct BotsServer(pub(super) Services);

impl NamedService for BotsServer {
    const NAME: &'static str = "google.devtools.remoteworkers.v1test2.Bots";
}

type Soon<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl Service<http::Request<tonic::body::Body>> for BotsServer {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Soon<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let services = self.0.clone();
        Box::pin(async move {
            let creates = request.uri().path().ends_with("/CreateBotSession");
            let codec: ProstCodec<BotSession, Asked> = ProstCodec::default();
            Ok(tonic::server::Grpc::new(codec).unary(Call { services, creates }, request).await)
        })
    }
}

/// One of the two methods.
struct Call {
    services: Services,
    creates: bool,
}

impl UnaryService<Asked> for Call {
    type Response = BotSession;
    type Future = Soon<Response<BotSession>, Status>;

    fn call(&mut self, request: Request<Asked>) -> Self::Future {
        let (services, creates) = (self.services.clone(), self.creates);
        Box::pin(async move {
            let method = if creates { Method::CreateBotSession } else { Method::UpdateBotSession };
            let _in_flight = services.admit(method, &request).await?;
            let Asked { name, bot_session } = request.into_inner();
            let mut session = bot_session.ok_or_else(|| Status::invalid_argument("no session"))?;
            let is_news = {
                let mut state = services.state();
                let bots = &mut state.bots;
                if creates {
                    // A worker that comes again has one session.
                    bots.sessions.retain(|_, known| known.bot_id != session.bot_id);
                    bots.created += 1;
                    session.name = format!("{name}/session {}", bots.created);
                } else if !bots.sessions.contains_key(&session.name) || name != session.name {
                    return Err(Status::not_found("there is no such session"));
                }
                let before = session.leases.len();
                session = bots.heard(session);
                creates || before > 0 || !session.leases.is_empty() || session.status != 1
            };
            let began = tokio::time::Instant::now();
            while !is_news && began.elapsed() < WAIT {
                if !services.state().bots.queue.is_empty() {
                    session = services.state().bots.heard(session);
                    break;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Ok(Response::new(session))
        })
    }
}

impl Services {
    /// Lets a worker execute an action, and waits until it has ended.
    pub(super) async fn by_worker(&self, name: &str, payload: Any) -> Lease {
        let lease = Lease { id: name.into(), payload: Some(payload), ..Lease::default() };
        self.state().bots.queue.push_back(lease);
        loop {
            if let Some(lease) = self.state().bots.ended.get(name) {
                return lease.clone();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

//! The services of the cache. Each request is counted and admitted, then answered from what is stored.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::build::bazel::semver::SemVer;
use bazel_remote_apis::google::bytestream as bs;
use bazel_remote_apis::google::rpc;
use futures_util::stream::{self, Stream, StreamExt};
use prost::Message;
use re::{batch_read_blobs_response as read, batch_update_blobs_response as update};
use sha2::{Digest as _, Sha256};
use tonic::{Code, Request, Response, Status, Streaming};

use super::{Blob, Compressor, Function, MESSAGE, Method, State, Stored};

/// What is sent of a blob in one message of a stream.
const CHUNK: usize = 256 << 10;

pub(super) type Answer<T> = Result<Response<T>, Status>;
pub(super) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[derive(Clone)]
pub(super) struct Services(pub(super) Arc<Mutex<State>>);

/// A request until it is answered.
pub(super) struct InFlight(Services);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.state().counts.in_flight -= 1;
    }
}

/// The blob that a name of a stream is about.
struct Resource {
    instance: String,
    /// The name of the digest function, which SHA-256 does not have.
    function: Function,
    digest: re::Digest,
    compressor: Compressor,
}

impl Resource {
    /// Reads `[INSTANCE/][uploads/UUID/](blobs|compressed-blobs/COMPRESSOR)/[FUNCTION/]HASH/SIZE`. Uploads may have a further part.
    fn parse(name: &str, upload: bool) -> Option<Resource> {
        let parts: Vec<&str> = name.split('/').collect();
        let begin = parts.iter().position(|part| ["uploads", "blobs", "compressed-blobs"].contains(part))?;
        let (instance, mut rest) = (parts[..begin].join("/"), &parts[begin..]);
        if upload {
            let ["uploads", uuid, of_upload @ ..] = rest else { return None };
            let groups: Vec<usize> = uuid.split('-').map(str::len).collect();
            if groups != [8, 4, 4, 4, 12] {
                return None;
            }
            rest = of_upload;
        }
        let (compressor, rest) = match rest {
            ["blobs", rest @ ..] => (Compressor::Identity, rest),
            ["compressed-blobs", "zstd", rest @ ..] => (Compressor::Zstd, rest),
            _ => return None,
        };
        let (function, rest) = match rest {
            ["blake3", rest @ ..] => (Function::Blake3, rest),
            rest => (Function::Sha256, rest),
        };
        let [hash, size, further @ ..] = rest else { return None };
        let digest = re::Digest { hash: (*hash).into(), size_bytes: size.parse().ok()? };
        (upload || further.is_empty()).then_some(Resource { instance, function, digest, compressor })
    }
}

fn invalid(why: &str) -> Status {
    Status::invalid_argument(why)
}

pub(super) fn hash(function: Function, bytes: &[u8]) -> String {
    match function {
        Function::Blake3 => blake3::hash(bytes).to_hex().to_string(),
        _ => Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// A digest that is well formed.
fn checked(digest: Option<re::Digest>) -> Result<re::Digest, Status> {
    let digest = digest.ok_or_else(|| invalid("a digest is missing"))?;
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let formed = digest.hash.len() == 64 && digest.hash.bytes().all(lower) && digest.size_bytes >= 0;
    formed.then_some(digest).ok_or_else(|| invalid("a digest is malformed"))
}

fn verified(function: Function, digest: &re::Digest, bytes: &[u8]) -> Result<(), Status> {
    let matches = digest.size_bytes == bytes.len() as i64 && digest.hash == hash(function, bytes);
    matches.then_some(()).ok_or_else(|| invalid("the data does not match its digest"))
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn uncompressed(compressor: Compressor, bytes: Vec<u8>) -> Result<Vec<u8>, Status> {
    match compressor {
        Compressor::Identity => Ok(bytes),
        _ => crate::server::uncompressed(&bytes).ok_or_else(|| invalid("the data cannot be uncompressed")),
    }
}

/// Beyond the size of a message.
fn within(size: usize) -> Result<(), Status> {
    (size <= MESSAGE).then_some(()).ok_or_else(|| Status::resource_exhausted("the message is larger than 4 MiB"))
}

/// The status of one blob in a batch.
fn status(status: Result<(), Status>) -> Option<rpc::Status> {
    let (code, message) =
        status.err().map_or((0, String::new()), |status| (status.code() as i32, status.message().into()));
    Some(rpc::Status { code, message, details: vec![] })
}

impl State {
    fn refusal(&mut self, method: Method) -> Option<Code> {
        let fits = |refusal: &&mut super::Refusal| {
            refusal.left != Some(0) && refusal.method.is_none_or(|refused| refused == method)
        };
        let refusal = self.options.refusals.iter_mut().find(fits)?;
        refusal.left = refusal.left.map(|left| left - 1);
        Some(refusal.code)
    }

    fn in_instance(&self, name: &str) -> Result<(), Status> {
        let known = name == self.options.instance;
        known.then_some(()).ok_or_else(|| Status::not_found(format!("there is no instance `{name}`")))
    }

    /// A request without a digest function means SHA-256.
    pub(super) fn function(&self, value: i32) -> Result<Function, Status> {
        let named = match Function::try_from(value) {
            Ok(Function::Unknown) => Some(Function::Sha256),
            named => named.ok(),
        };
        let known = named.filter(|function| self.options.functions.contains(function));
        known.ok_or_else(|| invalid("the digest function is unknown"))
    }

    fn compressor(&self, compressor: Compressor) -> Result<Compressor, Status> {
        let known = compressor == Compressor::Identity || self.options.compressors.contains(&compressor);
        known.then_some(compressor).ok_or_else(|| invalid("the compressor is unknown"))
    }

    fn within_batch(&self, sizes: impl Iterator<Item = i64>) -> Result<(), Status> {
        let max = self.options.max_batch;
        let within = max == 0 || sizes.sum::<i64>() <= max;
        within.then_some(()).ok_or_else(|| invalid("the batch is larger than the capabilities allow"))
    }

    fn may_store(&self) -> Result<(), Status> {
        if self.options.read_only {
            Err(Status::permission_denied("the cache is read-only"))
        } else if self.options.full {
            Err(Status::resource_exhausted("the cache is full"))
        } else {
            Ok(())
        }
    }

    fn has(&self, function: Function, digest: &re::Digest) -> bool {
        if digest.size_bytes == 0 && digest.hash == hash(function, b"") {
            return true;
        }
        let stored = self.blobs.get(&digest.hash);
        stored.is_some_and(|blob| blob.function == function && blob.size == digest.size_bytes)
            && !self.options.missing.as_ref().is_some_and(|missing| missing(&digest.hash))
    }

    /// The bytes of a blob as they are given out.
    fn blob(&mut self, function: Function, digest: &re::Digest) -> Result<Vec<u8>, Status> {
        if !self.has(function, digest) {
            return Err(Status::not_found("there is no such blob"));
        }
        self.counts.blobs_read += 1;
        let mut bytes = self.blobs.get(&digest.hash).map(|blob| blob.bytes.clone()).unwrap_or_default();
        if let Some(first) = bytes.first_mut().filter(|_| self.options.wrong_bytes) {
            *first ^= 1;
        }
        Ok(bytes)
    }

    fn store(&mut self, function: Function, digest: re::Digest, bytes: Vec<u8>) -> Result<(), Status> {
        verified(function, &digest, &bytes)?;
        self.counts.blobs_written += 1;
        self.blobs.insert(digest.hash, Blob { function, size: digest.size_bytes, bytes });
        Ok(())
    }

    fn resource(&self, name: &str, upload: bool) -> Result<Resource, Status> {
        let resource = Resource::parse(name, upload).ok_or_else(|| invalid("the resource name is malformed"))?;
        self.in_instance(&resource.instance)?;
        self.function(resource.function as i32)?;
        self.compressor(resource.compressor)?;
        checked(Some(resource.digest.clone()))?;
        Ok(resource)
    }
}

impl Services {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        super::lock(&self.0)
    }

    fn hangs(&self, method: Method) -> bool {
        self.state().options.hangs == Some(method)
    }

    /// Counts a request and waits as long as its answer takes. Then says whether it is answered.
    pub(super) async fn admit<T>(&self, method: Method, request: &Request<T>) -> Result<InFlight, Status> {
        let (admitted, delay) = {
            let mut state = self.state();
            let limit = state.options.limit;
            let counts = &mut state.counts;
            *counts.requests.entry(method).or_default() += 1;
            counts.in_flight += 1;
            counts.most_in_flight = counts.most_in_flight.max(counts.in_flight);
            let beyond = limit.is_some_and(|limit| counts.in_flight > limit);
            let admitted = InFlight(self.clone());
            if beyond {
                drop(state);
                return Err(Status::resource_exhausted("too many requests at once"));
            }
            let given = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
            let token = state.options.token.as_ref().map(|token| format!("Bearer {token}"));
            let admitted = match state.refusal(method) {
                Some(code) => Err((admitted, Status::new(code, "the test refuses this request"))),
                None if token.is_some() && given != token.as_deref() => {
                    Err((admitted, Status::unauthenticated("the token is wrong")))
                }
                None => Ok(admitted),
            };
            (admitted, state.options.delay)
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        // Streams begin.
        if self.hangs(method) && !matches!(method, Method::Read | Method::Write) {
            std::future::pending::<()>().await;
        }
        admitted.map_err(|(_in_flight, status)| status)
    }
}

#[tonic::async_trait]
impl re::capabilities_server::Capabilities for Services {
    async fn get_capabilities(&self, request: Request<re::GetCapabilitiesRequest>) -> Answer<re::ServerCapabilities> {
        let _in_flight = self.admit(Method::GetCapabilities, &request).await?;
        let state = self.state();
        state.in_instance(&request.get_ref().instance_name)?;
        let options = &state.options;
        let compressors: Vec<i32> = options.compressors.iter().map(|&compressor| compressor as i32).collect();
        let cache = re::CacheCapabilities {
            digest_functions: options.functions.iter().map(|&function| function as i32).collect(),
            action_cache_update_capabilities: Some(re::ActionCacheUpdateCapabilities {
                update_enabled: !options.read_only && !options.stores_no_results,
            }),
            max_batch_total_size_bytes: options.max_batch,
            supported_compressors: compressors.clone(),
            supported_batch_update_compressors: compressors,
            ..Default::default()
        };
        let execution = re::ExecutionCapabilities {
            exec_enabled: options.executes,
            digest_function: cache.digest_functions.first().copied().unwrap_or_default(),
            ..Default::default()
        };
        let version = |minor| Some(SemVer { major: 2, minor, ..Default::default() });
        Ok(Response::new(re::ServerCapabilities {
            cache_capabilities: Some(cache),
            execution_capabilities: Some(execution).filter(|_| options.executes),
            low_api_version: version(0),
            high_api_version: version(3),
            ..Default::default()
        }))
    }
}

#[tonic::async_trait]
impl re::action_cache_server::ActionCache for Services {
    async fn get_action_result(&self, request: Request<re::GetActionResultRequest>) -> Answer<re::ActionResult> {
        let _in_flight = self.admit(Method::GetActionResult, &request).await?;
        let (state, request) = (self.state(), request.into_inner());
        state.in_instance(&request.instance_name)?;
        let function = state.function(request.digest_function)?;
        let action = checked(request.action_digest)?;
        let stored = state.results.get(&action.hash).filter(|stored| stored.function == function);
        let mut result = stored.ok_or_else(|| Status::not_found("there is no such action result"))?.result.clone();
        if state.options.failed {
            result.exit_code = 1;
        }
        if state.options.no_outputs {
            result.output_files.clear();
        }
        if state.options.truncated_stdout {
            result.stdout_raw.truncate(result.stdout_raw.len() / 2);
        }
        Ok(Response::new(result))
    }

    async fn update_action_result(&self, request: Request<re::UpdateActionResultRequest>) -> Answer<re::ActionResult> {
        let _in_flight = self.admit(Method::UpdateActionResult, &request).await?;
        let (mut state, request) = (self.state(), request.into_inner());
        state.in_instance(&request.instance_name)?;
        state.may_store()?;
        if state.options.stores_no_results {
            return Err(Status::permission_denied("the cache stores no results of clients"));
        }
        let function = state.function(request.digest_function)?;
        let action = checked(request.action_digest)?;
        let result = request.action_result.ok_or_else(|| invalid("the action result is missing"))?;
        state.results.insert(action.hash, Stored { function, result: result.clone() });
        Ok(Response::new(result))
    }
}

#[tonic::async_trait]
impl re::content_addressable_storage_server::ContentAddressableStorage for Services {
    async fn find_missing_blobs(
        &self,
        request: Request<re::FindMissingBlobsRequest>,
    ) -> Answer<re::FindMissingBlobsResponse> {
        let _in_flight = self.admit(Method::FindMissingBlobs, &request).await?;
        let (state, request) = (self.state(), request.into_inner());
        within(request.encoded_len())?;
        state.in_instance(&request.instance_name)?;
        let function = state.function(request.digest_function)?;
        let mut missing = vec![];
        for digest in request.blob_digests {
            let digest = checked(Some(digest))?;
            if !state.has(function, &digest) {
                missing.push(digest);
            }
        }
        Ok(Response::new(re::FindMissingBlobsResponse { missing_blob_digests: missing }))
    }

    async fn batch_update_blobs(
        &self,
        request: Request<re::BatchUpdateBlobsRequest>,
    ) -> Answer<re::BatchUpdateBlobsResponse> {
        let _in_flight = self.admit(Method::BatchUpdateBlobs, &request).await?;
        let (mut state, request) = (self.state(), request.into_inner());
        within(request.encoded_len())?;
        state.in_instance(&request.instance_name)?;
        if state.options.read_only {
            state.may_store()?;
        }
        let function = state.function(request.digest_function)?;
        state.within_batch(request.requests.iter().map(|blob| blob.data.len() as i64))?;
        let mut responses = vec![];
        for blob in request.requests {
            let digest = checked(blob.digest)?;
            let store = || {
                state.may_store()?;
                let compressor =
                    Compressor::try_from(blob.compressor).map_err(|_| invalid("the compressor is unknown"))?;
                let bytes = uncompressed(state.compressor(compressor)?, blob.data)?;
                state.store(function, digest.clone(), bytes)
            };
            let status = status(store());
            responses.push(update::Response { digest: Some(digest), status });
        }
        Ok(Response::new(re::BatchUpdateBlobsResponse { responses }))
    }

    async fn batch_read_blobs(
        &self,
        request: Request<re::BatchReadBlobsRequest>,
    ) -> Answer<re::BatchReadBlobsResponse> {
        let _in_flight = self.admit(Method::BatchReadBlobs, &request).await?;
        let (mut state, request) = (self.state(), request.into_inner());
        state.in_instance(&request.instance_name)?;
        let function = state.function(request.digest_function)?;
        state.within_batch(request.digests.iter().map(|digest| digest.size_bytes))?;
        let accepted = request.acceptable_compressors.contains(&(Compressor::Zstd as i32));
        let compresses = accepted && state.compressor(Compressor::Zstd).is_ok();
        let mut responses = vec![];
        for digest in request.digests {
            let digest = checked(Some(digest))?;
            let (found, data) = match state.blob(function, &digest) {
                Ok(bytes) => (Ok(()), bytes),
                Err(status) => (Err(status), vec![]),
            };
            let smaller = compresses.then(|| compressed(&data)).filter(|smaller| smaller.len() < data.len());
            let compressor = if smaller.is_some() { Compressor::Zstd } else { Compressor::Identity };
            responses.push(read::Response {
                digest: Some(digest),
                data: smaller.unwrap_or(data),
                compressor: compressor as i32,
                status: status(found),
            });
        }
        let response = re::BatchReadBlobsResponse { responses };
        within(response.encoded_len())?;
        Ok(Response::new(response))
    }

    type GetTreeStream = Answers<re::GetTreeResponse>;

    async fn get_tree(&self, _: Request<re::GetTreeRequest>) -> Answer<Self::GetTreeStream> {
        Err(Status::unimplemented("a cache of files has no trees"))
    }

    async fn split_blob(&self, _: Request<re::SplitBlobRequest>) -> Answer<re::SplitBlobResponse> {
        Err(Status::unimplemented("blobs are not split"))
    }

    type GetChunkMappingStream = Answers<re::GetChunkMappingResponse>;

    async fn get_chunk_mapping(&self, _: Request<re::GetChunkMappingRequest>) -> Answer<Self::GetChunkMappingStream> {
        Err(Status::unimplemented("blobs are not split"))
    }

    async fn splice_blob(&self, _: Request<re::SpliceBlobRequest>) -> Answer<re::SpliceBlobResponse> {
        Err(Status::unimplemented("blobs are not split"))
    }

    async fn register_chunk_mapping(
        &self,
        _: Request<Streaming<re::RegisterChunkMappingRequest>>,
    ) -> Answer<re::RegisterChunkMappingResponse> {
        Err(Status::unimplemented("blobs are not split"))
    }
}

#[tonic::async_trait]
impl bs::byte_stream_server::ByteStream for Services {
    type ReadStream = Answers<bs::ReadResponse>;

    async fn read(&self, request: Request<bs::ReadRequest>) -> Answer<Self::ReadStream> {
        let in_flight = self.admit(Method::Read, &request).await?;
        let (mut state, request) = (self.state(), request.into_inner());
        let Resource { function, digest, compressor, .. } = state.resource(&request.resource_name, false)?;
        let mut bytes = state.blob(function, &digest)?;
        let offset = usize::try_from(request.read_offset).ok().filter(|&offset| offset <= bytes.len());
        bytes.drain(..offset.ok_or_else(|| Status::out_of_range("the offset lies beyond the end"))?);
        let limit = usize::try_from(request.read_limit).map_err(|_| invalid("the limit is negative"))?;
        if compressor == Compressor::Zstd {
            if limit != 0 {
                return Err(invalid("a compressed blob has no limit"));
            }
            bytes = compressed(&bytes);
        } else if limit != 0 {
            bytes.truncate(limit);
        }
        let chunks: Vec<_> = bytes.chunks(CHUNK).map(|chunk| Ok(bs::ReadResponse { data: chunk.to_vec() })).collect();
        let hangs = state.options.hangs == Some(Method::Read);
        let answers = stream::iter(chunks).take(if hangs { 0 } else { usize::MAX }).map(move |answer| {
            let _until_the_end = &in_flight;
            answer
        });
        let silence = if hangs { stream::pending().left_stream() } else { stream::empty().right_stream() };
        Ok(Response::new(Box::pin(answers.chain(silence))))
    }

    async fn write(&self, request: Request<Streaming<bs::WriteRequest>>) -> Answer<bs::WriteResponse> {
        let _in_flight = self.admit(Method::Write, &request).await?;
        let mut messages = request.into_inner();
        let mut message = messages.message().await?.ok_or_else(|| invalid("the stream is empty"))?;
        let name = message.resource_name.clone();
        if self.hangs(Method::Write) {
            std::future::pending::<()>().await;
        }
        let Resource { function, digest, compressor, .. } = {
            let state = self.state();
            let resource = state.resource(&name, true)?;
            state.may_store()?;
            if state.options.answers_early && state.has(resource.function, &resource.digest) {
                let whole = resource.compressor == Compressor::Identity;
                let committed_size = if whole { resource.digest.size_bytes } else { -1 };
                return Ok(Response::new(bs::WriteResponse { committed_size }));
            }
            resource
        };
        let mut bytes = vec![];
        loop {
            if !message.resource_name.is_empty() && message.resource_name != name {
                return Err(invalid("the resource name changes in the stream"));
            }
            if message.write_offset != bytes.len() as i64 {
                return Err(invalid("the offset is not where the last message ended"));
            }
            bytes.extend(message.data);
            if message.finish_write {
                break;
            }
            message = messages.message().await?.ok_or_else(|| invalid("the stream ends before the blob"))?;
        }
        let committed_size = bytes.len() as i64;
        let bytes = uncompressed(compressor, bytes)?;
        self.state().store(function, digest, bytes)?;
        Ok(Response::new(bs::WriteResponse { committed_size }))
    }

    async fn query_write_status(
        &self,
        request: Request<bs::QueryWriteStatusRequest>,
    ) -> Answer<bs::QueryWriteStatusResponse> {
        let _in_flight = self.admit(Method::QueryWriteStatus, &request).await?;
        let state = self.state();
        let resource = state.resource(&request.get_ref().resource_name, true)?;
        if !state.has(resource.function, &resource.digest) {
            return Err(Status::not_found("there is no such upload"));
        }
        Ok(Response::new(bs::QueryWriteStatusResponse { committed_size: resource.digest.size_bytes, complete: true }))
    }
}

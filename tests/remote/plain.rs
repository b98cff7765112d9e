//! A plain client of the Remote Execution API for tests of servers: one call a request, nothing tried again, nothing believed or checked.

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::bytestream as bs;
use bs::byte_stream_client::ByteStreamClient;
use re::action_cache_client::ActionCacheClient;
use re::batch_update_blobs_request::Request as Upload;
use re::capabilities_client::CapabilitiesClient;
use re::content_addressable_storage_client::ContentAddressableStorageClient;
use sha2::{Digest as _, Sha256};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use crate::server::{Compressor, Function};

/// A client, and what its requests say.
pub(crate) struct Plain {
    runtime: tokio::runtime::Runtime,
    channel: Channel,
    pub(crate) instance: String,
    pub(crate) function: Function,
    pub(crate) token: Option<String>,
}

/// The digest of bytes by SHA-256.
pub(crate) fn sha256(bytes: &[u8]) -> re::Digest {
    let hash = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    re::Digest { hash, size_bytes: bytes.len() as i64 }
}

/// The digest of bytes by BLAKE3.
pub(crate) fn blake3(bytes: &[u8]) -> re::Digest {
    re::Digest { hash: ::blake3::hash(bytes).to_hex().to_string(), size_bytes: bytes.len() as i64 }
}

impl Plain {
    /// A client of the server at `grpc://HOST:PORT`. It connects with its first request.
    pub(crate) fn new(url: &str) -> Plain {
        Plain::with(url, None)
    }

    /// The same at `grpcs://HOST:PORT`.
    pub(crate) fn secure(url: &str, tls: ClientTlsConfig) -> Plain {
        Plain::with(url, Some(tls))
    }

    fn with(url: &str, tls: Option<ClientTlsConfig>) -> Plain {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut endpoint = Endpoint::from_shared(url.replacen("grpc", "http", 1)).unwrap();
        if let Some(tls) = tls {
            endpoint = endpoint.tls_config(tls).unwrap();
        }
        let channel = runtime.block_on(async { endpoint.connect_lazy() });
        Plain { runtime, channel, instance: String::new(), function: Function::Sha256, token: None }
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        request
    }

    fn storage(&self) -> ContentAddressableStorageClient<Channel> {
        ContentAddressableStorageClient::new(self.channel.clone())
    }

    pub(crate) fn capabilities(&self) -> Result<re::CacheCapabilities, Status> {
        let request = self.request(re::GetCapabilitiesRequest { instance_name: self.instance.clone() });
        let mut client = CapabilitiesClient::new(self.channel.clone());
        let answer = self.runtime.block_on(client.get_capabilities(request))?;
        Ok(answer.into_inner().cache_capabilities.unwrap())
    }

    pub(crate) fn result(&self, action: &re::Digest) -> Result<re::ActionResult, Status> {
        self.results(action, 1).pop().unwrap()
    }

    /// Asks for a result so many times at once.
    pub(crate) fn results(&self, action: &re::Digest, times: usize) -> Vec<Result<re::ActionResult, Status>> {
        let client = ActionCacheClient::new(self.channel.clone());
        let one = |()| {
            let request = self.request(re::GetActionResultRequest {
                instance_name: self.instance.clone(),
                action_digest: Some(action.clone()),
                digest_function: self.function as i32,
                ..Default::default()
            });
            let mut client = client.clone();
            async move { client.get_action_result(request).await.map(tonic::Response::into_inner) }
        };
        self.runtime.block_on(futures_util::future::join_all(vec![(); times].into_iter().map(one)))
    }

    pub(crate) fn update(&self, action: &re::Digest, result: &re::ActionResult) -> Result<(), Status> {
        let request = self.request(re::UpdateActionResultRequest {
            instance_name: self.instance.clone(),
            action_digest: Some(action.clone()),
            action_result: Some(result.clone()),
            digest_function: self.function as i32,
            ..Default::default()
        });
        let mut client = ActionCacheClient::new(self.channel.clone());
        self.runtime.block_on(client.update_action_result(request)).map(|_| ())
    }

    pub(crate) fn missing(&self, digests: &[re::Digest]) -> Result<Vec<re::Digest>, Status> {
        let request = self.request(re::FindMissingBlobsRequest {
            instance_name: self.instance.clone(),
            blob_digests: digests.to_vec(),
            digest_function: self.function as i32,
        });
        let answer = self.runtime.block_on(self.storage().find_missing_blobs(request))?;
        Ok(answer.into_inner().missing_blob_digests)
    }

    /// Uploads blobs in a batch. Each has a status.
    pub(crate) fn upload(&self, blobs: &[(re::Digest, Vec<u8>, Compressor)]) -> Result<Vec<Code>, Status> {
        let requests = blobs.iter().map(|(digest, data, compressor)| Upload {
            digest: Some(digest.clone()),
            data: data.clone(),
            compressor: *compressor as i32,
        });
        let request = self.request(re::BatchUpdateBlobsRequest {
            instance_name: self.instance.clone(),
            requests: requests.collect(),
            digest_function: self.function as i32,
        });
        let answer = self.runtime.block_on(self.storage().batch_update_blobs(request))?.into_inner();
        Ok(answer.responses.into_iter().map(|blob| Code::from_i32(blob.status.unwrap_or_default().code)).collect())
    }

    /// Downloads blobs in a batch: each has a status, its bytes as they came, and their compressor.
    pub(crate) fn download(
        &self,
        digests: &[re::Digest],
        accepted: &[Compressor],
    ) -> Result<Vec<(Code, Vec<u8>, Compressor)>, Status> {
        let request = self.request(re::BatchReadBlobsRequest {
            instance_name: self.instance.clone(),
            digests: digests.to_vec(),
            acceptable_compressors: accepted.iter().map(|&compressor| compressor as i32).collect(),
            digest_function: self.function as i32,
        });
        let client = self.storage();
        let mut client = client.max_decoding_message_size(usize::MAX);
        let answer = self.runtime.block_on(client.batch_read_blobs(request))?.into_inner();
        let blobs = answer.responses.into_iter().map(|blob| {
            let code = Code::from_i32(blob.status.clone().unwrap_or_default().code);
            let compressor = blob.compressor();
            (code, blob.data, compressor)
        });
        Ok(blobs.collect())
    }

    /// Reads a stream by the name of its resource.
    pub(crate) fn read(&self, name: &str, offset: i64, limit: i64) -> Result<Vec<u8>, Status> {
        let read = bs::ReadRequest { resource_name: name.into(), read_offset: offset, read_limit: limit };
        let request = self.request(read);
        let mut client = ByteStreamClient::new(self.channel.clone());
        self.runtime.block_on(async {
            let mut messages = client.read(request).await?.into_inner();
            let mut bytes = vec![];
            while let Some(message) = messages.message().await? {
                bytes.extend(message.data);
            }
            Ok(bytes)
        })
    }

    /// Writes a stream of these messages.
    pub(crate) fn write(&self, messages: Vec<bs::WriteRequest>) -> Result<i64, Status> {
        let request = self.request(futures_util::stream::iter(messages));
        let mut client = ByteStreamClient::new(self.channel.clone());
        Ok(self.runtime.block_on(client.write(request))?.into_inner().committed_size)
    }

    /// Whether an upload is complete.
    pub(crate) fn is_written(&self, name: &str) -> Result<bool, Status> {
        let request = self.request(bs::QueryWriteStatusRequest { resource_name: name.into() });
        let mut client = ByteStreamClient::new(self.channel.clone());
        Ok(self.runtime.block_on(client.query_write_status(request))?.into_inner().complete)
    }
}

/// The messages that write these bytes under a name, so many bytes in each.
pub(crate) fn pieces(name: &str, bytes: &[u8], size: usize) -> Vec<bs::WriteRequest> {
    let count = bytes.len().div_ceil(size).max(1);
    let piece = |index: usize| bs::WriteRequest {
        resource_name: if index == 0 { name.into() } else { String::new() },
        write_offset: (index * size) as i64,
        finish_write: index + 1 == count,
        data: bytes[index * size..bytes.len().min((index + 1) * size)].to_vec(),
    };
    (0..count).map(piece).collect()
}

//! Tests of the server itself, through a plain client: what it stores, demands and refuses, and each of its faults.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};
use tonic::{Code, Status};

use crate::certificates::Authority;
use crate::plain::{Plain, blake3, pieces, sha256};
use crate::server::{Compressor, Function, Method, Options, Refusal, Server, Tls};

const UPLOAD: &str = "uploads/2c1f5d1e-0000-4000-8000-000000000001";

fn started(options: Options) -> (Server, Plain) {
    let server = Server::start(options);
    let client = Plain::new(&server.url());
    (server, client)
}

/// A server that stores one blob and one action result, the blob's digest and the action's.
fn filled(options: Options) -> (Server, Plain, re::Digest, re::Digest) {
    let (server, client) = started(options);
    let (blob, action) = (sha256(b"blob"), sha256(b"action"));
    assert_eq!(client.upload(&[plain(b"blob")]).unwrap(), [Code::Ok]);
    client.update(&action, &result(&blob)).unwrap();
    (server, client, blob, action)
}

fn plain(bytes: &[u8]) -> (re::Digest, Vec<u8>, Compressor) {
    (sha256(bytes), bytes.to_vec(), Compressor::Identity)
}

pub(crate) fn result(blob: &re::Digest) -> re::ActionResult {
    let file = re::OutputFile { path: "o".into(), digest: Some(blob.clone()), ..Default::default() };
    re::ActionResult { output_files: vec![file], stdout_raw: b"0123456789".to_vec(), ..Default::default() }
}

fn code<T>(answer: Result<T, Status>) -> Code {
    answer.err().map_or(Code::Ok, |status| status.code())
}

fn downloaded(client: &Plain, digest: &re::Digest) -> (Code, Vec<u8>) {
    let (code, bytes, _) = client.download(std::slice::from_ref(digest), &[]).unwrap().remove(0);
    (code, bytes)
}

/// The name of a blob in a stream.
fn name(before: &str, digest: &re::Digest) -> String {
    format!("{before}/{}/{}", digest.hash, digest.size_bytes)
}

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    crate::server::uncompressed(bytes).unwrap()
}

#[test]
fn capabilities_are_the_options() {
    let (server, client) = started(Options::default());
    let capabilities = client.capabilities().unwrap();
    assert_eq!(capabilities.digest_functions, [Function::Sha256 as i32]);
    assert_eq!((capabilities.max_batch_total_size_bytes, capabilities.supported_compressors), (4_193_280, vec![]));
    assert!(capabilities.action_cache_update_capabilities.unwrap().update_enabled);
    {
        let options = &mut server.state().options;
        options.functions.push(Function::Blake3);
        options.compressors.push(Compressor::Zstd);
        (options.max_batch, options.read_only) = (0, true);
    }
    let capabilities = client.capabilities().unwrap();
    assert_eq!(capabilities.digest_functions, [Function::Sha256 as i32, Function::Blake3 as i32]);
    assert_eq!(capabilities.max_batch_total_size_bytes, 0);
    assert_eq!(capabilities.supported_compressors, [Compressor::Zstd as i32]);
    assert_eq!(capabilities.supported_batch_update_compressors, [Compressor::Zstd as i32]);
    assert!(!capabilities.action_cache_update_capabilities.unwrap().update_enabled);
}

#[test]
fn what_is_stored_comes_back_and_a_test_can_change_it() {
    let (server, client) = started(Options::default());
    let (blob, action) = (sha256(b"blob"), sha256(b"action"));
    assert_eq!(code(client.result(&action)), Code::NotFound);
    assert_eq!(downloaded(&client, &blob), (Code::NotFound, vec![]));
    assert_eq!(
        client.missing(&[blob.clone(), sha256(b"")]).unwrap(),
        std::slice::from_ref(&blob),
        "the empty blob is always there"
    );
    assert_eq!(client.upload(&[plain(b"blob")]).unwrap(), [Code::Ok]);
    client.update(&action, &result(&blob)).unwrap();
    assert_eq!(client.missing(std::slice::from_ref(&blob)).unwrap(), []);
    assert_eq!(client.result(&action).unwrap(), result(&blob));
    let both = client.download(&[blob.clone(), sha256(b"")], &[]).unwrap();
    let identity = |bytes: &[u8]| (Code::Ok, bytes.to_vec(), Compressor::Identity);
    assert_eq!(both, [identity(b"blob"), identity(b"")]);
    let larger = re::Digest { size_bytes: 5, ..blob.clone() };
    assert_eq!(downloaded(&client, &larger).0, Code::NotFound, "a size is part of a digest");

    let mut state = server.state();
    assert_eq!((state.counts.blobs_written, state.counts.blobs_read), (1, 2));
    assert_eq!((state.counts.of(Method::BatchReadBlobs), state.counts.of(Method::Read)), (3, 0));
    assert_eq!((state.counts.all(), state.counts.in_flight, state.counts.most_in_flight), (9, 0, 1));
    state.counts = Default::default();
    state.blobs.get_mut(&blob.hash).unwrap().bytes = b"bl".to_vec();
    state.results.get_mut(&action.hash).unwrap().result.exit_code = 7;
    drop(state);
    assert_eq!(downloaded(&client, &blob), (Code::Ok, b"bl".to_vec()));
    assert_eq!(client.result(&action).unwrap().exit_code, 7);
    assert_eq!(server.state().counts.all(), 2);
    server.state().blobs.clear();
    assert_eq!(downloaded(&client, &blob).0, Code::NotFound);
}

#[test]
fn uploads_are_verified_by_the_digest_function_of_the_request() {
    let (server, mut client) = started(Options::default());
    let wrong = (sha256(b"blob"), b"blub".to_vec(), Compressor::Identity);
    assert_eq!(client.upload(&[wrong, plain(b"good")]).unwrap(), [Code::InvalidArgument, Code::Ok]);
    let shouted = re::Digest { hash: sha256(b"blob").hash.to_uppercase(), size_bytes: 4 };
    assert_eq!(code(client.missing(&[shouted])), Code::InvalidArgument);
    client.function = Function::Blake3;
    let blob = (blake3(b"blob"), b"blob".to_vec(), Compressor::Identity);
    assert_eq!(code(client.upload(std::slice::from_ref(&blob))), Code::InvalidArgument);
    assert_eq!(code(client.result(&blob.0)), Code::InvalidArgument);
    server.state().options.functions.push(Function::Blake3);
    assert_eq!(client.upload(&[blob.clone(), plain(b"blob")]).unwrap(), [Code::Ok, Code::InvalidArgument]);
    assert_eq!(downloaded(&client, &blob.0), (Code::Ok, b"blob".to_vec()));
    assert_eq!(client.read(&name("blobs/blake3", &blob.0), 0, 0).unwrap(), b"blob");
    client.update(&blob.0, &result(&blob.0)).unwrap();
    client.result(&blob.0).unwrap();
    for function in [Function::Sha256, Function::Unknown] {
        client.function = function;
        assert_eq!(downloaded(&client, &blob.0).0, Code::NotFound, "{function:?}");
        assert_eq!(code(client.result(&blob.0)), Code::NotFound, "{function:?}");
    }
    assert_eq!(code(client.read(&name("blobs", &blob.0), 0, 0)), Code::NotFound);
}

#[test]
fn batches_have_limits() {
    let (server, client) = started(Options { max_batch: 10, ..Options::default() });
    let (six, four) = (plain(b"666666"), plain(b"4444"));
    assert_eq!(client.upload(&[six.clone(), four.clone()]).unwrap(), [Code::Ok, Code::Ok]);
    assert_eq!(code(client.upload(&[six.clone(), four.clone(), plain(b"1")])), Code::InvalidArgument);
    assert!(client.download(&[six.0.clone(), four.0.clone()], &[]).is_ok());
    assert_eq!(code(client.download(&[six.0.clone(), four.0, six.0], &[])), Code::InvalidArgument);
    // Without a stated limit there is that of messages.
    server.state().options.max_batch = 0;
    let half = plain(&vec![1; 2 << 20]);
    assert_eq!(client.upload(std::slice::from_ref(&half)).unwrap(), [Code::Ok]);
    assert_eq!(code(client.upload(&[half.clone(), half.clone()])), Code::ResourceExhausted);
    assert_eq!(code(client.download(&[half.0.clone(), half.0], &[])), Code::ResourceExhausted);
}

#[test]
fn streams_carry_blobs_in_pieces() {
    let (server, client) = started(Options { instance: "a/b".into(), ..Options::default() });
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    let digest = sha256(&bytes);
    let (to, from) = (name(&format!("a/b/{UPLOAD}/blobs"), &digest), name("a/b/blobs", &digest));
    assert_eq!(code(client.read(&from, 0, 0)), Code::NotFound);
    assert_eq!(code(client.is_written(&to)), Code::NotFound);
    assert_eq!(client.write(pieces(&to, &bytes, 100_000)).unwrap(), 1_000_000);
    assert!(client.is_written(&to).unwrap());
    assert!(client.read(&from, 0, 0).unwrap() == bytes);
    assert!(client.read(&from, 999_990, 0).unwrap() == bytes[999_990..]);
    assert!(client.read(&from, 10, 300_000).unwrap() == bytes[10..300_010]);
    assert_eq!(code(client.read(&from, 1_000_001, 0)), Code::OutOfRange);
    let counts = server.state().counts.clone();
    assert_eq!((counts.of(Method::Read), counts.of(Method::Write), counts.of(Method::QueryWriteStatus)), (5, 1, 2));
    // A blob of no bytes is one message of none.
    let empty = sha256(b"");
    assert_eq!(client.write(pieces(&name(&format!("a/b/{UPLOAD}/blobs"), &empty), b"", 1)).unwrap(), 0);
    assert_eq!(client.read(&name("a/b/blobs", &empty), 0, 0).unwrap(), b"");

    let mut gap = pieces(&to, &bytes, 600_000);
    gap[1].write_offset += 1;
    let mut short = pieces(&to, &bytes, 600_000);
    short.pop();
    let mut renamed = pieces(&to, &bytes, 600_000);
    renamed[1].resource_name = from.clone();
    for wrong in [gap, short, renamed, pieces(&to, &bytes[1..], 600_000), vec![]] {
        assert_eq!(code(client.write(wrong)), Code::InvalidArgument);
    }
    let names =
        [name("a/b/uploads/1/blobs", &digest), from.clone(), name(&format!("a/b/{UPLOAD}/blobs/sha256"), &digest)];
    for wrong in names {
        assert_eq!(code(client.write(pieces(&wrong, &bytes, 1 << 20))), Code::InvalidArgument, "{wrong}");
    }
    for wrong in [to, format!("{from}/more"), name("a/b/blobs/sha256", &digest), "a/b".into()] {
        assert_eq!(code(client.read(&wrong, 0, 0)), Code::InvalidArgument, "{wrong}");
    }
    assert_eq!(code(client.read(&name("blobs", &digest), 0, 0)), Code::NotFound, "of another instance");
}

#[test]
fn an_upload_of_a_stored_blob_may_be_answered_early() {
    let (server, client, digest, _) = filled(Options { compressors: vec![Compressor::Zstd], ..Options::default() });
    let wrong = |before: &str| pieces(&name(&format!("{UPLOAD}/{before}"), &digest), b"blub", 4);
    assert_eq!(code(client.write(wrong("blobs"))), Code::InvalidArgument);
    server.state().options.answers_early = true;
    assert_eq!(client.write(wrong("blobs")).unwrap(), 4);
    assert_eq!(client.write(wrong("compressed-blobs/zstd")).unwrap(), -1);
}

#[test]
fn blobs_are_compressed_where_it_is_announced() {
    let (server, client) = started(Options::default());
    let bytes = vec![7; 500_000];
    let digest = sha256(&bytes);
    let small = ruzstd::encoding::compress_to_vec(&bytes[..], ruzstd::encoding::CompressionLevel::Fastest);
    let (to, from) =
        (name(&format!("{UPLOAD}/compressed-blobs/zstd"), &digest), name("compressed-blobs/zstd", &digest));
    let batch = [(digest.clone(), small.clone(), Compressor::Zstd)];
    assert_eq!(client.upload(&batch).unwrap(), [Code::InvalidArgument]);
    assert_eq!(code(client.write(pieces(&to, &small, 10))), Code::InvalidArgument);
    server.state().options.compressors.push(Compressor::Zstd);
    assert_eq!(client.upload(&batch).unwrap(), [Code::Ok]);
    assert_eq!(client.write(pieces(&to, &small, 10)).unwrap(), small.len() as i64);
    assert_eq!(unzipped(&client.read(&from, 0, 0).unwrap()), bytes);
    assert_eq!(unzipped(&client.read(&from, 499_999, 0).unwrap()), [7]);
    assert_eq!(code(client.read(&from, 0, 1)), Code::InvalidArgument);
    assert_eq!(client.read(&name("blobs", &digest), 0, 0).unwrap(), bytes);
    let (_, plain, compressor) = client.download(std::slice::from_ref(&digest), &[]).unwrap().remove(0);
    assert!(plain == bytes && compressor == Compressor::Identity);
    let (_, small, compressor) = client.download(std::slice::from_ref(&digest), &[Compressor::Zstd]).unwrap().remove(0);
    assert!(unzipped(&small) == bytes && compressor == Compressor::Zstd);
    assert_eq!(client.upload(&[(digest, b"no frame".to_vec(), Compressor::Zstd)]).unwrap(), [Code::InvalidArgument]);
}

/// The codes of every method.
fn codes(client: &Plain) -> [Code; 8] {
    let digest = sha256(b"blob");
    let at =
        |name: &str| if client.instance.is_empty() { name.to_string() } else { format!("{}/{name}", client.instance) };
    let (to, from) = (name(&at(&format!("{UPLOAD}/blobs")), &digest), name(&at("blobs"), &digest));
    [
        code(client.capabilities()),
        code(client.update(&sha256(b"action"), &result(&digest))),
        code(client.result(&sha256(b"action"))),
        code(client.upload(&[plain(b"blob")])),
        code(client.write(pieces(&to, b"blob", 4))),
        code(client.missing(std::slice::from_ref(&digest))),
        code(client.download(&[digest], &[])),
        code(client.read(&from, 0, 0)),
    ]
}

#[test]
fn an_instance_and_a_token_are_demanded_of_every_method() {
    let (server, mut client) = started(Options { instance: "main".into(), ..Options::default() });
    assert_eq!(codes(&client), [Code::NotFound; 8]);
    client.instance = "main".into();
    assert_eq!(codes(&client), [Code::Ok; 8]);
    server.state().options.token = Some("t0ken".into());
    assert_eq!(codes(&client), [Code::Unauthenticated; 8]);
    client.token = Some("other".into());
    assert_eq!(codes(&client), [Code::Unauthenticated; 8]);
    client.token = Some("t0ken".into());
    assert_eq!(codes(&client), [Code::Ok; 8]);
}

#[test]
fn a_cache_that_is_read_only_or_full_takes_nothing() {
    let (server, client, _, _) = filled(Options::default());
    server.state().options.read_only = true;
    let denied = Code::PermissionDenied;
    assert_eq!(codes(&client), [Code::Ok, denied, Code::Ok, denied, denied, Code::Ok, Code::Ok, Code::Ok]);
    server.state().options.read_only = false;
    server.state().options.full = true;
    let full = Code::ResourceExhausted;
    assert_eq!(codes(&client), [Code::Ok, full, Code::Ok, Code::Ok, full, Code::Ok, Code::Ok, Code::Ok]);
    assert_eq!(client.upload(&[plain(b"blob")]).unwrap(), [full], "each blob of a batch has its own status");
    assert_eq!(server.state().counts.blobs_written, 1);
}

#[test]
fn requests_are_refused_as_often_as_a_test_asks() {
    let (server, client, _, action) = filled(Options::default());
    server.state().options.refusals = vec![
        Refusal::next(2, Method::GetActionResult, Code::Unavailable),
        Refusal::next(1, Method::GetActionResult, Code::Internal),
    ];
    let asked = [Code::Unavailable, Code::Unavailable, Code::Internal, Code::Ok].map(|_| code(client.result(&action)));
    assert_eq!(asked, [Code::Unavailable, Code::Unavailable, Code::Internal, Code::Ok]);
    assert_eq!(server.state().counts.of(Method::GetActionResult), 4);
    server.state().options.refusals = vec![Refusal::always(Method::Read, Code::Aborted)];
    let read = [Code::Ok, Code::Ok, Code::Ok, Code::Ok, Code::Ok, Code::Ok, Code::Ok, Code::Aborted];
    assert_eq!((codes(&client), codes(&client)), (read, read));
    server.state().options.refusals = vec![Refusal::always(None, Code::ResourceExhausted)];
    assert_eq!(codes(&client), [Code::ResourceExhausted; 8]);
    server.state().options.refusals = vec![Refusal::next(1, None, Code::Unavailable)];
    assert_eq!((code(client.result(&action)), code(client.result(&action))), (Code::Unavailable, Code::Ok));
}

#[test]
fn answers_take_their_time_and_requests_at_once_are_limited() {
    let (server, client, _, action) = filled(Options::default());
    server.state().options.delay = Duration::from_millis(50);
    let began = Instant::now();
    assert!(client.results(&action, 20).iter().all(Result::is_ok));
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(50) && took < Duration::from_millis(900), "{took:?}");
    let counts = server.state().counts.clone();
    assert_eq!((counts.in_flight, counts.most_in_flight), (0, 20));
    server.state().options.limit = Some(8);
    let refused = client.results(&action, 20).into_iter().filter(|answer| answer.is_err());
    let refused: Vec<Code> = refused.map(code).collect();
    assert_eq!(refused, [Code::ResourceExhausted; 12]);
    assert_eq!(client.results(&action, 8).into_iter().map(code).collect::<Vec<_>>(), [Code::Ok; 8]);
}

#[test]
fn blobs_can_be_wrong_or_missing() {
    let (server, client, blob, action) = filled(Options::default());
    client.upload(&[plain(b"other")]).unwrap();
    server.state().options.wrong_bytes = true;
    assert_eq!(downloaded(&client, &blob), (Code::Ok, b"clob".to_vec()));
    assert_eq!(client.read(&name("blobs", &blob), 0, 0).unwrap(), b"clob");
    server.state().options.wrong_bytes = false;
    let hash = blob.hash.clone();
    server.state().options.missing = Some(Arc::new(move |missing| missing == hash));
    assert_eq!(downloaded(&client, &blob).0, Code::NotFound);
    assert_eq!(code(client.read(&name("blobs", &blob), 0, 0)), Code::NotFound);
    assert_eq!(client.missing(&[blob.clone(), sha256(b"other")]).unwrap(), std::slice::from_ref(&blob));
    assert_eq!(downloaded(&client, &sha256(b"other")), (Code::Ok, b"other".to_vec()));
    server.state().options.missing = Some(Arc::new(|_| true));
    assert_eq!(downloaded(&client, &sha256(b"other")).0, Code::NotFound);
    assert_eq!(client.result(&action).unwrap(), result(&blob));
    server.state().options.missing = None;
    assert_eq!(downloaded(&client, &blob), (Code::Ok, b"blob".to_vec()));
}

#[test]
fn action_results_can_be_wrong() {
    let (server, client, blob, action) = filled(Options::default());
    let answered = |change: fn(&mut Options)| {
        change(&mut server.state().options);
        client.result(&action).unwrap()
    };
    assert_eq!(answered(|options| options.failed = true).exit_code, 1);
    assert!(answered(|options| options.no_outputs = true).output_files.is_empty());
    assert_eq!(answered(|options| options.truncated_stdout = true).stdout_raw, b"01234");
    assert_eq!(answered(|options| *options = Options::default()), result(&blob), "what is stored stays as it is");
}

#[test]
fn a_stopped_server_drops_everything_at_once_and_can_come_back() {
    let (mut server, client, blob, action) = filled(Options::default());
    server.state().options.delay = Duration::from_secs(60);
    let url = server.url();
    let (began, (waiting, begun)) = (Instant::now(), std::sync::mpsc::channel());
    let asked = action.clone();
    let thread = std::thread::spawn(move || {
        let client = Plain::new(&url);
        waiting.send(()).unwrap();
        client.result(&asked)
    });
    begun.recv().unwrap();
    while server.state().counts.in_flight == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    server.stop();
    assert!(code(thread.join().unwrap()) != Code::Ok && began.elapsed() < Duration::from_secs(30));
    assert_eq!(server.state().counts.in_flight, 0);
    assert!(std::net::TcpStream::connect(server.address()).is_err());
    // The first request on a connection that ended has another code than one that finds no server.
    assert_ne!(code(client.capabilities()), Code::Ok);
    assert_eq!(code(Plain::new(&server.url()).capabilities()), Code::Unavailable);
    server.state().options.delay = Duration::ZERO;
    let url = server.url();
    server.restart();
    assert_eq!(server.url(), url);
    assert_eq!(Plain::new(&url).result(&action).unwrap(), result(&blob));
    let address = server.address();
    drop(server);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn tls_needs_the_authority_and_where_it_is_demanded_a_certificate_of_the_client() {
    let (authority, other) = (Authority::new(), Authority::new());
    let served = authority.server();
    let mut tls = Tls { certificate: served.certificate, key: served.key, client_authority: None };
    let trusting =
        |authority: &Authority| ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&authority.certificate));
    let server = Server::start(Options { tls: Some(tls.clone()), ..Options::default() });
    assert!(server.url().starts_with("grpcs://127.0.0.1:"));
    Plain::secure(&server.url(), trusting(&authority)).capabilities().unwrap();
    assert!(Plain::secure(&server.url(), trusting(&other)).capabilities().is_err());
    assert!(Plain::new(&server.url().replace("grpcs", "grpc")).capabilities().is_err());

    tls.client_authority = Some(other.certificate.clone());
    let server = Server::start(Options { tls: Some(tls), ..Options::default() });
    assert!(Plain::secure(&server.url(), trusting(&authority)).capabilities().is_err());
    for (issuer, answers) in [(&authority, false), (&other, true)] {
        let client = issuer.client();
        let identity = Identity::from_pem(client.certificate, client.key);
        let client = Plain::secure(&server.url(), trusting(&authority).identity(identity));
        assert_eq!(client.capabilities().is_ok(), answers);
    }
}

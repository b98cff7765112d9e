//! Bad input: a clear error, and a server that goes on.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::server::{Server, project, request, source};

/// The memory of a process in bytes.
fn memory(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn malformed_bodies_are_refused_with_what_is_wrong() {
    let project = project();
    let server = Server::start(&project, &["--body-limit", "100000"]);
    let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    let (deeper, deepest) = (deep(65), deep(40_000));
    let unknown = json!({ "candidate": request("x")["candidate"], "colour": "red" }).to_string();
    let nulls = json!({ "candidate": { "operator": { "operator": { "dims": null }, "source": "" } } }).to_string();
    let both = json!({ "candidate": { "operator": { "operator": {}, "source": "" }, "package": { "manifest": "" } } })
        .to_string();
    let out = json!({ "candidate": { "package": { "manifest": "", "files": { "../x": "" } } } }).to_string();
    let cases: [(&[u8], &str); 20] = [
        (b"", "is empty"),
        (b"{", "EOF"),
        (b"[null, null]", "not a JSON object"),
        (b" \n7", "not a JSON object"),
        (b"{\"candidate\": \"\xff\xfe\"}", "not the JSON"),
        (b"{\"candidate\": \xc3}", "not the JSON"),
        (b"{} {}", "missing field"),
        (deeper.as_bytes(), "deeper than 64"),
        (deepest.as_bytes(), "deeper than 64"),
        (unknown.as_bytes(), "colour"),
        (
            nulls.as_bytes(),
            "in `candidate.operator.operator.dims`: invalid type: null, expected a boolean, a number, a text",
        ),
        (b"{\"candidate\": {}}", "in `candidate`: missing field `operator` or `package`: one of them is expected"),
        (
            b"{\"candidate\": {\"kernel\": 1}}",
            "in `candidate.kernel`: unknown field `kernel`, expected `operator` or `package`",
        ),
        (
            b"{\"candidate\": \"x\"}",
            "in `candidate`: invalid type: string \"x\", expected an object with `operator` or `package`",
        ),
        (
            b"{\"candidate\": [null, {\"manifest\": \"\"}]}",
            "in `candidate`: invalid type: sequence, expected an object with `operator` or `package`",
        ),
        (
            b"{\"candidate\": {\"operator\": null, \"package\": {\"manifest\": \"\"}}}",
            "in `candidate.operator`: invalid type: null",
        ),
        (b"{\"candidate\": {\"operator\": {}}}", "in `candidate.operator`: missing field `operator`"),
        (
            b"{\"candidate\": {\"package\": {\"manifest\": 1}}}",
            "in `candidate.package.manifest`: invalid type: integer `1`",
        ),
        (both.as_bytes(), "in `candidate`: one of `operator` and `package` is expected, and it has both"),
        (out.as_bytes(), "no path within the package"),
    ];
    for path in ["/v1/evaluations", "/v1/batches"] {
        let mut connection = server.connect();
        for (body, wanted) in cases {
            let answer = connection.ask("POST", path, Some(body)).unwrap().expect(400).json();
            assert_eq!(answer["code"], "bad-request");
            if path == "/v1/evaluations" {
                assert!(answer["message"].as_str().unwrap().contains(wanted), "{wanted}: {answer}");
            }
        }
    }
    assert_eq!(server.evaluate(&request(&source("2", "first")))["result"]["verdict"], "pass");
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_is_read() {
    let project = project();
    let server = Server::start(&project, &["--body-limit", "1000"]);
    let mut stated = server.connect();
    stated
        .stream()
        .write_all(b"POST /v1/evaluations HTTP/1.1\r\nhost: x\r\ncontent-length: 999999999999\r\n\r\n")
        .unwrap();
    assert_eq!(stated.answer().unwrap().expect(413).json()["code"], "too-large");
    let mut chunked = server.connect();
    chunked
        .stream()
        .write_all(b"POST /v1/evaluations HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    let chunk = [b"100\r\n".as_slice(), &[b' '; 256], b"\r\n"].concat();
    for _ in 0..4 {
        chunked.stream().write_all(&chunk).unwrap();
    }
    assert_eq!(chunked.answer().unwrap().expect(413).json()["code"], "too-large");
    server.get("/healthz").expect(200);
}

#[test]
fn a_slow_body_and_one_that_is_cut_off_end_their_connection_only() {
    let project = project();
    let server = Server::start(&project, &["--body-timeout", "1s"]);
    let began = Instant::now();
    let mut slow = server.connect();
    slow.stream().write_all(b"POST /v1/evaluations HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{").unwrap();
    let mut cut = server.connect();
    cut.stream().write_all(b"POST /v1/evaluations HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{").unwrap();
    cut.stream().shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(slow.answer().unwrap().expect(408).json()["code"], "slow-body");
    assert!((Duration::from_millis(900)..Duration::from_secs(20)).contains(&began.elapsed()));
    server.get("/healthz").expect(200);
}

#[test]
fn requests_that_are_no_http_and_headers_without_end_are_refused() {
    let project = project();
    let server = Server::start(&project, &[]);
    let mut garbage = server.connect();
    garbage.stream().write_all(b"\x16\x03\x01 not http\r\n\r\n").unwrap();
    assert_eq!(garbage.head().unwrap().0, 400);
    let mut long = server.connect();
    long.stream().write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let line = [b"x: ".as_slice(), &[b'y'; 8000], b"\r\n"].concat();
    for _ in 0..20 {
        // The server may have closed it.
        if long.stream().write_all(&line).is_err() {
            break;
        }
    }
    assert!(long.head().map_or(true, |(status, _)| status == 431));
    server.get("/healthz").expect(200);
}

#[test]
fn connections_beyond_the_limit_wait_for_a_place() {
    let project = project();
    let server = Server::start(&project, &["--connections", "2"]);
    let (mut one, mut two) = (server.connect(), server.connect());
    for connection in [&mut one, &mut two] {
        connection.ask("GET", "/healthz", None).unwrap().expect(200);
    }
    let mut third = server.connect();
    third.send("GET", "/healthz", None).unwrap();
    third.stream().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(third.answer().is_err(), "it waits");
    drop(one);
    third.stream().set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    third.answer().unwrap().expect(200);
}

#[test]
#[ignore = "second tier: thousands of requests"]
fn bad_input_does_not_grow_the_memory() {
    let project = project();
    let server = Server::start(&project, &[]);
    let round = || {
        let large = vec![b'['; 17 << 20];
        // Valid JSON that becomes much more in memory, and a plan of ten thousand variants.
        let mut tables = request("");
        tables["candidate"]["operator"]["colour"] = vec![json!({ "a": 1 }); 30_000].into();
        let mut variants = request(&source("2", "first"));
        let values: Vec<u32> = (0..100).collect();
        variants["candidate"]["operator"]["kernel"]["tune"] = json!({ "A": values, "B": values });
        let (tables, variants) = (tables.to_string(), variants.to_string());
        for at in 0..200 {
            let mut connection = server.connect();
            let (body, path): (&[u8], &str) = match at % 6 {
                0 => (&large, "/v1/evaluations"),
                1 => (&large[..1 << 20], "/v1/evaluations"),
                2 => (b"{\"candidate\"", "/v1/evaluations"),
                3 => (b"\xff\xff\xff", "/v1/evaluations"),
                4 => (tables.as_bytes(), "/v1/evaluations"),
                _ => (variants.as_bytes(), "/v1/evaluations?wait=100"),
            };
            // The server may close the connection while a body that is too large is sent.
            if let Ok(answer) = connection.ask("POST", path, Some(body)) {
                match at % 6 {
                    5 => assert_eq!(answer.expect(200).json()["result"]["cause"], "not-accepted"),
                    _ => assert!(matches!(answer.status, 400 | 413), "{}", answer.text()),
                }
            }
        }
    };
    round();
    let before = memory(server.pid());
    (0..5).for_each(|_| round());
    let after = memory(server.pid());
    assert!(after < before + (32 << 20), "{before} bytes before, {after} bytes after");
}

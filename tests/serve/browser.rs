//! Pages in browsers: they reach no server without tokens.

use std::io::Write;

use crate::server::{Server, project, request, source};

/// The status of a request with these headers.
fn status(server: &Server, method: &str, path: &str, headers: &str) -> u16 {
    let body = if method == "POST" { request(&source("2", "first")).to_string() } else { String::new() };
    let text = format!("{method} {path} HTTP/1.1\r\n{headers}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut connection = server.connect();
    connection.stream().write_all(text.as_bytes()).unwrap();
    connection.answer().unwrap().status
}

#[test]
fn a_page_reaches_no_server_without_tokens() {
    let project = project();
    let server = Server::start(&project, &[]);
    let page = "host: localhost\r\norigin: http://evil.example\r\ncontent-type: text/plain";
    for headers in [page, "host: evil.example", "host: 127.0.0.1.evil.example:7377", "host: 127.0.0.1\r\norigin: null"]
    {
        for (method, path) in [
            ("POST", "/v1/evaluations"),
            ("GET", "/v1/tasks"),
            ("GET", "/kernelgym/status/a"),
            ("POST", "/slime/reward"),
        ] {
            assert_eq!(status(&server, method, path, headers), 403, "{method} {path} {headers}");
        }
    }
    assert_eq!(server.metric("kforge_tasks_accepted_total"), 0);
    for host in ["localhost:7377", "127.0.0.1:7377", "[::1]:7377", "gpu-1"] {
        assert_eq!(status(&server, "POST", "/v1/evaluations?wait=100", &format!("host: {host}")), 200, "{host}");
    }
}

#[test]
fn with_tokens_a_page_of_whoever_has_one_may_ask() {
    let project = project();
    let tokens = project.root().join("tokens");
    std::fs::write(&tokens, "page 0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&tokens, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let server = Server::start(&project, &["--tokens", "tokens"]);
    let page = "host: kforge.example\r\norigin: https://page.example";
    assert_eq!(status(&server, "GET", "/v1/tasks", page), 401);
    assert_eq!(status(&server, "GET", "/v1/tasks", &format!("{page}\r\nauthorization: Bearer 0123456789abcdef")), 200);
}

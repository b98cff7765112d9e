//! Who may do what: tokens, clients, and what candidates can reach.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::client::Connection;
use crate::project::Project;
use crate::server::{Server, endless, project, request, source};

const ALICE: &str = "0123456789abcdef-alice";
const BOB: &str = "0123456789abcdef-bob";

/// Words that name a file with both tokens.
fn tokens(project: &Project) -> String {
    let path = project.place().join("tokens");
    std::fs::write(&path, format!("alice {ALICE}\nbob {BOB}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

#[test]
fn only_known_tokens_are_served_and_clients_do_not_see_each_other() {
    let project = project();
    let server = Server::start(&project, &["--tokens", &tokens(&project)]);
    let mut body = request(&source("2", "first"));
    body["id"] = "mine".into();
    let text = body.to_string();
    for token in [None, Some(""), Some("0123456789abcdef-alicf"), Some("0123456789abcdef-alice0")] {
        let mut other = Connection::open(server.address, token).unwrap();
        for (method, path) in
            [("GET", "/v1/tasks"), ("GET", "/metrics"), ("GET", "/v1/tasks/mine"), ("DELETE", "/v1/tasks/mine")]
        {
            let answer = other.ask(method, path, None).unwrap();
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{path}");
            assert_eq!(answer.expect(401).json()["code"], "unauthorized", "{path}");
        }
        Connection::open(server.address, token)
            .unwrap()
            .ask("POST", "/v1/evaluations", Some(text.as_bytes()))
            .unwrap()
            .expect(401);
    }
    for path in ["/healthz", "/readyz", "/openapi.json", "/"] {
        server.get(path).expect(200);
    }
    let mut alice = server.connect_as(ALICE);
    let task = alice.ask("POST", "/v1/evaluations?wait=100", Some(text.as_bytes())).unwrap().expect(200).json();
    let mut bob = server.connect_as(BOB);
    for (method, path) in [("GET", "/v1/tasks/mine"), ("DELETE", "/v1/tasks/mine"), ("GET", "/v1/tasks/mine/events")] {
        bob.ask(method, path, None).unwrap().expect(404);
    }
    assert_eq!(bob.ask("GET", "/v1/tasks", None).unwrap().json()["tasks"], json!([]));
    // Ids are those of a client; results are those of a content.
    let same = bob.ask("POST", "/v1/evaluations", Some(text.as_bytes())).unwrap().expect(200).json();
    assert_eq!((&same["id"], &same["result"]), (&json!("mine"), &task["result"]));
    assert!(!server.said().contains(ALICE));
}

#[test]
fn a_client_has_a_limit_of_its_own() {
    let project = project();
    let words = ["--tokens", &tokens(&project), "--client-limit", "1", "--evaluations", "1"];
    let server = Server::start(&project, &words);
    let (mut alice, mut bob) = (server.connect_as(ALICE), server.connect_as(BOB));
    let submit = |client: &mut Connection, mark: &str| {
        client.ask("POST", "/v1/evaluations", Some(endless(mark).to_string().as_bytes())).unwrap()
    };
    submit(&mut alice, "first").expect(202);
    let refused = submit(&mut alice, "second").expect(429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.json()["code"], "client-limit");
    submit(&mut bob, "third").expect(202);
}

#[test]
fn the_server_does_not_start_open_to_others_nor_with_readable_tokens() {
    let project = project();
    let fails = |words: &[&str]| Server::try_start(&project, words).err().expect("it started");
    let said = fails(&["--listen", "0.0.0.0:0"]);
    assert!(said.contains("--tokens") && said.contains("--allow-unauthenticated"), "{said}");
    let path = tokens(&project);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(fails(&["--tokens", &path]).contains("chmod 600"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    drop(Server::start(&project, &["--listen", "0.0.0.0:0", "--tokens", &path]));
    let _first = Server::start(&project, &[]);
    assert!(fails(&[]).contains("another `kforge serve` uses"));
}

#[test]
fn the_folder_of_the_server_is_closed_to_other_users() {
    let project = project();
    let _server = Server::start(&project, &[]);
    let folder = project.home().join("serve");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(&folder), mode(&folder.join("journal")), mode(&folder.join("work"))], [0o700, 0o600, 0o700]);
}

#[test]
fn a_candidate_reaches_neither_the_journal_nor_the_tokens_nor_other_files() {
    let project = project();
    let path = tokens(&project);
    let server = Server::start(&project, &["--tokens", &path]);
    let mut alice = server.connect_as(ALICE);
    let mut evaluate = |request: &serde_json::Value| {
        alice.ask("POST", "/v1/evaluations?wait=100", Some(request.to_string().as_bytes())).unwrap().expect(200).json()
    };
    let journal = project.home().join("serve/journal");
    for secret in [&path, journal.to_str().unwrap()] {
        let included = |line: &str| format!("{line}\n{}", source("2", "reads"));
        for (text, said) in [
            // Refused before the compiler, in each form of a path.
            (included(&format!("#include \"{secret}\"")), "lies outside the package"),
            (
                included(&format!("#if __has_include(\"{secret}\")\n#error there\n#endif\n#include <{secret}>")),
                "lies outside the package",
            ),
            // Only the preprocessor knows this path, so the confinement of the compiler refuses it.
            (included(&format!("#define PLACE \"{secret}\"\n#include PLACE")), "Permission denied"),
            (included(&format!("__asm__(\".incbin \\\"{secret}\\\"\");")), "cannot compile"),
        ] {
            let task = evaluate(&request(&text));
            assert_ne!(task["result"]["verdict"], "pass", "{task}");
            assert!(!task.to_string().contains(ALICE) && !task.to_string().contains(BOB), "{task}");
            assert!(task.to_string().contains(said), "{task}");
        }
    }
    let reads = "#include <stdio.h>\nextern \"C\" __global__ void twice(const float *x, float *y, int n) {\n    int i = threadIdx.x;\n    if (i == 0) {\n        FILE *file = fopen(\"PATH\", \"r\");\n        y[0] = file ? 2 * x[0] + 1 : 0;\n    } else if (i < n) y[i] = 2 * x[i] + 1;\n}\n";
    // A file that every process may open shows that the kernel does what it says.
    for (path, verdict) in
        [("/dev/null", "pass"), (&path, "fail"), (journal.to_str().unwrap(), "fail"), ("/etc/passwd", "fail")]
    {
        let task = evaluate(&request(&reads.replace("PATH", path)));
        assert_eq!(task["result"]["verdict"], verdict, "{path}: {task}");
    }
}

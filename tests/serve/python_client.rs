//! `clients/python` with a real server, by the Python of this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::server::{Server, project};

fn client() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python")
}

/// Runs Python in the client's folder; none, with a message, if there is none of version 3.10 or later.
#[expect(clippy::disallowed_methods, reason = "a test stands where a shell does, and hands PATH on")]
fn python(words: &[&str], server: &str) -> Option<Output> {
    let run = |words: &[&str]| {
        let mut command = Command::new("python3");
        command.args(words).current_dir(client()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("PYTHONPATH", "src").env("PYTHONDONTWRITEBYTECODE", "1").env("KFORGE_SERVE_URL", server);
        command.output()
    };
    let asked = run(&["-c", "import sys; assert sys.version_info >= (3, 10)"]);
    if !asked.is_ok_and(|output| output.status.success()) {
        kforge::base::testing::skipped("there is no Python 3.10 or later");
        return None;
    }
    Some(run(words).unwrap())
}

#[test]
#[ignore = "second tier: evaluates several kernels"]
fn the_example_proposes_until_a_kernel_is_correct() {
    let project = project();
    let server = Server::start(&project, &[]);
    let url = format!("http://{}", server.address);
    let Some(ran) = python(&["examples/proposals.py"], &url) else { return };
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    for (line, (score, why)) in
        lines.iter().zip([("0.00", "twice"), ("0.00", "small"), ("0.00", "small"), ("1.00", "correct")])
    {
        assert!(line.contains(&format!("score {score}: ")) && line.contains(why), "{line}");
    }
}

#[test]
fn a_refusal_is_an_error_with_the_servers_words() {
    let project = project();
    let server = Server::start(&project, &[]);
    let code = "import kforge_client as k\ntry: k.evaluate({'operator': {'operator': {}, 'source': 's'}}, target='cpu', measure='x')\nexcept k.KforgeError as e: print(e.status, e.code, e)";
    let Some(ran) = python(&["-c", code], &format!("http://{}", server.address)) else { return };
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(said.starts_with("400 bad-request the body is not"), "{said}{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn the_clients_own_tests_pass() {
    let Some(ran) = python(&["-m", "unittest", "discover", "-s", "tests"], "") else { return };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

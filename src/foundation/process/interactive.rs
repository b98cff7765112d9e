//! A child that may ask the user something on the terminal. Knows programs and pipes; does not limit or confine.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use super::when_not_busy;

/// Runs a program to its end with `input` as its standard input. Returns how it ended and what it wrote to standard output.
///
/// Unlike other children, it stays in the group of this process, because a program in another group may not read from the terminal, and it shares standard
/// error, where such programs ask. So whoever presses Ctrl-C ends it, too.
///
/// # Errors
/// It cannot be started, or its output cannot be read.
pub fn interactive(
    program: &Path,
    args: &[&str],
    environment: &BTreeMap<String, String>,
    input: &[u8],
) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(environment).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = when_not_busy(|| command.spawn())?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that ends early does not read everything; its status says why.
            stdin.map(|mut stdin| stdin.write_all(input))
        });
        child.wait_with_output()
    })?;
    Ok((output.status, output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_its_input_and_environment_and_gives_its_output_and_status() {
        let environment = BTreeMap::from([("GREETING".to_string(), "hello".to_string())]);
        let script = "cat; printf %s \"$GREETING\"; exit 3";
        let (status, said) = interactive(Path::new("/bin/sh"), &["-c", script], &environment, b"one ").unwrap();
        assert_eq!((status.code(), said.as_slice()), (Some(3), &b"one hello"[..]));
        // A large input that nobody reads does not block.
        let (status, _) = interactive(Path::new("/bin/sh"), &["-c", "exit 0"], &environment, &[7; 1 << 20]).unwrap();
        assert!(status.success());
    }
}

//! A process that is killed between receiving a reply and using it: the reply is recorded and is not paid for again.

use std::process::Command;

use super::server::{Server, says};
use crate::optimize::agents::ask::Ledger;

use super::world::{World, briefing, endpoint, proposal, question, words};

/// The file with the address of the server, in the child's working directory, which is its world.
const ADDRESS: &str = "address";

/// The child: asks, and kills itself as soon as the reply has come.
#[test]
#[ignore = "runs in a process of its own"]
fn child_is_killed_when_the_reply_has_come() {
    let here = std::path::absolute(".").unwrap();
    let Ok(url) = std::fs::read_to_string(here.join(ADDRESS)) else { return };
    let world = World::at(&here);
    let coder = endpoint(&url);
    let agents = [coder.clone()];
    let _ = world.asking(&agents, &Ledger::default()).ask(
        &question(&coder, 1, 0),
        &briefing(),
        None,
        &coder,
        &mut |event| {
            if words(&[event]) == ["answered"] {
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
            }
        },
    );
    panic!("it should be dead");
}

#[test]
fn a_reply_that_came_before_a_kill_is_not_asked_for_again() {
    let world = World::new();
    let server = Server::new(vec![says(&proposal())]);
    std::fs::write(world.package().join(ADDRESS), server.url()).unwrap();
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let name = concat!(module_path!(), "::child_is_killed_when_the_reply_has_come");
    let name = name.split_once("::").unwrap().1;
    let mut child = Command::new(own);
    child.args(["--exact", name, "--ignored", "--nocapture"]).current_dir(world.package());
    let ended = child.output().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended.status), Some(9), "{ended:?}");
    assert_eq!(server.requests().len(), 1);
    let (came, events) = world.ask(&endpoint(&server.url()));
    assert!(came.unwrap().proposal.is_some());
    assert_eq!(words(&events), ["recalled"]);
    assert_eq!(world.files_with_the_key(), [""; 0]);
}

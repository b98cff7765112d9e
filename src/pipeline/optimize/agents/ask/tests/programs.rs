//! Programs as agents: programs that answer, fail, hang, flood, or do not exist.

use std::sync::atomic::Ordering;

use super::world::{World, agent, correction, diagnosis, proposal, question, repair, with_parent, words};
use crate::optimize::agents::ask::{AskError, AskEvent, Ledger};
use kforge_foundation::process::family::is_alive;
use kforge_types::model::agent::AgentAccess;
use kforge_types::record::answer::{Advice, Role};

/// Whether a killed process ends. A process handles a signal when it next runs, which is later on a busy machine.
fn ends(pid: u32) -> bool {
    (0..2000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        !is_alive(pid)
    })
}

/// A script that answers depending on its role.
fn by_role(advisor: &str, coder: &str) -> String {
    format!(
        "case \"$KFORGE_ROLE\" in\njudge) cat <<'END'\n{advisor}\nEND\n;;\ncoder) cat <<'END'\n{coder}\nEND\n;;\nesac"
    )
}

#[test]
fn a_program_reads_the_prompt_and_its_output_is_the_answer() {
    let world = World::new();
    let coder = world.script(&format!(
        "cat > prompt\necho $KFORGE_ROLE $KFORGE_ROUND $KFORGE_ATTEMPT > told\ncat <<'END'\n{}\nEND",
        proposal()
    ));
    let (came, events) = world.ask(&coder);
    let answer = came.unwrap();
    assert_eq!((answer.proposal.is_some(), &answer.refused, answer.exchanges.len()), (true, &None, 1));
    assert_eq!(words(&events), ["asking", "answered"]);
    let read = |name: &str| std::fs::read_to_string(world.package().join(name)).unwrap();
    let exchange = &answer.exchanges[0];
    assert_eq!(read("prompt"), format!("{}\n\n{}", exchange.prompt.system.trim_end(), exchange.prompt.user));
    assert_eq!(read("told"), "coder 1 0\n");
    assert_eq!((exchange.tokens, exchange.money, exchange.agent.as_str()), (None, None, "command [\"./agent.sh\"]"));
    // The same question again: the recorded reply is used, and the program may be gone.
    std::fs::remove_file(world.package().join("agent.sh")).unwrap();
    let (again, events) = world.ask(&coder);
    assert_eq!(again.unwrap(), answer);
    assert_eq!(words(&events), ["recalled"]);
}

#[test]
fn the_advisor_comes_first_and_the_coder_reads_what_it_said() {
    let world = World::new();
    let coder = world.script(&by_role(&diagnosis(), &proposal()));
    let mut events = vec![];
    let agents = [coder.clone()];
    let ledger = Ledger::default();
    let asking = world.asking(&agents, &ledger);
    let answer =
        asking.ask(&question(&coder, 1, 0), &with_parent(), Some(&coder), &coder, &mut |e| events.push(e)).unwrap();
    assert!(matches!(&answer.advice, Some(Advice::Diagnosis { plan, .. }) if plan == "float4"));
    assert_eq!(answer.exchanges.iter().map(|e| e.role).collect::<Vec<_>>(), [Role::Advisor, Role::Coder]);
    assert!(answer.exchanges[1].prompt.user.contains("plan: float4"));
    assert!(!answer.exchanges[0].prompt.user.contains("float4"));
    let coder = world.script(&by_role(&correction(), &proposal()));
    let answer = asking.ask(&question(&coder, 1, 1), &repair(), Some(&coder), &coder, &mut |_| {}).unwrap();
    assert!(matches!(&answer.advice, Some(Advice::Correction { .. })));
    assert!(answer.exchanges[1].prompt.user.contains("smallest fix: a guard"));
    assert_eq!(ledger.spent(&coder).requests, 4, "both roles of one agent have one account");
}

#[test]
fn an_advisor_that_says_nothing_of_use_is_passed_over() {
    let world = World::new();
    let mut coder = world.script(&by_role("I like it.", &proposal()));
    coder.retries = 1;
    let agents = [coder.clone()];
    let mut events = vec![];
    let came = world.asking(&agents, &Ledger::default()).ask(
        &question(&coder, 1, 0),
        &with_parent(),
        Some(&coder),
        &coder,
        &mut |e| {
            events.push(e);
        },
    );
    let answer = came.unwrap();
    assert!(answer.advice.is_none() && answer.proposal.is_some() && answer.refused.is_none());
    assert_eq!(answer.exchanges.len(), 3);
    assert_eq!(
        words(&events),
        ["asking", "answered", "retrying", "asking", "answered", "refused", "asking", "answered"]
    );
}

#[test]
fn an_advisor_is_asked_only_where_there_is_something_to_advise_on() {
    let world = World::new();
    let coder = world.script(&by_role(&diagnosis(), &proposal()));
    let agents = [coder.clone()];
    let ledger = Ledger::default();
    let asking = world.asking(&agents, &ledger);
    for briefing in [super::world::briefing(), crate::optimize::agents::Briefing { failed: None, ..repair() }] {
        let question = question(&coder, 1, briefing.attempt);
        let answer = asking.ask(&question, &briefing, Some(&coder), &coder, &mut |_| {}).unwrap();
        assert_eq!((answer.exchanges.len(), answer.advice), (1, None));
    }
}

#[test]
fn a_reply_that_is_no_good_is_asked_for_again_with_what_was_wrong() {
    let world = World::new();
    // Correct at the third try. Each try saves its prompt.
    let coder = world.script(&format!(
        "n=$(ls prompt.* 2>/dev/null | wc -l)\ncat > prompt.$n\nif [ $n -lt 2 ]; then echo 'Sure! {{'; exit; fi\ncat <<'END'\n{}\nEND",
        proposal()
    ));
    let (came, events) = world.ask(&coder);
    let answer = came.unwrap();
    assert!(answer.proposal.is_some());
    let refused: Vec<bool> = answer.exchanges.iter().map(|e| e.refused.is_some()).collect();
    assert_eq!(refused, [true, true, false]);
    assert_eq!(
        words(&events),
        ["asking", "answered", "retrying", "asking", "answered", "retrying", "asking", "answered"]
    );
    let told = |n: u32| std::fs::read_to_string(world.package().join(format!("prompt.{n}"))).unwrap();
    assert!(!told(0).contains("Your last reply could not be used"));
    assert!(
        told(1).contains("Your last reply could not be used") && told(1).contains("the JSON object cannot be read")
    );
    assert!(world.waits().is_empty(), "there is nothing to wait for");
}

#[test]
fn an_answer_without_a_good_reply_is_refused_and_remembered() {
    let world = World::new();
    let mut coder = world.script("cat > /dev/null; echo x >> asked; echo no");
    coder.retries = 2;
    let (came, events) = world.ask(&coder);
    let answer = came.unwrap();
    assert_eq!((answer.proposal.is_none(), answer.exchanges.len()), (true, 3));
    assert!(answer.refused.as_ref().unwrap().contains("no JSON object"));
    assert_eq!(words(&events).last(), Some(&"refused"));
    let (again, _) = world.ask(&coder);
    assert_eq!(again.unwrap(), answer);
    assert_eq!(std::fs::read_to_string(world.package().join("asked")).unwrap(), "x\nx\nx\n", "it was paid for once");
}

#[test]
fn a_program_that_fails_is_asked_again_and_its_last_words_are_told() {
    let world = World::new();
    let coder = world.script("cat > /dev/null; echo x >> asked; echo secret plans >&2; echo out of paper >&2; exit 3");
    let (came, events) = world.ask(&coder);
    let error = came.unwrap_err();
    assert!(matches!(&error, AskError::Unreachable { agent, .. } if agent == "script"), "{error}");
    let says = error.to_string();
    assert!(says.contains("exited with 3") && says.contains("out of paper"), "{says}");
    assert_eq!(world.waits(), [1.0, 2.0, 4.0]);
    assert_eq!(std::fs::read_to_string(world.package().join("asked")).unwrap().lines().count(), 4);
    assert_eq!(words(&events).iter().filter(|w| **w == "retrying").count(), 3);
}

#[test]
fn a_program_that_hangs_is_killed_with_its_children() {
    let world = World::new();
    let mut coder = world.script("sleep 1000 & echo $! > child; wait");
    (coder.time_limit_s, coder.retries) = (1, 0);
    let (came, _) = world.ask(&coder);
    let error = came.unwrap_err().to_string();
    assert!(error.contains("timed out after 1 s"), "{error}");
    let child: u32 = std::fs::read_to_string(world.package().join("child")).unwrap().trim().parse().unwrap();
    assert!(ends(child));
}

#[test]
fn a_program_that_floods_gives_an_answer_that_is_no_good() {
    let world = World::new();
    let mut coder = world.script("cat > /dev/null; head -c 9000000 /dev/zero");
    coder.retries = 0;
    let answer = world.ask(&coder).0.unwrap();
    assert!(answer.refused.unwrap().contains("no JSON object"));
    assert_eq!(answer.exchanges[0].reply, "[more than 4 MiB, not kept]");
}

#[test]
fn a_program_that_is_not_there_is_named_before_anybody_is_asked() {
    let world = World::new();
    let advisor = world.script("echo x >> asked");
    for program in ["no-such-agent-anywhere", "./gone.sh"] {
        let coder = agent("lost", AgentAccess::Command { program: vec![program.into()] });
        let agents = [advisor.clone(), coder.clone()];
        let came = world.asking(&agents, &Ledger::default()).ask(
            &question(&coder, 1, 0),
            &with_parent(),
            Some(&advisor),
            &coder,
            &mut |_| {},
        );
        let error = came.unwrap_err();
        assert!(matches!(error, AskError::Denied { .. }) && error.to_string().contains(program), "{error}");
        assert!(!world.package().join("asked").exists());
    }
}

#[test]
fn an_interruption_ends_the_program_and_whatever_it_waits_for() {
    let world = World::new();
    let coder = world.script("echo $$ > started; exec sleep 1000");
    let started = world.package().join("started");
    let came = std::thread::scope(|scope| {
        let asked = scope.spawn(|| world.ask(&coder).0);
        while !std::fs::read_to_string(&started).is_ok_and(|text| text.ends_with('\n')) {
            std::thread::yield_now();
        }
        world.interrupted.store(true, Ordering::Relaxed);
        asked.join().unwrap()
    });
    assert!(matches!(came, Err(AskError::Interrupted)));
    let pid: u32 = std::fs::read_to_string(&started).unwrap().trim().parse().unwrap();
    assert!(ends(pid));
    // Also in a pause between two tries.
    let world = World::new();
    world.clock.interrupts.store(true, Ordering::Relaxed);
    let (came, events) = world.ask(&world.script("exit 1"));
    assert!(matches!(came, Err(AskError::Interrupted)));
    assert!(matches!(events.last(), Some(AskEvent::Retrying { .. })));
}

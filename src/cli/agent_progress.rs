//! What the terminal shows while agents are asked: the requests in progress, their start, their durations, and the tokens and money spent so far. Knows wording
//! and a progress bar, but asks no agent.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::bar::Running;
use super::console::Console;
use kforge_foundation::base::count;
use kforge_ops::optimize::event::{AskWatch, AttemptEvent, AttemptRequest, NotAnswered};
use kforge_pipeline::optimize::agents::ask::{AskEvent, Spent};
use kforge_types::record::answer::{Question, Role};

/// Shows the progress of attempts that run at the same time.
pub(super) struct Asking<'a> {
    console: &'a Console,
    attempts: &'a [AttemptRequest],
    ended: u64,
    under_way: BTreeMap<usize, (String, Instant)>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(console: &'a Console, attempts: &'a [AttemptRequest]) -> Self {
        Asking { console, attempts, ended: 0, under_way: BTreeMap::new() }
    }
}

impl AskWatch for Asking<'_> {
    fn event(&mut self, attempt: usize, event: &AttemptEvent) {
        let console = self.console;
        let AttemptRequest { seat, question } = &self.attempts[attempt];
        let (name, what) = (seat.name(), what(question));
        match event {
            AttemptEvent::Begins => console.status("Optimizing", &format!("{name}: {what}")),
            AttemptEvent::Blocked => {
                console
                    .status("Blocking", &format!("waiting for another kforge that sends the same request for {name}"));
            }
            AttemptEvent::Asking(event) => {
                match event {
                    AskEvent::Asking { role, .. } => {
                        let role = if *role == Role::Advisor { " (judge)" } else { "" };
                        self.under_way.insert(attempt, (format!("{name}{role}"), Instant::now()));
                    }
                    _ => drop(self.under_way.remove(&attempt)),
                }
                // With one question, the attempt's name would add nothing.
                let of = if self.attempts.len() > 1 { format!(" for {name}") } else { String::new() };
                say(console, &of, event);
            }
            AttemptEvent::Ended(how) => {
                self.under_way.remove(&attempt);
                self.ended += 1;
                match how {
                    // An interruption is reported once, at the end.
                    Ok(()) | Err(NotAnswered::Interrupted) => {}
                    Err(why) => console.error(&format!("{name}: {what}: {why}")),
                }
            }
        }
    }

    fn tick(&mut self, spent: Spent) {
        let mut requests: Vec<&(String, Instant)> = self.under_way.values().collect();
        requests.sort_by_key(|(_, since)| *since);
        let requests: Vec<String> =
            requests.into_iter().map(|(whom, since)| format!("{} {whom}", seconds(since.elapsed()))).collect();
        let money = if spent.money > 0.0 { format!(", {:.4}", spent.money) } else { String::new() };
        // The most important part comes first: the line is cut at the width of the terminal.
        let text = format!("{}{money}; {}", count(spent.tokens, "token"), requests.join(", "));
        let running = Running { before: text, ..Running::default() };
        self.console.progress("Asking", self.ended, self.attempts.len() as u64, running);
    }

    fn ended(&mut self) {
        self.console.finish();
    }
}

/// The request of an attempt, in words.
fn what(question: &Question) -> String {
    match question.attempt {
        0 if question.methods.is_empty() => format!("round {}: no particular method", question.round),
        0 => format!("round {}: {}", question.round, question.methods.join(", ")),
        attempt => format!("round {}: repair {attempt}", question.round),
    }
}

/// What was spent, in words.
pub(super) fn amounts(spent: &Spent) -> String {
    let mut out = count(spent.requests, "request");
    if spent.tokens > 0 {
        out += &format!(", {}", count(spent.tokens, "token"));
    }
    if spent.money > 0.0 {
        out += &format!(", {:.4} by its prices", spent.money);
    }
    out
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        s if s < 100 => format!("{s} s"),
        s => format!("{} min {} s", s / 60, s % 60),
    }
}

fn say(console: &Console, of: &str, event: &AskEvent) {
    let who = |agent: &str, role: Role| format!("{agent} ({}){of}", role.name());
    match event {
        AskEvent::Asking { role, agent } => console.status("Asking", &who(agent, *role)),
        AskEvent::Recalled { role, agent, differs } => {
            console.status("Recalling", &format!("what {agent} answered ({}){of}", role.name()));
            if *differs {
                console.warn("the prompt would differ today; the recorded answer is used");
            }
        }
        AskEvent::Waiting { agent, for_s } => {
            console.status("Waiting", &format!("{for_s:.0} s for the request limit of {agent}"));
        }
        AskEvent::Retrying { role, agent, why, in_s } => {
            let why = why.replace('\n', "\n             ");
            let when = if *in_s > 0.0 { format!(" in {in_s:.0} s") } else { String::new() };
            console.status("Repeating", &format!("{}{when}: {why}", who(agent, *role)));
        }
        AskEvent::Answered { role, agent, tokens, money, took_ms } => {
            let tokens = tokens.map(|(input, output)| format!(": {input} tokens in, {output} out")).unwrap_or_default();
            let money = money.map(|money| format!(", {money:.4}")).unwrap_or_default();
            let took = seconds(Duration::from_millis(*took_ms));
            console.status("Answered", &format!("{} after {took}{tokens}{money}", who(agent, *role)));
        }
        AskEvent::Refused { role, agent, why } => {
            let why = why.replace('\n', "\n         ");
            console.warn(&format!("{} gave no usable answer: {why}", who(agent, *role)));
        }
    }
}

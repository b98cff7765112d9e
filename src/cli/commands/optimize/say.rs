//! What people are told while agents are asked: which request is under way, since when, what each took, and what was spent so far. Knows words and a progress bar; asks nobody.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ask::{Ended, Told};
use crate::cli::commands::count;
use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use kforge_pipeline::optimize::agents::ask::{AskEvent, Ledger, Spent};
use kforge_types::record::answer::Role;

/// One question as it is told of.
pub(super) struct About {
    /// Whose rounds it is of.
    pub(super) name: String,
    /// Round, methods or the number of the repair.
    pub(super) what: String,
}

/// Tells of questions that are asked at the same time.
pub(super) struct Teller<'a> {
    context: &'a Context,
    ledger: &'a Ledger,
    about: Vec<About>,
    ended: u64,
    under_way: BTreeMap<usize, (String, Instant)>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(context: &'a Context, ledger: &'a Ledger, about: Vec<About>) -> Self {
        Teller { context, ledger, about, ended: 0, under_way: BTreeMap::new() }
    }

    /// Tells what a question's thread told; how it ended, if it did.
    pub(super) fn tell(&mut self, order: usize, told: Told) -> Option<Result<(), Exit>> {
        let console = &self.context.console;
        let About { name, what } = &self.about[order];
        match told {
            Told::Begins => console.status("Optimizing", &format!("{name}: {what}")),
            Told::Blocked => {
                console.status("Blocking", &format!("waiting for another kforge that asks the same for {name}"));
            }
            Told::Event(event) => {
                match &event {
                    AskEvent::Asking { role, .. } => {
                        let role = if *role == Role::Advisor { " (judge)" } else { "" };
                        self.under_way.insert(order, (format!("{name}{role}"), Instant::now()));
                    }
                    _ => drop(self.under_way.remove(&order)),
                }
                // With one question there is no doubt whose it is.
                let of = if self.about.len() > 1 { format!(" for {name}") } else { String::new() };
                say(console, &of, &event);
            }
            Told::Ended(how) => {
                self.under_way.remove(&order);
                self.ended += 1;
                return Some(how.map_err(|how| match how {
                    Ended::Interrupted => Exit::Interrupted,
                    Ended::Failed(why) => self.context.fail(&format!("{name}: {what}: {why}")),
                }));
            }
        }
        None
    }

    /// Moves the progress bar.
    pub(super) fn tick(&self) {
        let spent = self.ledger.all().into_iter().map(|(_, spent)| spent).fold(Spent::default(), |all, one| Spent {
            requests: all.requests.saturating_add(one.requests),
            tokens: all.tokens.saturating_add(one.tokens),
            money: all.money + one.money,
        });
        let mut requests: Vec<&(String, Instant)> = self.under_way.values().collect();
        requests.sort_by_key(|(_, since)| *since);
        let requests: Vec<String> =
            requests.into_iter().map(|(whom, since)| format!("{} {whom}", seconds(since.elapsed()))).collect();
        // What counts most stands first: the line is cut at the width of the terminal.
        let money = if spent.money > 0.0 { format!(", {:.4}", spent.money) } else { String::new() };
        let text = format!("{}{money}; {}", count(spent.tokens, "token"), requests.join(", "));
        self.context.console.progress("Asking", self.ended, self.about.len() as u64, &text);
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
                console.warn("the prompt would read differently today; the recorded answer stands");
            }
        }
        AskEvent::Waiting { agent, for_s } => {
            console.status("Waiting", &format!("{for_s:.0} s for the rate of {agent}"));
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
            console.warn(&format!("{} gave no answer of use: {why}", who(agent, *role)));
        }
    }
}

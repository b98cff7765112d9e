//! What the agents of a run have spent, and whose request starts when. Knows numbers; asks nobody. It lasts as long as the run: budgets, rates and how many requests may be
//! under way are those of all its questions together, however many threads ask them.
//!
//! # When a request starts
//!
//! Questions have an order, and of one agent the first of them that has something to ask goes first: so which of them a budget still pays for does not depend on
//! which thread came first. A question that is expected ([`Ledger::expects`]) holds those behind it back until its first request has started, or it has none
//! ([`Ledger::leaves`]). Then, for the first one:
//!
//! | asked | if not |
//! |---|---|
//! | is less than the budget spent, and does what this request may take at most fit beside what others under way may take? | it waits for those under way; with none, the budget is spent |
//! | are fewer requests of the agent under way than it allows? | it waits for one to end |
//! | has the agent's rate room, and has it not asked to be left alone? | it waits for that time |
//!
//! What a request may take is reserved when it starts and settled when it ends. Where nothing bounds an answer (no `max_tokens`, a program), nothing can be reserved:
//! under a budget of tokens or money such requests start one at a time, and only the last can go beyond it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::Agent;
use crate::model::agent::Reach;
use crate::record::answer::{Exchange, Prompt};

/// The time that a rate counts over.
const MINUTE: Duration = Duration::from_secs(60);

/// Bytes that count as a token where an agent does not say how many tokens it took: fewer than most tokens of text and code have, so that budgets are not exceeded unseen.
const BYTES_A_TOKEN: u64 = 3;

/// What an agent has spent in this run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Requests that were sent, those without a reply too.
    pub requests: u64,
    /// Tokens of prompts and replies; a token for every three bytes where the agent does not say.
    pub tokens: u64,
    /// Money, by the agent's prices.
    pub money: f64,
}

/// What a request may take at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reserve {
    /// Tokens of the prompt, reckoned.
    input: u64,
    /// Tokens of the answer; none where nothing bounds them.
    output: Option<u64>,
}

impl Reserve {
    /// Of a prompt to an agent.
    pub(super) fn of(agent: &Agent, prompt: &Prompt) -> Self {
        let output = match &agent.reach {
            Reach::Http { max_tokens, .. } => *max_tokens,
            Reach::Command { .. } => None,
        };
        Reserve { input: estimated(prompt, "").0, output }
    }

    fn tokens(&self) -> Option<u64> {
        Some(self.input.saturating_add(self.output?))
    }

    fn money(&self, agent: &Agent) -> Option<f64> {
        price(agent, (self.input, self.output?))
    }
}

/// Whether a request may start.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Admission {
    /// It has: what it may take is reserved until it is settled.
    Go,
    /// Not before so long has passed.
    After(Duration),
    /// Not before something changes: a request ends, or one that comes first starts.
    Busy,
    /// Never: which part of the budget is spent, and how much of it.
    Spent(String),
}

#[derive(Debug, Default)]
struct Account {
    spent: Spent,
    /// When the requests of the last minute were sent.
    sent: VecDeque<Duration>,
    /// The questions that have something to ask, or are expected to.
    queue: BTreeSet<usize>,
    /// Requests under way.
    under_way: Vec<Reserve>,
    /// Until when the agent wants to be left alone.
    alone: Duration,
}

/// The accounts of all agents: by manifest and name, because packages name theirs as they like.
#[derive(Debug, Default)]
pub struct Ledger {
    accounts: Mutex<BTreeMap<(String, String), Account>>,
    changed: Condvar,
}

fn account_of(agent: &Agent) -> (String, String) {
    (agent.place.file.name.clone(), agent.name.clone())
}

impl Ledger {
    fn accounts(&self) -> MutexGuard<'_, BTreeMap<(String, String), Account>> {
        // Numbers are whole after every statement that changes them.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes an account, and tells those who wait.
    fn change<T>(&self, agent: &Agent, change: impl FnOnce(&mut Account) -> T) -> T {
        let out = change(self.accounts().entry(account_of(agent)).or_default());
        self.changed.notify_all();
        out
    }

    /// What an agent has spent.
    pub fn spent(&self, agent: &Agent) -> Spent {
        self.accounts().get(&account_of(agent)).map(|a| a.spent).unwrap_or_default()
    }

    /// Everybody who was asked, by name, and what that one has spent.
    pub fn all(&self) -> Vec<(String, Spent)> {
        let accounts = self.accounts();
        let asked = accounts.iter().filter(|(_, account)| account.spent.requests > 0);
        asked.map(|(name, account)| (name.1.clone(), account.spent)).collect()
    }

    /// A question, by its place in the order, is going to ask an agent: those behind it wait.
    pub fn expects(&self, agent: &Agent, order: usize) {
        self.change(agent, |account| {
            account.queue.insert(order);
        });
    }

    /// Nothing is to be expected of a question.
    pub fn leaves(&self, order: usize) {
        for account in self.accounts().values_mut() {
            account.queue.remove(&order);
        }
        self.changed.notify_all();
    }

    /// A question that was going to ask whomever asks this agent next. It stands nowhere else from then on, and at no time nowhere: those behind it would go first.
    pub fn moves(&self, agent: &Agent, order: usize) {
        let mut accounts = self.accounts();
        for account in accounts.values_mut() {
            account.queue.remove(&order);
        }
        accounts.entry(account_of(agent)).or_default().queue.insert(order);
        drop(accounts);
        self.changed.notify_all();
    }

    /// Whether a question's next request may start now; if it may, it has.
    pub(super) fn admit(&self, agent: &Agent, order: usize, reserve: Reserve, now: Duration) -> Admission {
        let mut accounts = self.accounts();
        let account = accounts.entry(account_of(agent)).or_default();
        account.queue.insert(order);
        if account.queue.first() != Some(&order) {
            return Admission::Busy;
        }
        let admission = account.admission(agent, reserve, now);
        match &admission {
            Admission::Go => {
                account.queue.remove(&order);
                account.spent.requests += 1;
                account.sent.push_back(now);
                account.under_way.push(reserve);
            }
            Admission::Spent(_) => {
                account.queue.remove(&order);
            }
            // Nobody is told of what changes nothing: those who wait would wake each other for ever.
            Admission::After(_) | Admission::Busy => return admission,
        }
        drop(accounts);
        self.changed.notify_all();
        admission
    }

    /// Waits until something changes, or for so long.
    pub(super) fn wait(&self, most: Duration) {
        drop(self.changed.wait_timeout(self.accounts(), most));
    }

    /// A request ended, with a reply or without.
    pub(super) fn settle(&self, agent: &Agent, reserve: Reserve, came: Option<&Exchange>) {
        self.change(agent, |account| {
            if let Some(at) = account.under_way.iter().position(|other| *other == reserve) {
                account.under_way.swap_remove(at);
            }
            let Some(exchange) = came else { return };
            let tokens = exchange.tokens.unwrap_or_else(|| estimated(&exchange.prompt, &exchange.reply));
            account.spent.tokens = account.spent.tokens.saturating_add(tokens.0.saturating_add(tokens.1));
            account.spent.money += price(agent, tokens).unwrap_or(0.0);
        });
    }

    /// An agent wants to be left alone until then.
    pub(super) fn leave_alone(&self, agent: &Agent, until: Duration) {
        self.change(agent, |account| account.alone = account.alone.max(until));
    }
}

impl Account {
    fn admission(&mut self, agent: &Agent, reserve: Reserve, now: Duration) -> Admission {
        if let Some(most) = agent.budget.requests.filter(|most| self.spent.requests >= *most) {
            return Admission::Spent(format!("{} requests of {most}", self.spent.requests));
        }
        let beyond = self.beyond_tokens(agent, reserve).or_else(|| self.beyond_money(agent, reserve));
        match beyond {
            Some(what) if self.under_way.is_empty() => return Admission::Spent(what),
            Some(_) => return Admission::Busy,
            None => {}
        }
        let bounded = agent.budget.tokens.is_some() || agent.budget.money.is_some();
        let most = if bounded && reserve.output.is_none() { 1 } else { agent.parallel as usize };
        if self.under_way.len() >= most {
            return Admission::Busy;
        }
        let held = self.held_back(agent, now).max(self.alone.saturating_sub(now));
        if held.is_zero() { Admission::Go } else { Admission::After(held) }
    }

    /// What of the budget of tokens is spent, where a request would go beyond it.
    fn beyond_tokens(&self, agent: &Agent, reserve: Reserve) -> Option<String> {
        let (most, spent) = (agent.budget.tokens?, self.spent.tokens);
        let needs = reserve.tokens();
        let reserved: u64 = self.under_way.iter().filter_map(Reserve::tokens).fold(0, u64::saturating_add);
        match needs {
            _ if spent >= most => Some(format!("{spent} tokens of {most}")),
            Some(needs) if spent.saturating_add(reserved).saturating_add(needs) > most => {
                Some(format!("{spent} tokens of {most}, and the next request may take {needs}"))
            }
            _ => None,
        }
    }

    /// The same of money.
    fn beyond_money(&self, agent: &Agent, reserve: Reserve) -> Option<String> {
        let (most, spent) = (agent.budget.money?, self.spent.money);
        let needs = reserve.money(agent);
        let reserved: f64 = self.under_way.iter().filter_map(|other| other.money(agent)).sum();
        match needs {
            _ if spent >= most => Some(format!("{spent:.4} of {most} in money")),
            Some(needs) if spent + reserved + needs > most => {
                Some(format!("{spent:.4} of {most} in money, and the next request may cost {needs:.4}"))
            }
            _ => None,
        }
    }

    /// How long the agent's rate holds the next request back.
    fn held_back(&mut self, agent: &Agent, now: Duration) -> Duration {
        let Some(rate) = agent.per_minute else { return Duration::ZERO };
        while self.sent.front().is_some_and(|sent| now.saturating_sub(*sent) >= MINUTE) {
            self.sent.pop_front();
        }
        // The request that has to be a minute old: so many before the last.
        let over = (self.sent.len() as u64 + 1).saturating_sub(rate);
        let oldest = usize::try_from(over).ok().and_then(|n| n.checked_sub(1)).and_then(|n| self.sent.get(n));
        oldest.map_or(Duration::ZERO, |sent| (*sent + MINUTE).saturating_sub(now))
    }
}

/// Tokens where the agent does not say.
fn estimated(prompt: &Prompt, reply: &str) -> (u64, u64) {
    let tokens = |bytes: usize| (bytes as u64).div_ceil(BYTES_A_TOKEN);
    (tokens(prompt.system.len() + prompt.user.len()), tokens(reply.len()))
}

/// What tokens of prompt and reply cost; none where no prices are stated.
pub(super) fn price(agent: &Agent, tokens: (u64, u64)) -> Option<f64> {
    let prices = agent.prices?;
    Some((prices.input * tokens.0 as f64 + prices.output * tokens.1 as f64) / 1e6)
}

//! What the agents of a run have spent, and when each request starts. Knows numbers; asks no agent. A ledger lasts as long as the run: budgets, rates and the
//! number of requests under way cover all questions of the run, however many threads ask them.
//!
//! # When a request starts
//!
//! Questions have an order. Among the questions that wait for the same agent, the first one goes first. So thread timing does not decide which questions a
//! budget still pays for. A question that is expected ([`Ledger::expects`]) holds back the questions behind it until its first request has started, or until it
//! has none ([`Ledger::leaves`]). The first question is then checked:
//!
//! | check | if not |
//! |---|---|
//! | is budget left, and does this request at its most fit beside those under way at theirs? | it waits for them; if there are none, the budget is spent |
//! | are fewer requests of the agent under way than it allows? | it waits for one to end |
//! | does the agent's rate allow the request, and has the agent not asked for a pause? | it waits for that time |
//!
//! The most that a request may take is reserved when the request starts and settled when it ends. If nothing bounds an answer (no `max_tokens`, or a program),
//! nothing can be reserved. Under a budget of tokens or money such requests start one at a time, and only the last one can exceed the budget.
//!
//! # Two requests that belong together
//!
//! The coder reads the advisor's answer. So if the coder has a budget, an advisor's request starts only if the coder's request can be paid too. That amount is
//! then *held* for the question. The question is first in the queues of both agents, no other question takes the held amount, and the coder's request starts
//! regardless of what was spent meanwhile. A question with a hold waits in no queue and for no other hold, so two questions cannot wait for each other. The
//! hold ends with the question ([`Ledger::leaves`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kforge_types::model::Agent;
use kforge_types::model::agent::{AgentAccess, Budget};
use kforge_types::record::answer::{Exchange, Prompt};

/// The time over which a rate counts.
const MINUTE: Duration = Duration::from_secs(60);

/// Bytes that count as one token if the agent does not report tokens. Most tokens of text and code are longer, so budgets are not exceeded unnoticed.
const BYTES_A_TOKEN: u64 = 3;

/// What an agent has spent in this run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Requests that were sent, including those without a reply.
    pub requests: u64,
    /// Tokens of prompts and replies. If the agent does not report them, every three bytes count as one token.
    pub tokens: u64,
    /// Money, by the agent's prices.
    pub money: f64,
}

/// The most that a request may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reserve {
    /// Tokens of the prompt, estimated.
    input: u64,
    /// Tokens of the answer; none if nothing bounds them.
    output: Option<u64>,
}

impl Reserve {
    /// For a prompt to an agent.
    pub(super) fn of(agent: &Agent, prompt: &Prompt) -> Self {
        let output = match &agent.reach {
            AgentAccess::Http { max_tokens, .. } => *max_tokens,
            AgentAccess::Command { .. } => None,
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
    /// The request has started. The most that it may take is reserved until it is settled.
    Go,
    /// Not before this time has passed.
    After(Duration),
    /// Not before something changes: a request ends, or an earlier question's request starts.
    Busy,
    /// Never: which part of the budget is spent, and how much of it.
    Spent(String),
}

#[derive(Debug, Default)]
struct Account {
    spent: Spent,
    /// When the requests of the last minute were sent.
    sent: VecDeque<Duration>,
    /// The questions that wait to ask the agent, or are expected to.
    queue: BTreeSet<usize>,
    /// Requests under way.
    under_way: Vec<Reserve>,
    /// By question: the request that follows a request to the question's advisor.
    held: BTreeMap<usize, Reserve>,
    /// The end of the pause that the agent asked for.
    alone: Duration,
}

/// The accounts of all agents, by manifest and name, because each package chooses the names of its agents.
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
        // A poisoned lock is harmless: the numbers are consistent after every statement that changes them.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes an account, and wakes the waiting threads.
    fn change<T>(&self, agent: &Agent, change: impl FnOnce(&mut Account) -> T) -> T {
        let out = change(self.accounts().entry(account_of(agent)).or_default());
        self.changed.notify_all();
        out
    }

    /// What an agent has spent.
    pub fn spent(&self, agent: &Agent) -> Spent {
        self.accounts().get(&account_of(agent)).map(|a| a.spent).unwrap_or_default()
    }

    /// All agents that were asked, by name, and what each has spent.
    pub fn all(&self) -> Vec<(String, Spent)> {
        let accounts = self.accounts();
        let asked = accounts.iter().filter(|(_, account)| account.spent.requests > 0);
        asked.map(|(name, account)| (name.1.clone(), account.spent)).collect()
    }

    /// Registers a question, by its place in the order, as going to ask an agent. The questions behind it wait.
    pub fn expects(&self, agent: &Agent, order: usize) {
        self.change(agent, |account| {
            account.queue.insert(order);
        });
    }

    /// Removes a question: it will ask nothing more.
    pub fn leaves(&self, order: usize) {
        for account in self.accounts().values_mut() {
            account.queue.remove(&order);
            account.held.remove(&order);
        }
        self.changed.notify_all();
    }

    /// Moves a question to the queue of the agent that it asks next. The question is in no other queue from then on, and never in none: otherwise the questions
    /// behind it would go first.
    pub fn moves(&self, agent: &Agent, order: usize) {
        let mut accounts = self.accounts();
        for account in accounts.values_mut() {
            account.queue.remove(&order);
        }
        accounts.entry(account_of(agent)).or_default().queue.insert(order);
        drop(accounts);
        self.changed.notify_all();
    }

    /// Whether a question's next request may start now. If the answer is yes, the request counts as started. `then` is the request that follows it, which is
    /// held from then on.
    pub(super) fn admit(
        &self,
        agent: &Agent,
        order: usize,
        reserve: Reserve,
        then: Option<(&Agent, Reserve)>,
        now: Duration,
    ) -> Admission {
        let mut accounts = self.accounts();
        let held = |accounts: &BTreeMap<_, Account>, of| accounts.get(&of).is_some_and(|a| a.held.contains_key(&order));
        let then = then.filter(|(coder, _)| is_bounded(coder));
        let is_paid = then.is_none() && held(&accounts, account_of(agent));
        let holds = accounts.values().any(|account| account.held.contains_key(&order));
        let to_hold = then.filter(|(coder, _)| !held(&accounts, account_of(coder)));
        let queues: Vec<_> =
            [Some(agent), to_hold.map(|(coder, _)| coder)].into_iter().flatten().map(account_of).collect();
        let mut is_first = true;
        for queue in queues.iter().filter(|_| !holds) {
            let account = accounts.entry(queue.clone()).or_default();
            account.queue.insert(order);
            is_first &= account.queue.first() == Some(&order);
        }
        if !is_first {
            return Admission::Busy;
        }
        let is_same = to_hold.is_some_and(|(coder, _)| account_of(coder) == account_of(agent));
        let mut admission = Admission::Go;
        if let Some((coder, hold)) = to_hold.filter(|_| !is_same) {
            let account = accounts.entry(account_of(coder)).or_default();
            admission = account.affords(coder, order, &[hold], holds).unwrap_or(Admission::Go);
        }
        if admission == Admission::Go {
            let account = accounts.entry(account_of(agent)).or_default();
            let needs: Vec<Reserve> =
                [Some(reserve), to_hold.filter(|_| is_same).map(|(_, hold)| hold)].into_iter().flatten().collect();
            let refused = if is_paid { None } else { account.affords(agent, order, &needs, holds) };
            admission = refused.unwrap_or_else(|| account.turn(agent, reserve, now));
        }
        // Do not wake anyone if nothing changed: waiting threads would wake each other forever.
        if matches!(admission, Admission::After(_) | Admission::Busy) {
            return admission;
        }
        for queue in &queues {
            accounts.entry(queue.clone()).or_default().queue.remove(&order);
        }
        if admission == Admission::Go {
            let account = accounts.entry(account_of(agent)).or_default();
            account.spent.requests += 1;
            account.sent.push_back(now);
            account.under_way.push(reserve);
            if is_paid {
                account.held.remove(&order);
            }
            if let Some((coder, hold)) = to_hold {
                accounts.entry(account_of(coder)).or_default().held.insert(order, hold);
            }
        }
        drop(accounts);
        self.changed.notify_all();
        admission
    }

    /// Waits until something changes, or at most this time.
    pub(super) fn wait(&self, most: Duration) {
        drop(self.changed.wait_timeout(self.accounts(), most));
    }

    /// Settles a request that ended, with or without a reply. `alone` is the end of the pause that the agent asked for, if it turned the request away. It is
    /// set in the same step because the next request starts as soon as this one makes room for it.
    pub(super) fn settle(&self, agent: &Agent, reserve: Reserve, came: Option<&Exchange>, alone: Option<Duration>) {
        self.change(agent, |account| {
            account.alone = account.alone.max(alone.unwrap_or_default());
            if let Some(at) = account.under_way.iter().position(|other| *other == reserve) {
                account.under_way.swap_remove(at);
            }
            let Some(exchange) = came else { return };
            let tokens = exchange.tokens.unwrap_or_else(|| estimated(&exchange.prompt, &exchange.reply));
            account.spent.tokens = account.spent.tokens.saturating_add(tokens.0.saturating_add(tokens.1));
            account.spent.money += price(agent, tokens).unwrap_or(0.0);
        });
    }
}

impl Account {
    /// Why the budget does not pay for these requests of a question; none if it does. A question that `holds` something does not wait for the holds of others.
    fn affords(&self, agent: &Agent, order: usize, needs: &[Reserve], holds: bool) -> Option<Admission> {
        let (spent, more) = (self.spent.requests, needs.len() as u64);
        if let Some(most) = agent.budget.requests.filter(|most| spent.saturating_add(more) > *most) {
            let pair = if spent < most { ", and the next request and its coder's need two" } else { "" };
            return Some(Admission::Spent(format!("{spent} of {most} requests{pair}")));
        }
        let kept = || format!("{spent} requests, and the rest is reserved for coders whose advisors have answered");
        let held = self.held.len() as u64;
        if agent.budget.requests.is_some_and(|most| spent.saturating_add(held).saturating_add(more) > most) {
            return Some(if holds { Admission::Spent(kept()) } else { Admission::Busy });
        }
        let what = self.beyond_tokens(agent, needs).or_else(|| self.beyond_money(agent, needs));
        if let Some(what) = what {
            let over = self.under_way.is_empty() && (holds || self.held.is_empty());
            return Some(if over { Admission::Spent(what) } else { Admission::Busy });
        }
        let alone = is_reckoned(agent) && needs.iter().any(|need| need.output.is_none());
        // Either may take all that is left. What this question holds is for its own coder, which comes later.
        let others_hold = self.held.keys().any(|of| *of != order);
        match alone && (others_hold || !self.under_way.is_empty()) {
            true if holds && self.under_way.is_empty() => Some(Admission::Spent(kept())),
            true => Some(Admission::Busy),
            false => None,
        }
    }

    /// Whether a request that the budget pays for may start now.
    fn turn(&mut self, agent: &Agent, reserve: Reserve, now: Duration) -> Admission {
        let most = if is_reckoned(agent) && reserve.output.is_none() { 1 } else { agent.parallel as usize };
        if self.under_way.len() >= most {
            return Admission::Busy;
        }
        let held = self.held_back(agent, now).max(self.alone.saturating_sub(now));
        if held.is_zero() { Admission::Go } else { Admission::After(held) }
    }

    /// The sum of what requests under way and held may take, and the sum of the needed requests; none if nothing bounds a needed one.
    fn together<N: std::iter::Sum<N>>(&self, needs: &[Reserve], of: impl Fn(&Reserve) -> Option<N>) -> Option<(N, N)> {
        let reserved = self.under_way.iter().chain(self.held.values()).filter_map(&of).sum();
        Some((reserved, needs.iter().map(of).sum::<Option<N>>()?))
    }

    /// How much of the token budget is spent, if the requests would exceed it.
    fn beyond_tokens(&self, agent: &Agent, needs: &[Reserve]) -> Option<String> {
        let (most, spent) = (agent.budget.tokens?, self.spent.tokens);
        // `u128` is wide enough for any sum.
        match self.together(needs, |reserve| reserve.tokens().map(u128::from)) {
            _ if spent >= most => Some(format!("{spent} of {most} tokens")),
            Some((reserved, more)) if u128::from(spent) + reserved + more > u128::from(most) => {
                Some(format!("{spent} of {most} tokens, and {} may need {more}", next(needs)))
            }
            _ => None,
        }
    }

    /// The same for money.
    fn beyond_money(&self, agent: &Agent, needs: &[Reserve]) -> Option<String> {
        let (most, spent) = (agent.budget.money?, self.spent.money);
        match self.together(needs, |reserve| reserve.money(agent)) {
            _ if spent >= most => Some(format!("{spent:.4} of {most} in money")),
            Some((reserved, more)) if spent + reserved + more > most => {
                Some(format!("{spent:.4} of {most} in money, and {} may cost {more:.4}", next(needs)))
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
        // The request that must be a minute old before the next one starts: with a rate of `n`, the `n`th from the end.
        let over = (self.sent.len() as u64 + 1).saturating_sub(rate);
        let oldest = usize::try_from(over).ok().and_then(|n| n.checked_sub(1)).and_then(|n| self.sent.get(n));
        oldest.map_or(Duration::ZERO, |sent| (*sent + MINUTE).saturating_sub(now))
    }
}

/// Whether an agent has a budget at all.
pub(super) fn is_bounded(agent: &Agent) -> bool {
    agent.budget != Budget::default()
}

/// Whether the agent has a budget of tokens or money, which are known only after a request.
fn is_reckoned(agent: &Agent) -> bool {
    agent.budget.tokens.is_some() || agent.budget.money.is_some()
}

/// The requests that are needed, as text.
fn next(needs: &[Reserve]) -> &'static str {
    if needs.len() > 1 { "the next request and its coder's" } else { "the next request" }
}

/// Estimated tokens of prompt and reply, for an agent that does not report them.
fn estimated(prompt: &Prompt, reply: &str) -> (u64, u64) {
    let tokens = |bytes: usize| (bytes as u64).div_ceil(BYTES_A_TOKEN);
    (tokens(prompt.system.len() + prompt.user.len()), tokens(reply.len()))
}

/// The cost of the tokens of a prompt and a reply; none if no prices are declared.
pub(super) fn price(agent: &Agent, tokens: (u64, u64)) -> Option<f64> {
    let prices = agent.prices?;
    Some((prices.input * tokens.0 as f64 + prices.output * tokens.1 as f64) / 1e6)
}

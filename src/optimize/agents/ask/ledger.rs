//! What the agents of a run have spent, and when each may be asked again. Knows numbers; asks nobody. It lasts as long as the run: budgets and rates are those of
//! all its questions together.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::model::Agent;
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

#[derive(Debug, Default)]
struct Account {
    spent: Spent,
    /// When the requests of the last minute were sent.
    sent: VecDeque<Duration>,
}

/// The accounts of all agents: by manifest and name, because packages name theirs as they like.
#[derive(Debug, Default)]
pub struct Ledger(BTreeMap<(String, String), Account>);

fn account_of(agent: &Agent) -> (String, String) {
    (agent.place.file.name.clone(), agent.name.clone())
}

impl Ledger {
    /// What an agent has spent.
    pub fn spent(&self, agent: &Agent) -> Spent {
        self.0.get(&account_of(agent)).map(|a| a.spent).unwrap_or_default()
    }

    /// Everybody who was asked, by name, and what that one has spent.
    pub fn all(&self) -> impl Iterator<Item = (&str, Spent)> {
        self.0
            .iter()
            .filter(|(_, account)| account.spent.requests > 0)
            .map(|(name, account)| (name.1.as_str(), account.spent))
    }

    /// Which part of its budget an agent has spent, if any.
    pub(super) fn exhausted(&self, agent: &Agent) -> Option<String> {
        let (spent, budget) = (self.spent(agent), &agent.budget);
        let whole = [("requests", spent.requests, budget.requests), ("tokens", spent.tokens, budget.tokens)];
        for (what, spent, most) in whole {
            if let Some(most) = most.filter(|most| spent >= *most) {
                return Some(format!("{spent} {what} of {most}"));
            }
        }
        let most = budget.money.filter(|most| spent.money >= *most)?;
        Some(format!("{:.4} of {most} in money", spent.money))
    }

    /// How long the agent's rate holds the next request back.
    pub(super) fn held_back(&mut self, agent: &Agent, now: Duration) -> Duration {
        let Some(rate) = agent.per_minute else { return Duration::ZERO };
        let account = self.0.entry(account_of(agent)).or_default();
        while account.sent.front().is_some_and(|sent| now.saturating_sub(*sent) >= MINUTE) {
            account.sent.pop_front();
        }
        // The request that has to be a minute old: so many before the last.
        let over = (account.sent.len() as u64 + 1).saturating_sub(rate);
        let oldest = usize::try_from(over).ok().and_then(|n| n.checked_sub(1)).and_then(|n| account.sent.get(n));
        oldest.map_or(Duration::ZERO, |sent| (*sent + MINUTE).saturating_sub(now))
    }

    /// A request is sent.
    pub(super) fn sent(&mut self, agent: &Agent, now: Duration) {
        let account = self.0.entry(account_of(agent)).or_default();
        account.spent.requests += 1;
        account.sent.push_back(now);
    }

    /// A reply came.
    pub(super) fn came(&mut self, agent: &Agent, exchange: &Exchange) {
        let (input, output) = exchange.tokens.unwrap_or_else(|| estimated(&exchange.prompt, &exchange.reply));
        let spent = &mut self.0.entry(account_of(agent)).or_default().spent;
        spent.tokens = spent.tokens.saturating_add(input.saturating_add(output));
        spent.money += price(agent, (input, output)).unwrap_or(0.0);
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

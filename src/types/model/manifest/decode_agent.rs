//! Reads agents, and what a kernel asks of them over its rounds. `validate` checks the names of agents and tunables.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use toml::de::DeTable;

use super::decode_kernel::tune_value;
use super::read::{Reader, integer, sub};
use crate::model::Text;
use crate::model::agent::{Agent, AgentAccess, Budget, Prices, RULES, Rounds, Scope};

/// Rounds, branches and repairs if the manifest states none (docs/design.md, section 9).
const ROUNDS: u32 = 3;
const BRANCHES: u32 = 4;
const REPAIRS: u32 = 3;
/// Time limit of a request in seconds if the manifest states none. Models that reason take minutes.
const TIME_LIMIT_S: u64 = 600;
/// Maximum number of concurrent requests if the manifest states none. Endpoints serve many; a program may keep its own files.
const PARALLEL_HTTP: u32 = 4;
const PARALLEL_COMMAND: u32 = 1;
/// How often a request is repeated if the manifest states nothing.
const RETRIES: u32 = 3;

impl Reader<'_> {
    pub(super) fn agents(&mut self, root: &DeTable<'_>) -> Vec<Agent> {
        let mut out = vec![];
        for (name, value) in self.named(root, "agents") {
            let Some(table) = value.get_ref().as_table() else { continue };
            self.plain_name(&name);
            if name.value == RULES {
                self.wrong(
                    "manifest.name",
                    "`rules` is built in".into(),
                    name.place.span.clone(),
                    "another name for your own agent",
                );
            }
            // An invalid agent has been reported. It stays known, so that kernels that name it are not reported too.
            let reach = self.reach(&name, table).unwrap_or(AgentAccess::Command { program: vec![] });
            let prices = sub(table, "prices")
                .and_then(|t| Some(Prices { input: self.amount(t, "input")?, output: self.amount(t, "output")? }));
            let budget = sub(table, "budget").map(|t| Budget {
                requests: self.count(t, "requests", 1..=i64::MAX).and_then(|n| u64::try_from(n).ok()),
                tokens: self.count(t, "tokens", 1..=i64::MAX).and_then(|n| u64::try_from(n).ok()),
                money: self.amount(t, "money"),
            });
            if let (Some(Budget { money: Some(_), .. }), None) = (&budget, &prices) {
                self.wrong(
                    "manifest.missing-key",
                    format!("`agents.{name}` has a budget of money and no prices"),
                    name.place.span.clone(),
                    "`prices = { input = ..., output = ... }`, of a million tokens",
                );
            }
            let time_limit = self.count(table, "time_limit", 1..=86_400);
            let per_minute = self.count(table, "per_minute", 1..=100_000);
            let retries = self.count(table, "retries", 0..=100);
            let parallel = self.count(table, "parallel", 1..=64).and_then(|n| u32::try_from(n).ok());
            let usual = match &reach {
                AgentAccess::Http { .. } => PARALLEL_HTTP,
                AgentAccess::Command { .. } => PARALLEL_COMMAND,
            };
            out.push(Agent {
                name: name.value,
                place: name.place,
                reach,
                time_limit_s: time_limit.and_then(|n| u64::try_from(n).ok()).unwrap_or(TIME_LIMIT_S),
                per_minute: per_minute.and_then(|n| u64::try_from(n).ok()),
                parallel: parallel.unwrap_or(usual),
                retries: retries.and_then(|n| u32::try_from(n).ok()).unwrap_or(RETRIES),
                prices,
                budget: budget.unwrap_or_default(),
            });
        }
        out
    }

    /// How the agent is reached: an endpoint or a program, but not both.
    fn reach(&mut self, name: &Text, table: &DeTable<'_>) -> Option<AgentAccess> {
        let mut refuse = |what: String, expected: &str| {
            self.wrong("manifest.conflict", what, name.place.span.clone(), expected);
        };
        let of_http = ["model", "key", "temperature", "max_tokens"];
        match (table.contains_key("http"), table.contains_key("command")) {
            (true, true) => {
                refuse(format!("`agents.{name}` is an endpoint and a program"), "either `http` or `command`");
                return None;
            }
            (false, false) => {
                refuse(format!("`agents.{name}` is neither an endpoint nor a program"), "`http` or `command`");
                return None;
            }
            (false, true) => {
                if let Some(key) = of_http.into_iter().find(|key| table.contains_key(*key)) {
                    refuse(format!("`agents.{name}` is a program and states `{key}`"), "`http` with it, or neither");
                }
                return Some(AgentAccess::Command { program: self.strings(table, "command") });
            }
            (true, false) => {}
        }
        let url = self.text(table, "http")?;
        if !["http://", "https://"].iter().any(|scheme| url.value.starts_with(scheme)) {
            let message = format!("`{url}` is not an address");
            self.wrong("manifest.value", message, url.place.span.clone(), "`https://host/path` or `http://host/path`");
        }
        if url.value.contains('@') {
            self.wrong(
                "manifest.secret",
                "an address with a user or password in it".into(),
                url.place.span.clone(),
                "`key`: the name of an environment variable that holds the key",
            );
        }
        let Some(model) = self.text(table, "model") else {
            self.wrong(
                "manifest.missing-key",
                format!("`agents.{name}` lacks `model`"),
                name.place.span.clone(),
                "`model`: what the endpoint is asked for",
            );
            return None;
        };
        let key = self.text(table, "key");
        if key.as_ref().is_some_and(|key| !is_variable(&key.value)) {
            // The value may be the secret itself, so neither it nor its line is shown.
            self.wrong(
                "manifest.secret",
                format!("`key` of `agents.{name}` is not the name of an environment variable"),
                name.place.span.clone(),
                "the name of a variable, such as `OPENAI_API_KEY`; never the key itself",
            );
        }
        let temperature = self.amount(table, "temperature");
        let max_tokens = self.count(table, "max_tokens", 1..=i64::MAX).and_then(|n| u64::try_from(n).ok());
        Some(AgentAccess::Http { url, model: model.value, key, temperature, max_tokens })
    }

    /// The rounds that a kernel's `generate` states; none without an agent.
    pub(super) fn rounds(&mut self, kernel: &DeTable<'_>) -> Option<Rounds> {
        let table = sub(kernel, "generate")?;
        let Some(agent) = self.text(table, "agent") else {
            for key in ["judge", "rounds", "branches", "repairs", "exemplars", "start"] {
                if let Some((at, _)) = table.get_key_value(key) {
                    let message = format!("`generate` states `{key}` and no agent");
                    self.wrong("manifest.missing-key", message, at.span(), "`agent`: `rules`, or one of `agents`");
                }
            }
            return None;
        };
        let mut small = |key: &str, range: RangeInclusive<i64>, other: u32| {
            self.count(table, key, range).and_then(|n| u32::try_from(n).ok()).unwrap_or(other)
        };
        let (rounds, branches) = (small("rounds", 1..=1000, ROUNDS), small("branches", 1..=64, BRANCHES));
        let repairs = small("repairs", 0..=20, REPAIRS);
        let mut start = BTreeMap::new();
        for (name, value) in self.named(table, "start") {
            if let Some(value) = tune_value(value.get_ref()) {
                start.insert(name.value.clone(), (name, value));
            }
        }
        let exemplars = self.text(table, "exemplars").and_then(|word| Scope::named(&word.value)).unwrap_or_default();
        Some(Rounds { agent, judge: self.text(table, "judge"), rounds, branches, repairs, exemplars, start })
    }

    /// An integer within a range.
    pub(super) fn count(&mut self, table: &DeTable<'_>, key: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let value = table.get(key)?;
        let number = integer(value.get_ref())?;
        if range.contains(&number) {
            return Some(number);
        }
        let expected = match *range.end() {
            i64::MAX => format!("at least {}", range.start()),
            most => format!("{} to {most}", range.start()),
        };
        self.wrong("manifest.value", format!("`{key}` cannot be {number}"), value.span(), &expected);
        None
    }

    /// A number that is not negative.
    fn amount(&mut self, table: &DeTable<'_>, key: &str) -> Option<f64> {
        let (number, span) = self.number(table, key)?;
        if number < 0.0 {
            self.wrong("manifest.value", format!("`{key}` cannot be {number}"), span, "0 or more");
            return None;
        }
        Some(number)
    }
}

/// Whether a text can name an environment variable.
fn is_variable(text: &str) -> bool {
    let word = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_';
    !text.is_empty() && text.bytes().all(word) && !text.starts_with(|c: char| c.is_ascii_digit())
}

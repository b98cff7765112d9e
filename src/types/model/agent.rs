//! The agents that a manifest names, and what a kernel asks of an agent over its rounds. Knows declarations; does not call agents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::variant::TuneValue;
use super::{Place, Text};

/// The agent that needs no declaration. It varies the methods and tunables that a kernel has, without any request.
pub const RULES: &str = "rules";

/// Limits on requests, tokens and money for one agent in one run of `kforge optimize`. None means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Requests.
    pub requests: Option<u64>,
    /// Tokens of prompts and answers together.
    pub tokens: Option<u64>,
    /// Money, in the currency of [`Prices`].
    pub money: Option<f64>,
}

/// The price of a million tokens, in the currency that the manifest uses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// A million tokens of prompts.
    pub input: f64,
    /// A million tokens of answers.
    pub output: f64,
}

/// How kforge reaches an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentAccess {
    /// An endpoint that speaks the protocol of OpenAI's chat completions.
    Http {
        /// The address before `/chat/completions`: `https://host/v1`.
        url: Text,
        /// The model that requests name.
        model: String,
        /// The environment variable that holds the key; none if the endpoint takes no key. kforge never stores the key itself.
        key: Option<Text>,
        /// Sampling temperature. If none is stated, the endpoint's default applies.
        temperature: Option<f64>,
        /// Maximum number of tokens in an answer. If none is stated, the endpoint's default applies.
        max_tokens: Option<u64>,
    },
    /// A program that reads a prompt from standard input and writes an answer to standard output.
    Command {
        /// The program and its arguments. A relative program with a `/` is relative to the package.
        program: Vec<String>,
    },
}

/// An agent that a manifest declares.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub place: Place,
    /// How it is reached.
    pub reach: AgentAccess,
    /// Time limit of a request, in seconds.
    pub time_limit_s: u64,
    /// Maximum number of requests per minute; none means no limit.
    pub per_minute: Option<u64>,
    /// Maximum number of concurrent requests.
    pub parallel: u32,
    /// How often a request is repeated if it gets no valid answer: the endpoint refused it for its rate, it failed on the way, or the answer was malformed.
    pub retries: u32,
    /// What it costs, if the manifest states that.
    pub prices: Option<Prices>,
    /// Limits on what it may be asked for.
    pub budget: Budget,
}

impl Agent {
    /// The identity of the agent without its limits. It names whose answers these are.
    pub fn identity(&self) -> String {
        match &self.reach {
            AgentAccess::Http { url, model, .. } => format!("http {} {model}", url.value.trim_end_matches('/')),
            AgentAccess::Command { program } => format!("command {program:?}"),
        }
    }
}

/// Whose earlier kernels an agent sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those of the whole workspace.
    #[default]
    Workspace,
    /// Those of the kernel's package.
    Package,
    /// The kernel's own.
    Kernel,
}

impl Scope {
    /// The word for this scope in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Workspace => "workspace",
            Scope::Package => "package",
            Scope::Kernel => "kernel",
        }
    }

    /// The scope of that word.
    pub fn named(word: &str) -> Option<Scope> {
        [Scope::Workspace, Scope::Package, Scope::Kernel].into_iter().find(|scope| scope.name() == word)
    }
}

/// What a kernel asks of agents over its rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// The coder: [`RULES`], or an agent of the manifest.
    pub agent: Text,
    /// The advisor. If none is stated, the coder's agent also has this role. `rules` needs no advisor.
    pub judge: Option<Text>,
    /// The number of rounds.
    pub rounds: u32,
    /// How many variants of one answer are tried.
    pub branches: u32,
    /// How often an answer without a correct variant is corrected.
    pub repairs: u32,
    /// Whose earlier kernels the agents see.
    pub exemplars: Scope,
    /// Tunables of the first champion, which is the first variant in declared order that has them.
    pub start: BTreeMap<String, (Text, TuneValue)>,
}

//! The agents that a manifest names, and what a kernel asks of an agent over its rounds. Knows declarations; asks no agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::variant::TuneValue;
use super::{Place, Text};

/// The agent that needs no declaration: it varies the methods and tunables that a kernel has, without any request.
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

/// What a million tokens cost, in whatever currency the manifest counts.
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
        /// The model it is asked for.
        model: String,
        /// The environment variable that holds the key; none where it takes none. The key itself is never kept.
        key: Option<Text>,
        /// Sampling temperature; the endpoint's own where none is stated.
        temperature: Option<f64>,
        /// Most tokens of an answer; the endpoint's own limit where none is stated.
        max_tokens: Option<u64>,
    },
    /// A program that reads a prompt from standard input and writes an answer to standard output.
    Command {
        /// The program and its arguments. Relative programs with a `/` are relative to the package.
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
    /// How often a request that found no good answer is repeated: refused for the rate, failed on the way, or malformed.
    pub retries: u32,
    /// What it costs, where the manifest says.
    pub prices: Option<Prices>,
    /// What it may be asked for.
    pub budget: Budget,
}

impl Agent {
    /// The identity of the agent, without its limits: whose answers these are.
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
    /// Its word.
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
    /// Who writes: [`RULES`], or an agent of the manifest.
    pub agent: Text,
    /// Who diagnoses and corrects; the same agent, in another role, where none is stated. `rules` needs none.
    pub judge: Option<Text>,
    /// The number of rounds.
    pub rounds: u32,
    /// Variants of one answer that are tried.
    pub branches: u32,
    /// How often an answer without a correct variant is corrected.
    pub repairs: u32,
    /// Whose earlier kernels the agents see.
    pub exemplars: Scope,
    /// The tunables of the variant that is the first champion; those it does not name have their first value.
    pub start: BTreeMap<String, (Text, TuneValue)>,
}

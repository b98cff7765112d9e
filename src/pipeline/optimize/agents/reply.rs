//! The form of a reply, and what is wrong with a reply that does not have it. Knows schemas and declarations; asks no agent.
//!
//! A reply holds one JSON object: bare, in a fence, or among prose, because models wrap their answers. Nothing else is tolerated. The object must match its
//! schema, the declaration must be valid in a `template.toml`, and every variant must have a switch for every method that it was asked to try. Errors come back
//! as text for the next try.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::briefing::{Briefing, shortened};
use kforge_foundation::base::{Diagnostic, Severity, SourceFile};
use kforge_project::workspace::generated::DECLARATION;
use kforge_types::model::{Kernel, Language, Method, Place, Text, TuneValue, Variant, parse_template};
use kforge_types::record::answer::{Advice, Proposal, Role};

/// The longest source in bytes. A longer one is not accepted.
const LONGEST_SOURCE: usize = 1 << 20;

/// The most characters of an error that are shown to the agent. The first faults are enough for the next try.
const LONGEST_FAULT: usize = 3000;

/// The longest reply in bytes that is searched.
const LONGEST_REPLY: usize = 4 << 20;

/// The kind of reply that is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expected {
    /// What limits a champion.
    Diagnosis,
    /// What is wrong with candidates.
    Correction,
    /// A candidate.
    Proposal,
}

impl Expected {
    /// Every kind of reply.
    pub const ALL: [Expected; 3] = [Expected::Diagnosis, Expected::Correction, Expected::Proposal];

    /// The role of the agent that is asked for it.
    pub fn role(self) -> Role {
        match self {
            Expected::Diagnosis | Expected::Correction => Role::Advisor,
            Expected::Proposal => Role::Coder,
        }
    }

    /// Its JSON Schema.
    pub fn schema(self) -> &'static Value {
        &self.form().0
    }

    /// The longest advice that such a reply can give, because its schema bounds every text; none for a reply that gives no advice.
    pub(super) fn longest_advice(self) -> Option<Advice> {
        let text = |key: &str| {
            let most = self.schema()["properties"][key]["maxLength"].as_u64().unwrap_or_default();
            // Lengths are in characters, and no character takes more bytes than this one.
            char::MAX.to_string().repeat(usize::try_from(most).unwrap_or_default())
        };
        match self {
            Expected::Diagnosis => {
                Some(Advice::Diagnosis { bottleneck: text("bottleneck"), method: text("method"), plan: text("plan") })
            }
            Expected::Correction => Some(Advice::Correction {
                critical_issue: text("critical_issue"),
                why_it_matters: text("why_it_matters"),
                minimal_fix: text("minimal_fix"),
            }),
            Expected::Proposal => None,
        }
    }

    fn form(self) -> &'static (Value, jsonschema::Validator) {
        static FORMS: LazyLock<BTreeMap<Expected, (Value, jsonschema::Validator)>> = LazyLock::new(|| {
            let form = |expected| {
                let schema = match expected {
                    Expected::Diagnosis => schemars::schema_for!(DiagnosisReply),
                    Expected::Correction => schemars::schema_for!(CorrectionReply),
                    Expected::Proposal => schemars::schema_for!(ProposalReply),
                };
                let schema = schema.to_value();
                let validator = jsonschema::validator_for(&schema).expect("BUG: a schema that schemars made is one");
                (expected, (schema, validator))
            };
            Expected::ALL.into_iter().map(form).collect()
        });
        &FORMS[&self]
    }
}

/// What limits a kernel, as an advisor answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Diagnosis")]
struct DiagnosisReply {
    /// What limits the kernel, in at most 40 words.
    #[schemars(length(min = 1, max = 600))]
    bottleneck: String,
    /// The id of the one method to try first, from the methods in the prompt.
    #[schemars(length(min = 1, max = 200))]
    method: String,
    /// How to change the kernel, in at most 60 words.
    #[schemars(length(min = 1, max = 1000))]
    plan: String,
}

/// What is wrong with candidates, as an advisor answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Correction")]
struct CorrectionReply {
    /// What is wrong, in at most 30 words.
    #[schemars(length(min = 1, max = 600))]
    critical_issue: String,
    /// Why it makes the result wrong, in at most 40 words.
    #[schemars(length(min = 1, max = 600))]
    why_it_matters: String,
    /// The smallest change that corrects it, in at most 40 words.
    #[schemars(length(min = 1, max = 800))]
    minimal_fix: String,
}

/// A candidate, as a coder answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Proposal")]
struct ProposalReply {
    /// TOML in the form of a `template.toml`: `tune`, `requires`, `launch`, `methods`, and `workspace`, `flags`, `defines`, `std` if they are needed.
    #[schemars(length(min = 1))]
    declaration: String,
    /// The whole file, in the language of the kernel.
    #[schemars(length(min = 1))]
    source: String,
    /// The variants to try, best first: values of tunables by name; an omitted tunable has its first value.
    #[schemars(length(min = 1, max = 64))]
    branches: Vec<BTreeMap<String, TuneValue>>,
    /// What was done and why, in a few lines.
    #[serde(default)]
    #[schemars(length(max = 4000))]
    notes: Option<String>,
}

/// The content of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedReply {
    /// An advisor's advice.
    Advice(Advice),
    /// A coder's proposal.
    Proposal(Proposal),
}

/// What is wrong with a reply.
#[derive(Debug, thiserror::Error)]
pub enum ReplyError {
    /// The reply is too long.
    #[error("the reply is longer than {} MiB", LONGEST_REPLY >> 20)]
    TooLong,
    /// The reply is cut off at the token limit of an answer.
    #[error("it is cut off: the answer reached its limit of tokens")]
    Cut,
    /// The reply contains no object.
    #[error("there is no JSON object in the reply")]
    NoObject,
    /// The object cannot be read.
    #[error("the JSON object cannot be read: {0}")]
    Broken(serde_json::Error),
    /// No object of the reply has all of these fields.
    #[error("no JSON object in the reply has all of {}", quoted(.0))]
    Incomplete(Vec<String>),
    /// This many objects of the reply have all fields.
    #[error("there are {0} JSON objects that could be the answer: expected one")]
    Several(usize),
    /// The object does not match its schema: one line per fault.
    #[error("the JSON object does not match its schema:\n{}", .0.join("\n"))]
    Schema(Vec<String>),
    /// The object cannot be decoded.
    #[error("the JSON object does not match its schema: {0}")]
    Decode(serde_json::Error),
    /// The reply names a method that was not offered.
    #[error("`method` is `{method}`: expected one of {}", quoted(.known))]
    Method {
        /// The method.
        method: String,
        /// The methods that were offered.
        known: Vec<String>,
    },
    /// The source is too long or not text.
    #[error("`source` is not a text of at most {LONGEST_SOURCE} bytes")]
    Source,
    /// The declaration is wrong: one line per fault.
    #[error("`declaration` is wrong:\n{}", .0.join("\n"))]
    Declaration(Vec<String>),
    /// The variants or methods do not fit the declaration: one line per fault.
    #[error("{}", .0.join("\n"))]
    Proposal(Vec<String>),
}

impl ReplyError {
    /// The error as text for the agent, shortened if it is long.
    pub fn told(&self) -> String {
        shortened(&self.to_string(), LONGEST_FAULT)
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Reads a reply to a briefing.
///
/// # Errors
/// What is wrong with the reply, for the next try.
pub fn parse_reply(expected: Expected, text: &str, briefing: &Briefing) -> Result<ParsedReply, ReplyError> {
    let value = object(expected, text)?;
    let faults: Vec<String> = expected
        .form()
        .1
        .iter_errors(&value)
        .map(|e| {
            let at = e.instance_path().to_string();
            let at = if at.is_empty() { String::new() } else { format!(" (at `{at}`)") };
            // A schema error quotes the faulty value, which may be a whole source.
            format!("{}{at}", shortened(&e.to_string(), 300))
        })
        .collect();
    if !faults.is_empty() {
        return Err(ReplyError::Schema(faults));
    }
    match expected {
        Expected::Diagnosis => diagnosis(typed(value)?, briefing).map(ParsedReply::Advice),
        Expected::Correction => {
            let CorrectionReply { critical_issue, why_it_matters, minimal_fix } = typed(value)?;
            Ok(ParsedReply::Advice(Advice::Correction { critical_issue, why_it_matters, minimal_fix }))
        }
        Expected::Proposal => proposal(typed(value)?, briefing).map(ParsedReply::Proposal),
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ReplyError> {
    serde_json::from_value(value).map_err(ReplyError::Decode)
}

fn diagnosis(reply: DiagnosisReply, briefing: &Briefing) -> Result<Advice, ReplyError> {
    let DiagnosisReply { bottleneck, method, plan } = reply;
    if !briefing.methods.is_empty() && !briefing.methods.iter().any(|m| m.id == method) {
        let known = briefing.methods.iter().map(|m| m.id.clone()).collect();
        return Err(ReplyError::Method { method, known });
    }
    Ok(Advice::Diagnosis { bottleneck, method, plan })
}

/// The one object in a reply that can be the answer.
fn object(expected: Expected, text: &str) -> Result<Value, ReplyError> {
    if text.len() > LONGEST_REPLY {
        return Err(ReplyError::TooLong);
    }
    let mut found: Vec<Value> = vec![];
    let (mut at, mut broken) = (0, None);
    // Scanning again from every brace is cheap: text that is not JSON fails at once, and the parser limits the depth of nesting.
    while let Some(next) = text[at..].find('{').map(|n| at + n) {
        let mut stream = serde_json::Deserializer::from_str(&text[next..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                at = next + stream.byte_offset();
                found.push(value);
            }
            Some(Err(error)) => {
                at = next + 1;
                broken.get_or_insert(error);
            }
            None => at = next + 1,
        }
    }
    let required = || expected.schema()["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let whole = |value: &Value| required().all(|key| value.get(key).is_some());
    let mut meant: Vec<Value> = found.iter().filter(|v| whole(v)).cloned().collect();
    match (meant.len(), found.len(), broken) {
        (1, ..) => Ok(meant.remove(0)),
        (0, 1, None) => Ok(found.remove(0)),
        (0, 0, None) => Err(ReplyError::NoObject),
        // The first object that cannot be read is taken for the answer, and the parser's error says where it breaks.
        (0, _, Some(error)) => Err(ReplyError::Broken(error)),
        (0, ..) => Err(ReplyError::Incomplete(required().map(str::to_string).collect())),
        (n, ..) => Err(ReplyError::Several(n)),
    }
}

/// Checks a proposal against its declaration and the briefing.
fn proposal(reply: ProposalReply, briefing: &Briefing) -> Result<Proposal, ReplyError> {
    let ProposalReply { declaration, source, mut branches, notes } = reply;
    if source.len() > LONGEST_SOURCE || source.contains('\0') {
        return Err(ReplyError::Source);
    }
    let kernel = declared(&declaration, briefing.language)?;
    // Variants are in order of preference: those beyond the requested number are not tried.
    branches.truncate(briefing.branches.max(1) as usize);
    let mut wrong = vec![];
    let mut variants = vec![];
    for (n, branch) in branches.iter().enumerate() {
        match variant(&kernel, branch) {
            Ok(variant) => variants.push((n + 1, variant)),
            Err(why) => wrong.extend(why.into_iter().map(|why| format!("variant {} of `branches`: {why}", n + 1))),
        }
    }
    for id in briefing.methods.iter().map(|m| &m.id) {
        match kernel.methods.iter().find(|m| m.id == *id) {
            Some(method) => wrong.extend(without_switch(&kernel, method, &variants)),
            None => wrong.push(format!("the declaration lacks `[methods.\"{id}\"]` with what `off` means")),
        }
    }
    if wrong.is_empty() {
        Ok(Proposal { source: Some(source), declaration: Some(declaration), branches, notes })
    } else {
        Err(ReplyError::Proposal(wrong))
    }
}

/// The variants in which a method cannot be turned off.
fn without_switch(kernel: &Kernel, method: &Method, variants: &[(usize, Variant)]) -> Vec<String> {
    let off = |n: &usize| {
        format!(
            "variant {n} of `branches` is the same with and without `{}`: its `off` must change a tunable or add a flag",
            method.id
        )
    };
    variants.iter().filter(|(_, v)| kernel.without(v, method).is_none()).map(|(n, _)| off(n)).collect()
}

/// The kernel that a declaration describes.
fn declared(declaration: &str, language: Language) -> Result<Kernel, ReplyError> {
    let file = Arc::new(SourceFile { name: DECLARATION.into(), text: declaration.into() });
    let name = Text { value: "kernel".into(), place: Place::new(&file, 0..0) };
    let (kernel, found) = parse_template(&file, &name, language);
    let errors: Vec<String> = found.iter().filter(|d| d.severity == Severity::Error).map(told).collect();
    match kernel {
        Some(kernel) if errors.is_empty() => Ok(kernel),
        _ => Err(ReplyError::Declaration(errors)),
    }
}

/// A diagnostic as a line.
fn told(diagnostic: &Diagnostic) -> String {
    let at = diagnostic.position().map(|(_, line, _)| format!("line {line}: ")).unwrap_or_default();
    let expected = diagnostic.expected.as_ref().map(|e| format!("; expected {e}")).unwrap_or_default();
    format!("{at}{}{expected}", diagnostic.message)
}

/// The variant that a branch describes.
fn variant(kernel: &Kernel, branch: &BTreeMap<String, TuneValue>) -> Result<Variant, Vec<String>> {
    let mut wrong = vec![];
    for (name, value) in branch {
        match kernel.tune.iter().find(|(tunable, _)| tunable.value == *name) {
            None => wrong.push(format!("`{name}` is not a tunable of the declaration")),
            Some((_, values)) if !values.contains(value) => {
                let known: Vec<String> = values.iter().map(ToString::to_string).collect();
                wrong.push(format!("`{name}` does not take the value {value}: `tune` has {}", known.join(", ")));
            }
            Some(_) => {}
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let first = kernel.tune.iter().filter_map(|(name, values)| Some((name.value.clone(), values.first()?.clone())));
    let mut values: BTreeMap<String, TuneValue> = first.collect();
    values.extend(branch.clone());
    Ok(Variant { values, label: String::new(), order: 0 })
}

#[cfg(test)]
#[path = "reply/tests.rs"]
mod tests;

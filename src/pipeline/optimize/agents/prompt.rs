//! Prompts: a briefing as text. Knows the texts of `templates/prompts/`; does not know who reads them. The same briefing makes the same prompt.

use std::fmt::Write;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value, context};

use super::briefing::Briefing;
use super::reply::Expected;
use kforge_types::model::{Axis, Language};
use kforge_types::record::answer::{Advice, Prompt};
use kforge_types::record::profile::Gaps;

/// The line between the system prompt and the user prompt.
const BETWEEN: &str = "---- user ----\n";

const DIAGNOSIS: &str = include_str!("../../templates/prompts/advisor-diagnosis.j2");
const CORRECTION: &str = include_str!("../../templates/prompts/advisor-correction.j2");
const CODER: &str = include_str!("../../templates/prompts/coder.j2");
const REPAIR: &str = include_str!("../../templates/prompts/coder-repair.j2");

/// Texts that several prompts share.
const PARTS: [(&str, &str); 13] = [
    ("advice", include_str!("../../templates/prompts/parts/advice.j2")),
    ("contract", include_str!("../../templates/prompts/parts/contract.j2")),
    ("example", include_str!("../../templates/prompts/parts/example.j2")),
    ("example-triton", include_str!("../../templates/prompts/parts/example-triton.j2")),
    ("exemplars", include_str!("../../templates/prompts/parts/exemplars.j2")),
    ("failed", include_str!("../../templates/prompts/parts/failed.j2")),
    ("form", include_str!("../../templates/prompts/parts/form.j2")),
    ("history", include_str!("../../templates/prompts/parts/history.j2")),
    ("house", include_str!("../../templates/prompts/parts/house.j2")),
    ("house-triton", include_str!("../../templates/prompts/parts/house-triton.j2")),
    ("measured", include_str!("../../templates/prompts/parts/measured.j2")),
    ("methods", include_str!("../../templates/prompts/parts/methods.j2")),
    ("parent", include_str!("../../templates/prompts/parts/parent.j2")),
];

/// The prompt for a reply. It includes an advisor's advice for a coder, and what was wrong with the previous reply, if there was one.
pub fn prompt(expected: Expected, briefing: &Briefing, advice: Option<&Advice>, repeated: Option<&str>) -> Prompt {
    let text = match expected {
        Expected::Diagnosis => DIAGNOSIS,
        Expected::Correction => CORRECTION,
        Expected::Proposal if briefing.attempt > 0 => REPAIR,
        Expected::Proposal => CODER,
    };
    let bounded = briefing.bounded();
    let schema = serde_json::to_string_pretty(expected.schema()).expect("BUG: a JSON value can always be written");
    let context = context! {
        b => Value::from(Serde(&bounded)),
        dialect => Dialect::of(briefing.language),
        gaps => gaps(&bounded.gaps),
        advice => advice.map(Advised::of).map(|a| a.0),
        schema,
        repeated,
    };
    let environment = environment(context.clone());
    let (system, user) =
        text.split_once(BETWEEN).expect("BUG: the prompts are part of the program, and a test reads all");
    let rendered = |text: &str| {
        let rendered = environment.render_str(text, &context);
        // Empty parts leave blank lines behind.
        squeezed(&rendered.expect("BUG: the prompts are part of the program, and a test renders all"))
    };
    Prompt { system: rendered(system), user: rendered(user) }
}

/// What prompts call a language, how they fence its sources, and what the names of its own parts end in.
#[derive(serde::Serialize)]
struct Dialect {
    name: &'static str,
    fence: &'static str,
    ending: &'static str,
    varies: &'static str,
}

impl Dialect {
    fn of(language: Language) -> Value {
        Value::from(Serde(match language {
            Language::Cuda => Dialect {
                name: "CUDA",
                fence: "cuda",
                ending: "",
                varies: "tile sizes, stages, threads, elements per thread",
            },
            Language::Triton => Dialect {
                name: "Triton",
                fence: "python",
                ending: "-triton",
                varies: "tile sizes, `num_warps`, `num_stages`",
            },
            Language::Torch => Dialect { name: "PyTorch", fence: "python", ending: "", varies: "" },
        }))
    }
}

/// An advisor's advice as names and texts.
struct Advised(Vec<(&'static str, String)>);

impl Advised {
    fn of(advice: &Advice) -> Self {
        Advised(match advice {
            Advice::Diagnosis { bottleneck, method, plan } => {
                vec![("bottleneck", bottleneck.clone()), ("first method", method.clone()), ("plan", plan.clone())]
            }
            Advice::Correction { critical_issue, why_it_matters, minimal_fix } => vec![
                ("critical issue", critical_issue.clone()),
                ("why it matters", why_it_matters.clone()),
                ("smallest fix", minimal_fix.clone()),
            ],
        })
    }
}

/// The known gaps as text; empty if none is known.
fn gaps(gaps: &Gaps) -> String {
    let known = Axis::ALL.into_iter().filter_map(|axis| Some(format!("{} {:.2}", axis.name(), gaps.of(axis)?)));
    known.collect::<Vec<_>>().join(", ")
}

fn environment(context: Value) -> Environment<'static> {
    let mut environment = plain();
    environment.add_function("part", move |name: String| -> Result<Value, Error> {
        let found = PARTS.iter().find(|(part, _)| *part == name);
        let (_, text) = found.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, format!("no part `{name}`")))?;
        Ok(Value::from_safe_string(plain().render_str(text, &context)?))
    });
    environment
}

fn plain() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build();
    environment.set_syntax(syntax.expect("BUG: the delimiters are the usual ones, which do not clash"));
    environment.add_function("fenced", |text: String, language: String| fenced(&text, &language));
    environment.add_filter("number", |value: f64| number(value));
    environment.add_filter("nanoseconds", |value: f64| match value {
        v if v < 1e3 => format!("{} ns", number(v)),
        v if v < 1e6 => format!("{} us", number(v / 1e3)),
        v => format!("{} ms", number(v / 1e6)),
    });
    environment.add_filter("pairs", |value: Value| -> Result<String, Error> {
        let mut out = String::new();
        for name in value.try_iter()? {
            let comma = if out.is_empty() { "" } else { ", " };
            let json = serde_json::to_string(&value.get_item(&name)?).unwrap_or_default();
            let _ = write!(out, "{comma}{name} = {json}");
        }
        Ok(if out.is_empty() { "none".into() } else { out })
    });
    environment
}

/// A text between fences that do not occur in it.
fn fenced(text: &str, language: &str) -> String {
    let mut fence = "```".to_string();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

/// A number with four significant digits.
fn number(value: f64) -> String {
    let whole = value.abs().max(1.0).log10().floor() as usize + 1;
    let text = format!("{value:.*}", 4usize.saturating_sub(whole));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// The text without runs of blank lines outside of fences, and with exactly one newline at its end.
fn squeezed(text: &str) -> String {
    let (mut out, mut blank, mut fence) = (String::new(), true, String::new());
    for line in text.lines() {
        if fence.is_empty() {
            fence = line.chars().take_while(|c| *c == '`').collect();
            if fence.len() < 3 {
                fence.clear();
            }
            let is_blank = line.trim().is_empty();
            if is_blank && blank {
                continue;
            }
            blank = is_blank;
        } else if line == fence {
            fence.clear();
        }
        out.push_str(line);
        out.push('\n');
    }
    format!("{}\n", out.trim_end())
}

#[cfg(test)]
#[path = "prompt/tests.rs"]
mod tests;

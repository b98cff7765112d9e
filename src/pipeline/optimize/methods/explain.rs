//! A method as text, for people and for prompts. Knows the registry; prints nothing.

use std::fmt::Write;

use super::{Entry, Trigger};
use kforge_types::model::{Language, SassPatterns, Signature, Trace};

/// The text about a method, in lines of at most about 100 columns.
pub fn explain(entry: &Entry) -> String {
    let triton = entry.triton.as_ref().map_or_else(String::new, |text| format!("\n\nIn Triton:\n{}", wrapped(text)));
    explained(entry, &(wrapped(&entry.advice) + &triton))
}

/// The text about a method for the author of a kernel in that language; empty if the method has no form in it.
pub fn explain_in(entry: &Entry, language: Language) -> String {
    entry.advice_in(language).map(|advice| explained(entry, &wrapped(advice))).unwrap_or_default()
}

fn explained(entry: &Entry, advice: &str) -> String {
    let mut out = format!("{}: {}\n\n{advice}\n\n", entry.id, entry.title);
    let mut line = |name: &str, text: &str| {
        let _ = writeln!(out, "{name:>13}  {text}");
    };
    line("axis", entry.axis.name());
    line("priority", &entry.priority.to_string());
    line("architectures", &architectures(entry));
    line("trigger", &entry.trigger.as_ref().map_or_else(|| "no metric supports it".into(), trigger));
    line("where", &preconditions(entry));
    line("without it", &entry.off);
    match &entry.signature {
        Trace::Patterns(signature) => {
            for (n, sign) in shown_by(signature).into_iter().enumerate() {
                line(if n == 0 { "shown by" } else { "" }, &format!("{} {}", sign.words, sign.patterns.join("  ")));
            }
        }
        Trace::Unseen(why) => line("shown by", &format!("nothing in machine code: {why}")),
    }
    if !entry.conflicts.is_empty() {
        line("not with", &entry.conflicts.join(", "));
    }
    out
}

/// The architectures that support it: `sm_90 and later, with wgmma`.
pub fn architectures(entry: &Entry) -> String {
    let features: Vec<&str> = entry.features.iter().map(|f| f.name()).collect();
    let with = if features.is_empty() { String::new() } else { format!(", with {}", features.join(" and ")) };
    format!("sm_{} and later{with}", entry.least)
}

/// When metrics support it: `pipe_tensor below 60, most at 20`.
pub fn trigger(trigger: &Trigger) -> String {
    let joined = |parts: &[Trigger], with: &str| parts.iter().map(self::trigger).collect::<Vec<_>>().join(with);
    match trigger {
        Trigger::Ramp(ramp) => {
            let side = if ramp.bad > ramp.good { "above" } else { "below" };
            format!("{} {side} {}, most at {}", ramp.metric, ramp.good, ramp.bad)
        }
        Trigger::Any(any) => joined(&any.any, "; or "),
        Trigger::All(all) => joined(&all.all, "; and "),
    }
}

/// The preconditions: `the operator multiplies matrices; not where registers spill`.
pub fn preconditions(entry: &Entry) -> String {
    let wanted = entry.requires.iter().map(|f| f.text().to_string());
    let unwanted = entry.unless.iter().map(|f| format!("not where {}", f.text()));
    let all: Vec<String> = wanted.chain(unwanted).collect();
    if all.is_empty() { "anywhere".into() } else { all.join("; ") }
}

/// One condition of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sign {
    /// What is required: `more of one of`, after `sm_90: ` if it applies only to that architecture.
    pub words: String,
    /// The patterns.
    pub patterns: Vec<String>,
}

/// The conditions of a signature: first the common ones, then those of single architectures.
pub fn shown_by(signature: &Signature) -> Vec<Sign> {
    let common = signature.common.iter().flat_map(|p| signs("", p));
    let own = signature.by_arch.iter().flat_map(|(arch, p)| signs(&format!("{arch}: "), p));
    common.chain(own).collect()
}

fn signs(before: &str, patterns: &SassPatterns) -> Vec<Sign> {
    let sign =
        |words: &str, patterns: &[String]| Sign { words: format!("{before}{words}"), patterns: patterns.to_vec() };
    let lists = [
        ("more of one of", &patterns.any),
        ("more of each of", &patterns.all),
        ("fewer of each of", &patterns.fewer),
        ("none of", &patterns.forbid),
    ];
    let counts = patterns.count.iter().map(|(p, n)| sign(&format!("at least {n} of"), std::slice::from_ref(p)));
    lists.into_iter().filter(|(_, all)| !all.is_empty()).map(|(words, all)| sign(words, all)).chain(counts).collect()
}

/// A paragraph, wrapped into lines.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 96;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let full = lines.last().is_some_and(|l| !l.is_empty() && l.len() + 1 + word.len() > WIDTH);
        if full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

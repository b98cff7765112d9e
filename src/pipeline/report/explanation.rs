//! Why a step runs, as text and as a document. Knows explanations; does not create them.

use std::collections::BTreeMap;
use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::arguments::Arguments;
use super::choice::Choice;
use super::field_words::words_of;
use kforge_engine::{Because, Earlier, Explanation, Prospect};
use kforge_foundation::base::Severity;
use kforge_types::record::Note;
use kforge_types::record::event::{EvidenceSeen, Why};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const OLD: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Green.on_default();

/// One link in the chain to the root cause.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Link {
    /// The step, or the file of an input.
    pub what: String,
    /// Why it ran or will run.
    pub why: Why,
}

/// What `kforge explain --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Document {
    /// Version of this format.
    pub format_version: u32,
    /// The step.
    pub id: String,
    /// `fresh`, `will-run`, `may-run`, `unavailable`, `skipped`, or `gone` for a step that only an earlier build had.
    pub standing: &'static str,
    /// What is missing, or the required step that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The product whose observation counts, for a step that observes a device; none if any product counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// The origin of the observation that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceSeen>,
    /// From the step to the root cause: why it runs, why it last ran, or why it has an earlier result.
    pub because: Vec<Link>,
    /// If the step did not run because an earlier result exists: whether its key is that of the last build (`last-build`) or a later one (`now`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<&'static str>,
    /// What a compilation did apart from its log: which compiler it took and why, what it left out of a source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Every field that is hashed into the key, in canonical order.
    pub fields: Vec<(String, String)>,
    /// What a selection chose, for a step that selects champions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
}

/// The explanation as a document.
pub fn document(explanation: &Explanation, choices: &[Choice]) -> Document {
    let (standing, reason) = match &explanation.prospect {
        Prospect::WillRun => ("will-run", None),
        Prospect::MayRun => ("may-run", None),
        Prospect::Fresh => ("fresh", None),
        Prospect::Unavailable(missing) => ("unavailable", Some(missing.clone())),
        Prospect::Skipped(root) => ("skipped", Some(root.clone())),
        Prospect::Gone => ("gone", None),
    };
    Document {
        format_version: kforge_types::record::FORMAT_VERSION,
        id: explanation.id.clone(),
        standing,
        reason,
        product: explanation.product.clone(),
        evidence: explanation.evidence.clone(),
        because: explanation.because.iter().map(|b| Link { what: b.what.clone(), why: b.why.clone() }).collect(),
        earlier: explanation.earlier.map(|earlier| match earlier {
            Earlier::LastBuild => "last-build",
            Earlier::Now => "now",
        }),
        notes: notes(explanation).map(str::to_string).collect(),
        fields: explanation.fields.clone(),
        choices: choices.to_vec(),
    }
}

/// What a compilation did apart from its log, and in which precision a reference was computed.
fn notes(explanation: &Explanation) -> impl Iterator<Item = &str> {
    let quiet = |note: &&Note| note.severity == Severity::Note && note.code.starts_with("compile.");
    let told = move |note: &&Note| quiet(note) || note.code.starts_with("oracle.");
    explanation.notes.iter().filter(told).map(|note| note.message.as_str())
}

/// The names of arguments by step, for the steps of kernels in an explanation.
pub type ArgumentsOf = BTreeMap<String, Arguments>;

/// The explanation with ANSI styles: the chain, and with `fields` everything that is hashed. `full` prints complete digests.
pub fn text(explanation: &Explanation, arguments: &ArgumentsOf, fields: bool, full: bool) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{BOLD}{}{BOLD:#}", explanation.id);
    let _ = writeln!(out, "  {}", explanation.prospect);
    if let Some(EvidenceSeen { origin, measured_at, device_class, .. }) = &explanation.evidence {
        let _ = writeln!(out, "  answered by {device_class}, observed {measured_at}, from {origin}");
    } else if let Some(product) = &explanation.product {
        let _ = writeln!(out, "  asks {product}");
    }
    let past = matches!(explanation.prospect, Prospect::Fresh | Prospect::Gone);
    // The first answer to a step needs no reason other than that evidence brought it.
    let only = explanation.brought && explanation.because.first().is_none_or(|b| b.why.code == "new");
    if only {
        let _ = writeln!(out, "  it has not run here: its result came from evidence");
    }
    let earlier = explanation.earlier.filter(|_| !explanation.brought);
    let found = match earlier {
        Some(Earlier::LastBuild) => "  it did not run in the last build: its result was found earlier\n",
        Some(Earlier::Now) => "  it need not run: its result was found earlier\n",
        None => "",
    };
    out.push_str(found);
    for (depth, because) in explanation.because.iter().enumerate().filter(|_| !only) {
        let lead = match (depth, past) {
            (0, true) if explanation.brought => "it has not run here, and another result came from evidence because ",
            (0, true) if earlier == Some(Earlier::Now) => "since the last build ",
            (0, true) if earlier.is_some() => "it was looked for because ",
            (0, true) => "it last ran because ",
            _ => "because ",
        };
        link(&mut out, because, arguments, (depth, lead), &explanation.id, full);
    }
    if explanation.because.is_empty() && past && !only {
        let _ = writeln!(
            out,
            "  {DIM}the reason for its last run is not recorded here: its result came from a cache{DIM:#}"
        );
    }
    for note in notes(explanation) {
        for (at, line) in note.lines().enumerate() {
            let _ = writeln!(out, "{}{line}", if at == 0 { "  " } else { "    " });
        }
    }
    if fields {
        let _ = writeln!(out, "  hashed into its key:");
        for (path, value) in &explanation.fields {
            let _ = writeln!(out, "    {DIM}{path} ={DIM:#} {}", shown(value, full));
        }
    }
    out
}

fn link(
    out: &mut String,
    because: &Because,
    arguments: &ArgumentsOf,
    (depth, lead): (usize, &str),
    id: &str,
    full: bool,
) {
    let none = Arguments::default();
    let words = |field: &str| words_of(field, arguments.get(&because.what).unwrap_or(&none));
    let Why { code, field, before, after } = &because.why;
    let pad = " ".repeat(2 + 2 * depth);
    let what = if because.what == id { "it".to_string() } else { format!("`{}`", because.what) };
    let owner = if because.what == id { "its".to_string() } else { format!("`{}`'s", because.what) };
    let file = because.what.starts_with("inputs.");
    let line = match (code.as_str(), field) {
        ("new", _) => format!("{what} had no result before"),
        ("not-cached", _) => format!("no cache has {} result any more", owner),
        ("forgotten", _) => format!("{owner} last result was of a kind that is not kept"),
        ("remeasure", _) => format!("{what} was requested again"),
        ("input-pending", Some(field)) => match words(field) {
            Some(words) => format!("{what} waits for the {words}"),
            None => format!("{what} reads `{field}`, which does not exist yet"),
        },
        ("changed", Some(name)) if file => format!("file `{name}` changed"),
        ("added", Some(name)) if file => format!("file `{name}` was added"),
        ("removed", Some(name)) if file => format!("file `{name}` was removed"),
        ("changed", Some(field)) => match words(field) {
            Some(words) => format!("{owner} {words} changed  {DIM}({field}){DIM:#}"),
            None => format!("{owner} `{field}` changed"),
        },
        (code, _) => format!("{what} was {code}"),
    };
    let _ = writeln!(out, "{pad}{lead}{line}");
    for (name, value, style) in [("before", before, OLD), ("after", after, NEW)] {
        if let Some(value) = value {
            let _ = writeln!(out, "{pad}    {name:<6} {style}{}{style:#}", shown(value, full));
        } else if before.is_some() || after.is_some() {
            let _ = writeln!(out, "{pad}    {name:<6} {DIM}nothing{DIM:#}");
        }
    }
}

/// A value; its digest is shortened unless `full` is set: `blake3:0123456789ab… (1204 B)`.
pub fn shown(value: &str, full: bool) -> String {
    let parts: Vec<&str> = value.split(':').collect();
    match parts.as_slice() {
        [function, hash, size] if !full && hash.len() == 64 && size.parse::<u64>().is_ok() => {
            format!("{function}:{}… ({size} B)", &hash[..12])
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn because(what: &str, code: &str, field: Option<&str>, change: Option<(&str, &str)>) -> Because {
        let why = Why {
            code: code.into(),
            field: field.map(Into::into),
            before: change.map(|c| c.0.into()),
            after: change.map(|c| c.1.into()),
        };
        Because { what: what.into(), why }
    }

    #[test]
    fn an_argument_of_a_launch_goes_by_the_name_that_its_kernel_declares() {
        let field = "params.launches[0].kernel.args[2].scalar.value.int";
        let explanation = Explanation {
            id: "p/k/cpu/verify".into(),
            prospect: Prospect::WillRun,
            product: None,
            evidence: None,
            brought: false,
            earlier: None,
            notes: vec![],
            because: vec![because("p/k/cpu/verify", "changed", Some(field), None)],
            fields: vec![],
        };
        let said = |arguments: &ArgumentsOf| {
            anstream::adapter::strip_str(&text(&explanation, arguments, false, false)).to_string()
        };
        let named = [("p/k/cpu/verify".to_string(), Arguments::named(&["x", "y", "cols"]))].into();
        assert!(said(&named).contains("its argument `cols` of launch 1 changed"), "{}", said(&named));
        assert!(said(&ArgumentsOf::new()).contains("its argument 3 of launch 1 changed"));
    }

    #[test]
    fn a_chain_goes_from_the_step_to_the_file_that_changed() {
        let (old, new) = (format!("blake3:{}:7", "a".repeat(64)), format!("blake3:{}:8", "b".repeat(64)));
        let explanation = Explanation {
            id: "p/k/cpu/compile".into(),
            prospect: Prospect::WillRun,
            product: None,
            evidence: None,
            brought: false,
            earlier: None,
            notes: vec![],
            because: vec![
                because("p/k/cpu/compile", "changed", Some("inputs.tree:source"), Some((&old, &new))),
                because("p/k/generate", "changed", Some("inputs.file:k.cu"), Some((&old, &new))),
            ],
            fields: vec![("kind".into(), "compile".into())],
        };
        let plain = anstream::adapter::strip_str(&text(&explanation, &ArgumentsOf::new(), true, false)).to_string();
        let expected = "p/k/cpu/compile\n  would run now\n  because its source changed  (inputs.tree:source)\n      before blake3:aaaaaaaaaaaa… (7 B)\n      after  blake3:bbbbbbbbbbbb… (8 B)\n    because `p/k/generate`'s file `k.cu` changed  (inputs.file:k.cu)\n        before blake3:aaaaaaaaaaaa… (7 B)\n        after  blake3:bbbbbbbbbbbb… (8 B)\n  hashed into its key:\n    kind = compile\n";
        assert_eq!(plain, expected);
        assert!(text(&explanation, &ArgumentsOf::new(), false, true).contains(&old), "-v shows whole digests");
        let json = serde_json::to_value(document(&explanation, &[])).unwrap();
        assert_eq!(json["standing"], "will-run");
        assert_eq!(json["because"][1]["why"]["field"], "inputs.file:k.cu");
        // A step that a bundle answers has not run here.
        let first = vec![because("p/k/cpu/compile", "new", None, None)];
        let brought = Explanation { prospect: Prospect::Fresh, brought: true, because: first, ..explanation.clone() };
        let plain = anstream::adapter::strip_str(&text(&brought, &ArgumentsOf::new(), false, false)).to_string();
        assert_eq!(plain, "p/k/cpu/compile\n  is fresh\n  it has not run here: its result came from evidence\n");
        let brought = Explanation { prospect: Prospect::Fresh, brought: true, ..explanation };
        let plain = anstream::adapter::strip_str(&text(&brought, &ArgumentsOf::new(), false, false)).to_string();
        let says = "it has not run here, and another result came from evidence because its source changed";
        assert!(plain.contains(says), "{plain}");
    }
}

//! The recorded candidates of a workspace, as values and as text. Knows records; the caller finds sources and removes colors if there is no terminal.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use serde::{Deserialize, Serialize};

use super::text::variant;
use kforge_types::record::candidate::{Became, Candidate};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const OPEN: Style = AnsiColor::Yellow.on_default();

/// A candidate as `kforge candidates` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Remembered {
    /// Version of this format.
    pub format_version: u32,
    /// The name that `kforge candidates --source` takes.
    pub id: String,
    /// Its record.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// The file with its source: in the workspace (a generated one in its output folder), or the record of the answer. None if the source was edited since.
    pub place: Option<String>,
}

/// The list as text, by kernel.
pub fn text(all: &[Remembered]) -> String {
    let mut out = String::new();
    let mut before: Option<&Candidate> = None;
    for one in all {
        let c = &one.candidate;
        if before.is_none_or(|before| !before.is_beside(c)) {
            let _ = writeln!(out, "{}", heading(c));
        }
        before = Some(c);
        let _ = writeln!(out, "  {}  {}", one.id, line(c));
        if !c.methods.is_empty() {
            let _ = writeln!(out, "    methods: {}", c.methods.join(", "));
        }
        let place = one.place.as_deref().unwrap_or(match c.source {
            Some(_) => "none: it was edited since",
            None => "none: the answer had none",
        });
        let _ = writeln!(out, "    {DIM}source: {place}{DIM:#}");
    }
    out
}

/// The heading of a kernel: `p/softmax on gpu (sm_90a): operator softmax, reduction, L4`.
fn heading(c: &Candidate) -> String {
    let types = if c.types.is_empty() { String::new() } else { format!(" [{}]", c.types) };
    let arch = if c.arch == c.target { String::new() } else { format!(" ({})", c.arch) };
    let pattern = c.pattern.map_or("no pattern known", |pattern| pattern.name());
    let level = c.level.map_or(String::new(), |level| format!(", L{level}"));
    format!(
        "{BOLD}{}/{}{BOLD:#}{types} on {}{arch}: operator {}, {pattern}{level}",
        c.package, c.kernel, c.target, c.operator
    )
}

/// The line of a candidate: `round 2, repair 1: BLOCK=64: correct, 1.80 times as fast, champion`.
fn line(c: &Candidate) -> String {
    let mut out = match (c.round, c.attempt) {
        (0, _) => "declared".to_string(),
        (round, 0) => format!("round {round}"),
        (round, repair) => format!("round {round}, repair {repair}"),
    };
    if let Some(label) = &c.variant {
        let _ = write!(out, ": {}", variant(label));
    }
    let style = match c.became {
        Became::Correct => GOOD,
        Became::Undecided => OPEN,
        Became::Wrong | Became::Refused => BAD,
    };
    let _ = write!(out, ": {style}{}{style:#}", c.became.word());
    match (c.speedup, c.time_ns) {
        (Some(speedup), Some(ns)) => {
            let _ = write!(out, ", {speedup:.2} times as fast, {:.2} us", ns / 1e3);
        }
        (Some(speedup), None) => {
            let _ = write!(out, ", {speedup:.2} times as fast");
        }
        (None, Some(ns)) => {
            let _ = write!(out, ", {:.2} us", ns / 1e3);
        }
        (None, None) => {}
    }
    if c.champion {
        out += ", champion";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::base::Digest;
    use kforge_types::model::Pattern;

    fn candidate() -> Candidate {
        Candidate {
            language: kforge_types::model::Language::Cuda,
            package: "p".into(),
            kernel: "k".into(),
            operator: "softmax".into(),
            types: "T=f16".into(),
            target: "gpu".into(),
            arch: "sm_90a".into(),
            contract: Digest::of(b"c"),
            pattern: Some(Pattern::Reduction),
            level: Some(4),
            chain: Some(Digest::of(b"chain")),
            round: 2,
            attempt: 1,
            variant: Some("T=f16,r2.1,BLOCK=64".into()),
            methods: vec!["memory.vectorized_access".into()],
            became: Became::Correct,
            time_ns: Some(4200.0),
            speedup: Some(1.8),
            champion: true,
            source: Some(Digest::of(b"source")),
        }
    }

    fn plain(all: &[Candidate], place: Option<&str>) -> String {
        let of = |candidate: &Candidate| Remembered {
            format_version: 1,
            id: "0123456789ab".into(),
            candidate: candidate.clone(),
            place: place.map(String::from),
        };
        anstream::adapter::strip_str(&text(&all.iter().map(of).collect::<Vec<_>>())).to_string()
    }

    #[test]
    fn a_candidate_is_told_with_what_it_is_of_and_what_became_of_it() {
        let text = plain(&[candidate()], Some("answers/2-1.json"));
        assert_eq!(
            text,
            "p/k [T=f16] on gpu (sm_90a): operator softmax, reduction, L4\n\
             \u{20} 0123456789ab  round 2, repair 1: T=f16,r2.1,BLOCK=64: correct, 1.80 times as fast, 4.20 us, champion\n\
             \u{20}   methods: memory.vectorized_access\n    source: answers/2-1.json\n"
        );
    }

    #[test]
    fn candidates_of_one_kernel_stand_under_one_heading_and_unknowns_are_said() {
        let refused = Candidate {
            variant: None,
            became: Became::Refused,
            speedup: None,
            time_ns: None,
            champion: false,
            source: None,
            methods: vec![],
            ..candidate()
        };
        let other = Candidate { pattern: None, level: None, target: "sm_90a".into(), round: 0, ..candidate() };
        let text = plain(&[candidate(), refused, other], None);
        assert_eq!(text.matches("operator softmax").count(), 2, "{text}");
        assert!(text.contains("round 2, repair 1: refused\n    source: none: the answer had none"), "{text}");
        assert!(text.contains("on sm_90a: operator softmax, no pattern known\n  0123456789ab  declared: "), "{text}");
        assert!(text.contains("source: none: it was edited since"), "{text}");
    }
}

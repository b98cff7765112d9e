//! Where an accepted source comes from, as a comment at its top. Knows the text; does not know files.

use crate::report::duration::duration;
use kforge_foundation::base::Digest;
use kforge_types::model::Language;
use kforge_types::record::answer::Answer;

/// The origin of a source that an agent or a template wrote.
#[derive(Debug, Clone, Default)]
pub struct Provenance {
    /// What it is written in.
    pub language: Language,
    /// The kernel, the target and the types for which it was written.
    pub of: (String, String, String),
    /// The agent's answer with its question; none if a template wrote it.
    pub answer: Option<Answer>,
    /// The template that wrote it, if any.
    pub template: Option<String>,
    /// The champions among its variants.
    pub champions: Vec<Champion>,
}

/// A champion of an accepted source.
#[derive(Debug, Clone, Default)]
pub struct Champion {
    /// The target.
    pub target: String,
    /// The class of shapes.
    pub class: String,
    /// The variant.
    pub variant: String,
    /// The number of shapes at which it is verified.
    pub shapes: usize,
    /// The devices on which it is verified.
    pub on: Vec<String>,
    /// Its longest median time in nanoseconds, with the shape.
    pub time: Option<(String, f64)>,
}

impl Provenance {
    /// The comment: lines that begin as comments of the language do.
    pub fn comment(&self) -> String {
        let (kernel, target, types) = &self.of;
        let types = if types.is_empty() { String::new() } else { format!(" with {types}") };
        let mut lines =
            vec![format!("Kernel `{kernel}` for `{target}`{types}, accepted by kforge {}.", env!("CARGO_PKG_VERSION"))];
        if let Some(template) = &self.template {
            lines.push(format!("Made by the template `{template}`."));
        }
        if let Some(answer) = &self.answer {
            let asked = &answer.question;
            let repair = if asked.attempt > 0 { format!(", repair {}", asked.attempt) } else { String::new() };
            lines.push(format!("Written by {} in round {}{repair}, {}.", asked.agent, asked.round, answer.answered_at));
            if !asked.methods.is_empty() {
                lines.push(format!("Methods: {}.", asked.methods.join(", ")));
            }
            // An answer was read from JSON, so it always serializes.
            let bytes = serde_json::to_vec(answer).unwrap_or_default();
            lines.push(format!("Answer {}, contract {}.", Digest::of(&bytes), asked.contract));
        }
        for champion in &self.champions {
            let Champion { target, class, variant, shapes, on, time } = champion;
            let class = if class == "all" { String::new() } else { format!(" for {class}") };
            let variant = if variant.is_empty() { "the only variant" } else { variant };
            let time = match time {
                Some((shape, ns)) => format!("; {} at `{shape}`", duration(*ns)),
                None => "; not timed".into(),
            };
            let noun = if *shapes == 1 { "shape" } else { "shapes" };
            lines.push(format!(
                "Champion on `{target}`{class}: {variant}, verified at {shapes} {noun} on {}{time}.",
                on.join("; ")
            ));
        }
        let begin = self.language.comment();
        lines.iter().map(|line| format!("{begin} {}\n", plain(line))).collect()
    }
}

/// Text that neither ends a comment nor continues one: without line breaks, control characters and backslashes.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '\\' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::answer::{ANSWER_FORMAT, Question};

    #[test]
    fn a_comment_says_whose_source_it_is_and_no_text_breaks_out_of_it() {
        let question = Question {
            contract: Digest::of(b"contract"),
            parent: None,
            methods: vec!["memory.x".into(), "compute.y".into()],
            round: 2,
            attempt: 1,
            agent: "command ./a \\\nint x;".into(),
        };
        let answer = Answer {
            format: ANSWER_FORMAT,
            question,
            answered_at: "2026-01-01T00:00:00Z".into(),
            advice: None,
            proposal: None,
            refused: None,
            exchanges: vec![],
        };
        let champion = Champion {
            target: "h".into(),
            class: "all".into(),
            variant: "V=4".into(),
            shapes: 2,
            on: vec!["Virtual H, sm_90".into()],
            time: Some(("big".into(), 1234.0)),
        };
        let of = ("k".to_string(), "h".to_string(), "T=f16".to_string());
        let about = Provenance { of, answer: Some(answer), champions: vec![champion], ..Provenance::default() };
        let text = about.comment();
        let python = Provenance { language: Language::Triton, ..about }.comment();
        assert_eq!(python, text.replace("// ", "# "));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.starts_with("// ") && !line.contains('\\')), "{text}");
        assert!(lines[0].starts_with("// Kernel `k` for `h` with T=f16, accepted by kforge "), "{text}");
        assert_eq!(lines[1], "// Written by command ./a   int x; in round 2, repair 1, 2026-01-01T00:00:00Z.");
        assert_eq!(lines[2], "// Methods: memory.x, compute.y.");
        assert!(lines[3].starts_with("// Answer blake3:") && lines[3].contains(", contract blake3:"), "{text}");
        assert_eq!(lines[4], "// Champion on `h`: V=4, verified at 2 shapes on Virtual H, sm_90; 1.23 us at `big`.");
    }
}

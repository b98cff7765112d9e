//! Converts positions in messages to files and lines. A verification's observation names positions in the binary and not lines, so that a comment that moves
//! lines changes no result. Lines are looked up for display, in the line table of the compile step that made the binary.

use std::collections::HashMap;

use kforge_emulator::lines::{Lines, PENDING, has_marks};
use kforge_engine::journal::Journal;
use kforge_engine::{Blobs, Graph, Node, Source};
use kforge_types::record::event::{Event, StepFinished};
use kforge_types::record::{Outcome, StepKind, Verdict};

/// Looks up positions.
pub(crate) struct Places<'a> {
    /// The compile step of the binary, by the id of a verify, calls or judge step.
    compiled: HashMap<String, String>,
    journal: &'a Journal,
    blobs: &'a dyn Blobs,
}

impl<'a> Places<'a> {
    /// The positions of a graph's steps.
    pub(crate) fn new(graph: &Graph, journal: &'a Journal, blobs: &'a dyn Blobs) -> Self {
        Places::of_steps(&graph.nodes().collect::<Vec<_>>(), journal, blobs)
    }

    /// The positions of these steps.
    pub(crate) fn of_steps(nodes: &[&Node], journal: &'a Journal, blobs: &'a dyn Blobs) -> Self {
        let mut compiled = HashMap::new();
        let from = |node: &Node, input: &str| match node.inputs.get(input).map(|i| &i.source) {
            Some(Source::Output { node, .. }) => Some(node.clone()),
            _ => None,
        };
        for node in nodes {
            if let (StepKind::Verify | StepKind::Calls, Some(compile)) = (node.kind, from(node, "binary")) {
                compiled.insert(node.id.clone(), compile);
            }
        }
        // Pairs of calls have two binaries, and one output for each.
        let mut of_output = HashMap::new();
        for node in nodes {
            let sides: &[(&str, &str)] = match node.kind {
                StepKind::Pairs => &[("binary:a", "called-a"), ("binary:b", "called-b")],
                StepKind::Baseline => &[("binary", "called"), ("binary", "launched")],
                _ => &[],
            };
            for (input, output) in sides {
                of_output.extend(from(node, input).map(|compile| ((node.id.as_str(), *output), compile)));
            }
        }
        for node in nodes.iter().filter(|n| n.kind == StepKind::Judge) {
            let read = ["observation", "called"].iter().find_map(|input| match &node.inputs.get(*input)?.source {
                Source::Output { node, name, .. } => Some((node, name)),
                _ => None,
            });
            let of = |(id, name): (&String, &String)| {
                compiled.get(id).or_else(|| of_output.get(&(id.as_str(), name.as_str()))).cloned()
            };
            if let Some(compile) = read.and_then(of) {
                compiled.insert(node.id.clone(), compile);
            }
        }
        Places { compiled, journal, blobs }
    }

    /// A step's text, with positions as files and lines.
    pub(crate) fn text(&self, id: &str, text: &str) -> String {
        if !has_marks(text) {
            return text.to_string();
        }
        Lines::parse(&self.table(id)).resolve_text(text)
    }

    /// A place of a step's finding, as file and line.
    pub(crate) fn place(&self, id: &str, place: &(String, u32)) -> Option<(String, u32)> {
        if place.0 != PENDING {
            return Some(place.clone());
        }
        Lines::parse(&self.table(id)).resolve_place(place.clone())
    }

    /// The first place in a step's text, as file and line.
    pub(crate) fn first_place(&self, id: &str, text: &str) -> Option<(String, u32)> {
        if has_marks(text) { Lines::parse(&self.table(id)).first_mark(text) } else { None }
    }

    /// The line table of the binary that a step is about; empty if there is none.
    fn table(&self, id: &str) -> Vec<u8> {
        let row = self.compiled.get(id).and_then(|compile| self.journal.last(compile));
        let digest = row.and_then(|r| r.result).and_then(|r| r.outputs.get("lines").copied());
        digest.and_then(|d| self.blobs.get(&d).ok().flatten()).unwrap_or_default()
    }

    /// An event, with positions as files and lines.
    pub(crate) fn event(&self, event: Event) -> Event {
        match event {
            Event::StepFinished(step) => Event::StepFinished(Box::new(self.step(*step))),
            other => other,
        }
    }

    fn step(&self, mut step: StepFinished) -> StepFinished {
        step.verdict = step.verdict.map(|v| self.verdict(&step.id, v));
        if let Outcome::Failed(why) = &mut step.outcome {
            *why = self.text(&step.id, why);
        }
        for note in &mut step.notes {
            note.message = self.text(&step.id, &note.message);
        }
        step
    }

    /// A verdict, with positions as files and lines.
    pub(crate) fn verdict(&self, id: &str, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Fail(why) => Verdict::Fail(self.text(id, &why)),
            Verdict::Unknown(kforge_types::record::Unknown::NotEmulated(what)) => {
                Verdict::Unknown(kforge_types::record::Unknown::NotEmulated(self.text(id, &what)))
            }
            Verdict::Unknown(kforge_types::record::Unknown::Missing(what)) => {
                Verdict::Unknown(kforge_types::record::Unknown::Missing(self.text(id, &what)))
            }
            other => other,
        }
    }
}

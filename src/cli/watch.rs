//! A build in progress: status lines, the progress bar, failures, and events as JSON lines.

use std::collections::BTreeMap;

use super::console::Console;
use super::events::Listener;
use super::failures::{self, Teller};
use kforge_engine::Graph;
use kforge_ops::event::{Purpose, Steps, Watch};
use kforge_types::record::event::{Event, StepFinished};
use kforge_types::record::{FORMAT_VERSION, Outcome, StepKind};

/// Watches a build.
pub(super) struct Watching<'b> {
    console: &'b Console,
    teller: Teller<'b>,
    log: &'b dyn Fn(&str) -> String,
    total: u64,
    ended: u64,
    running: BTreeMap<String, StepKind>,
    /// How many steps of each kind and kernel have started.
    said: BTreeMap<(StepKind, String), u32>,
}

/// Watches the build of a single requested step: the steps that it needs are reported only if they fail.
struct Needed<'b>(Teller<'b>);

impl<'b> Watching<'b> {
    /// The watcher of a build, chosen by its purpose.
    pub(super) fn begin(listener: &'b Listener, build: Steps<'b>, graph: &Graph) -> Box<dyn Watch + 'b> {
        let console = &*listener.console;
        let teller = Teller::new(console, &listener.global, build.packages.all());
        match build.purpose {
            Purpose::Step => return Box::new(Needed(teller)),
            Purpose::Build | Purpose::Round => console.event(&Event::BuildStarted {
                format_version: FORMAT_VERSION,
                kforge: env!("CARGO_PKG_VERSION").into(),
                run: listener.run.clone(),
            }),
            Purpose::Side => {}
        }
        let steps = graph.nodes().map(|node| (node.kind, &node.labels));
        Box::new(Watching {
            console,
            teller: teller.going_on(build.purpose == Purpose::Round).awaiting(steps),
            log: build.log,
            total: graph.len() as u64,
            ended: 0,
            running: BTreeMap::new(),
            said: BTreeMap::new(),
        })
    }

    fn started(&mut self, id: &str, kind: StepKind) {
        self.running.insert(id.to_string(), kind);
        let what = headline(id);
        // One line per kind and kernel, not per step; with -v, one per step.
        let count = self.said.entry((kind, what.clone())).or_default();
        *count += 1;
        if self.console.verbose() {
            self.console.status(kind.verb(), id);
        } else if *count == 1 && kind.lane().is_some() {
            self.console.status(kind.verb(), &what);
        }
    }

    fn finished(&mut self, step: &StepFinished) {
        self.running.remove(&step.id);
        self.ended += 1;
        self.total = self.total.max(self.ended);
        self.teller.tell(step);
        if self.console.everything() && step.kind == StepKind::Compile {
            self.console.err(&unsaid(&(self.log)(&step.id), step));
        }
    }
}

impl Watch for Watching<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::StepStarted { id, kind } => self.started(id, *kind),
            Event::StepFinished(step) => self.finished(step),
            _ => {}
        }
        let first = self.running.iter().next();
        let first = first.map(|(id, kind)| format!("{} {id}", kind.verb().to_lowercase())).unwrap_or_default();
        let more = if self.running.len() > 1 { format!(" and {} more", self.running.len() - 1) } else { String::new() };
        self.console.progress("Building", self.ended, self.total, &format!("{first}{more}"));
        self.console.event(event);
    }

    fn ended(&mut self) {
        self.console.finish();
        self.teller.rest();
    }
}

impl Watch for Needed<'_> {
    fn event(&mut self, event: &Event) {
        if let Event::StepFinished(step) = event
            && matches!(step.outcome, Outcome::Failed(_))
        {
            self.0.tell(step);
        }
    }
}

/// The lines of a log that no note of the step contains.
fn unsaid(log: &str, step: &StepFinished) -> String {
    let said = |line: &str| step.notes.iter().any(|n| n.message.lines().any(|l| l.trim() == line.trim()));
    failures::indented(
        &log.lines().filter(|line| !line.trim().is_empty() && !said(line)).collect::<Vec<_>>().join("\n"),
    )
}

/// The name in a status line: package and kernel or operator.
fn headline(id: &str) -> String {
    id.split('/').take(2).collect::<Vec<_>>().join("/")
}

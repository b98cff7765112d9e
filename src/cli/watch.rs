//! A build in progress: status lines, the progress bar, failures, and events as JSON lines.

use std::collections::BTreeMap;

use super::bar::Running;
use super::console::Console;
use super::events::Listener;
use super::failures::{self, Teller};
use kforge_engine::Graph;
use kforge_engine::gauge::Gauge;
use kforge_ops::event::{Purpose, Steps, Watch};
use kforge_types::record::event::{Event, StepFinished};
use kforge_types::record::{FORMAT_VERSION, Outcome, StepKind};

/// Watches a build.
pub(super) struct Watching<'b> {
    console: &'b Console,
    teller: Teller<'b>,
    log: &'b dyn Fn(&str) -> String,
    gauge: &'b Gauge,
    steps: Progress,
    /// How many steps of each kind and kernel have started.
    said: BTreeMap<(StepKind, String), u32>,
}

/// How far a build is: the steps in all, those that have ended, and those that run.
#[derive(Default)]
struct Progress {
    total: u64,
    ended: u64,
    running: BTreeMap<String, StepKind>,
}

impl Progress {
    fn event(&mut self, event: &Event) {
        match event {
            Event::BuildStarted { planned, .. } => self.total = *planned,
            Event::StepStarted { id, kind } => drop(self.running.insert(id.clone(), *kind)),
            Event::StepFinished(step) => {
                self.running.remove(&step.id);
                self.ended += 1;
                self.total = self.total.max(self.ended);
            }
            _ => {}
        }
    }

    /// Shows it in the progress bar.
    fn show(&self, console: &Console) {
        let first = self.running.iter().next();
        let after =
            if self.running.len() > 1 { format!(" and {} more", self.running.len() - 1) } else { String::new() };
        let running = first.map(|(id, kind)| Running {
            before: format!("{} ", kind.verb().to_lowercase()),
            name: id.clone(),
            after,
        });
        console.progress("Building", self.ended, self.total, running.unwrap_or_default());
    }
}

/// Watches a build in another process, which prints nothing on this console: only the progress bar shows it.
struct Elsewhere<'b> {
    console: &'b Console,
    steps: Progress,
}

/// The watcher of a build in another process.
pub(super) fn elsewhere(console: &Console) -> Box<dyn Watch + '_> {
    Box::new(Elsewhere { console, steps: Progress::default() })
}

impl Watch for Elsewhere<'_> {
    fn event(&mut self, event: &Event) {
        self.steps.event(event);
        // Diagnostics come before the plan is known.
        if self.steps.total > 0 {
            self.steps.show(self.console);
        }
    }

    fn ended(&mut self) {
        self.console.finish();
    }
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
                planned: graph.len() as u64,
            }),
            Purpose::Side => {}
        }
        let steps = graph.nodes().map(|node| (node.kind, &node.labels));
        let params = graph.nodes().map(|node| (&node.labels, &node.params));
        Box::new(Watching {
            console,
            teller: teller.going_on(build.purpose == Purpose::Round).awaiting(steps).naming(params),
            log: build.log,
            gauge: build.gauge,
            steps: Progress { total: graph.len() as u64, ..Progress::default() },
            said: BTreeMap::new(),
        })
    }

    fn started(&mut self, id: &str, kind: StepKind) {
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
        self.teller.tell(step);
        if self.console.everything() && step.kind == StepKind::Compile {
            self.console.err(&unsaid(&(self.log)(&step.id), step));
        }
    }
}

impl Watch for Watching<'_> {
    fn event(&mut self, event: &Event) {
        self.steps.event(event);
        match event {
            Event::StepStarted { id, kind } => self.started(id, *kind),
            Event::StepFinished(step) => self.finished(step),
            _ => {}
        }
        // Fresh steps that have nothing to say send no events, and are counted nevertheless.
        self.steps.ended = self.gauge.ended();
        self.steps.total = self.gauge.total();
        self.steps.show(self.console);
        self.console.left(self.gauge.left());
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

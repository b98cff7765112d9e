//! Events of operations as text.

use std::sync::Arc;

use super::agent_progress::Asking;
use super::args::Global;
use super::console::Console;
use super::rounds;
use super::watch::{self, Watching};
use super::words::listed;
use kforge_engine::Graph;
use kforge_foundation::base::count;
use kforge_ops::event::{Blocked, Event, Observer, Resolving, Steps, Warning, Watch};
use kforge_ops::evidence::Imported;
use kforge_ops::optimize::event::{AskWatch, AttemptRequest};
use kforge_project::workspace::lockfile::happens;

/// The most steps that a warning lists.
const LISTED: usize = 10;

/// Receives events from operations and prints them on the console.
pub(super) struct Listener {
    /// The printer.
    pub(super) console: Arc<Console>,
    /// The global options, which printed commands repeat.
    pub(super) global: Global,
    /// The id of the build in logs.
    pub(super) run: String,
}

impl Observer for Listener {
    fn event(&self, event: &Event<'_>) {
        let console = &self.console;
        match event {
            Event::Diagnostic(diagnostic) => console.diagnostic(diagnostic),
            Event::Warning(warning) => {
                console.warn(&warning.to_string());
                if let Warning::NotBrought { steps } = warning {
                    listed(steps, LISTED).iter().for_each(|line| console.err(&format!("  {line}\n")));
                }
            }
            Event::Blocked(by) => console.status("Blocking", &format!("waiting for {}", waited_for(*by))),
            Event::Resolving(Resolving::Cuda(release)) => console.status("Resolving", &format!("CUDA {release}")),
            Event::Resolving(Resolving::Triton(release)) => console.status("Resolving", &format!("Triton {release}")),
            Event::Resolving(Resolving::Torch(release)) => console.status("Resolving", &format!("PyTorch {release}")),
            Event::Resolving(Resolving::Requirement(requirement)) => console.status("Resolving", requirement),
            Event::Downloading(names) => console.status("Downloading", &names.join(", ")),
            Event::Downloaded { bytes, total } => console.downloaded(*bytes, *total),
            Event::Installing(name) => console.status("Installing", name),
            Event::LockfileWritten => console.status("Locking", "kforge.lock"),
            Event::LockfileChange { change, planned: true } => console.err(&format!("  {change}\n")),
            Event::LockfileChange { change, planned: false } => console.err(&format!("  {}\n", happens(change))),
            Event::FileKept(path) => console.status("Keeping", &format!("{}, which already exists", path.display())),
            Event::Affected(affected) => {
                let names: Vec<String> =
                    affected.names().iter().map(|(package, kernel)| format!("{package}/{kernel}")).collect();
                let names =
                    if names.is_empty() { String::new() } else { format!(": {}", listed(&names, LISTED).join(", ")) };
                console.status("Affected", &format!("{}{names}", affected.summary()));
            }
            Event::Building(state) => console.status("Building", state),
            Event::Comparing(champions) => console.status("Comparing", &count(*champions as u64, "champion")),
            Event::Disassembling(variants) => {
                console.status("Disassembling", &count(*variants as u64, "variant"));
            }
            Event::Round(event) => rounds::say(console, event),
            Event::Publishing(place) => console.status("Publishing", &format!("to `{place}`")),
            Event::Fetching(place) => console.status("Fetching", &format!("`{place}`")),
            Event::Imported(imported) => console.status("Imported", &taken(imported)),
        }
    }

    fn watch<'b>(&'b self, build: Steps<'b>, graph: &Graph) -> Box<dyn Watch + 'b> {
        Watching::begin(self, build, graph)
    }

    fn watch_elsewhere(&self) -> Box<dyn Watch + '_> {
        watch::elsewhere(&self.console)
    }

    fn asking<'b>(&'b self, attempts: &'b [AttemptRequest]) -> Box<dyn AskWatch + 'b> {
        Box::new(Asking::new(&self.console, attempts))
    }
}

fn waited_for(by: Blocked) -> &'static str {
    match by {
        Blocked::Workspace => "another kforge to finish with this workspace",
        Blocked::Cache => "the shared cache to be collected",
        Blocked::Toolchain => "another kforge to install the same toolchain",
        Blocked::Folder => "another kforge to finish with this folder",
    }
}

/// What a bundle added, in one line.
fn taken(imported: &Imported) -> String {
    let Imported { path, added, held, devices, signer } = imported;
    let signer = signer.as_ref().map_or_else(|| "only claimed".to_string(), |signer| format!("signed by {signer}"));
    let held = if *held > 0 { format!(", {held} held already") } else { String::new() };
    format!("{} of {} from `{}`, {signer}{held}", count(*added, "record"), devices.join(", "), path.display())
}

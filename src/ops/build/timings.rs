//! The page that shows where a build spent its time.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use crate::Error;
use crate::session::Opened;
use crate::session::build::Ready;
use kforge_engine::BuildOutcome;
use kforge_foundation::base::files::write_atomically;
use kforge_pipeline::report::timings::{BuildTimings, page};
use kforge_types::record::event::StepFinished;

/// Writes the page twice, under its time and as the last one, and returns its path.
pub(super) fn write(
    opened: &Opened,
    ready: &Ready<'_>,
    outcome: &BuildOutcome,
    steps: Vec<StepFinished>,
    wall: Duration,
) -> Result<PathBuf, Error> {
    let graph = &outcome.graph;
    let ids = |indices: &mut dyn Iterator<Item = u32>| indices.map(|i| graph.node(i).id.clone()).collect();
    let needs: HashMap<String, Vec<String>> =
        (0u32..).zip(graph.nodes()).map(|(i, node)| (node.id.clone(), ids(&mut graph.dependencies(i)))).collect();
    let now = jiff::Timestamp::now();
    let packages: BTreeSet<&str> = graph.nodes().map(|n| n.labels.package.as_str()).collect();
    let build = BuildTimings {
        title: packages.into_iter().collect::<Vec<_>>().join(", "),
        subtitle: format!("{}, kforge {}", now.strftime("%Y-%m-%d %H:%M:%S UTC"), env!("CARGO_PKG_VERSION")),
        wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
        counts: outcome.counts,
        jobs: ready.options.capacity.cpus,
        steps,
        needs,
    };
    let html = page(&build).map_err(|why| Error::Timings { why })?;
    let folder = opened.target.join("timings");
    let path = folder.join(format!("build-{}.html", now.strftime("%Y%m%dT%H%M%SZ")));
    for place in [&path, &folder.join("last.html")] {
        write_atomically(place, html.as_bytes(), false).map_err(Error::write(place))?;
    }
    Ok(path)
}

//! Exports the variants of kernels in the T4 format of the autotuning community: one document for each kernel, target and shape. Runs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::traces::known::{Which, found};
use crate::session::places::Places;
use crate::{Error, Session};
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::t4::{Subject, TuningResult, TuningResults};
use kforge_project::workspace::select::SelectionArgs;

/// The request for results in the T4 format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct T4Request {
    /// The selection.
    pub words: SelectionArgs,
    /// The folder for the documents, relative to the session's folder.
    pub output: PathBuf,
}

/// What was exported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportedT4 {
    /// The documents.
    pub files: Vec<PathBuf>,
    /// How many variants at a shape they hold.
    pub results: u64,
    /// What is in no document: the reason, and the kernels with their targets and shapes.
    pub left_out: BTreeMap<String, BTreeSet<String>>,
}

/// No variant of the selection has a result that the format can state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are no results of tuning: nothing is known of the selection on a device")]
pub struct NoResults;

/// Exports what is known of the variants of the selection.
///
/// # Errors
/// [`NoResults`], the plan cannot be made, or a file cannot be written.
pub fn t4(session: &Session, request: &T4Request) -> Result<ExportedT4, Error> {
    let looking = session.look(&request.words, Goal::Build)?;
    let mut done = ExportedT4::default();
    let mut documents: BTreeMap<Subject, TuningResults> = BTreeMap::new();
    looking.plan_of(session, |opened, packages, ready| {
        let known = ready.with_services(session, opened, |services| {
            kforge_engine::known(ready.graph.clone(), &ready.options, services)
        });
        let nodes: Vec<_> = known.steps.iter().map(|(node, _)| node).collect();
        let places = Places::of_steps(&nodes, &ready.journal, &*ready.leaves);
        let report = super::assembled(ready, &known, &places);
        let last = crate::build::report::last(session, &opened.workspace).ok();
        for member in packages.all().filter_map(|package| packages.member(&package.name)) {
            for found in found(Which::All, member, (&report, last.as_ref()), ready, &known.steps, &places) {
                let Some([kernel, target, variant]) = found.variant.clone() else { continue };
                let evaluation = match found.evaluation(true) {
                    Ok(evaluation) => evaluation,
                    Err(why) => {
                        done.left_out.entry(why.to_string()).or_default().insert(found.place());
                        continue;
                    }
                };
                let (samples, time) = found.times();
                let result = TuningResult::new(&variant, evaluation.status, &evaluation.timestamp, samples, time);
                let package = member.package.name.clone();
                let subject = Subject { package, kernel, target, shape: found.shape.clone() };
                let document = documents.entry(subject).or_insert_with_key(|of| TuningResults::new(of.clone()));
                document.results.push(result);
            }
        }
        Ok::<_, Error>(())
    })?;
    if documents.is_empty() {
        return Err(NoResults.into());
    }
    let folder = session.cwd.join(&request.output);
    std::fs::create_dir_all(&folder).map_err(Error::write(&folder))?;
    for (Subject { package, kernel, target, shape }, document) in &documents {
        let path = folder.join(format!("{package}.{kernel}.{target}.{shape}.json"));
        let text = serde_json::to_string_pretty(document)? + "\n";
        write_if_changed(&path, text.as_bytes()).map_err(Error::write(&path))?;
        done.results += document.results.len() as u64;
        done.files.push(path);
    }
    Ok(done)
}

//! Finds what has changed since the last build: plans as that build did, runs nothing, and sees which steps a build would repeat. So an edit counts only if it
//! changes the key of a step, and every such edit counts: of a source, a header, a tolerance, a toolchain.

use std::collections::HashMap;

use crate::event::Warning;
use crate::session::request::LastRequest;
use crate::{Error, Session};
use kforge_engine::{DryRun, Node, Source};
use kforge_pipeline::plan::Goal;
use kforge_pipeline::report::Report;
use kforge_pipeline::report::arguments::Arguments;
use kforge_pipeline::report::field_words::words_of;
use kforge_types::record::StepKind;
use kforge_types::record::event::{Labels, Why};

/// A step that a build would run, and the reason in words.
struct Change {
    labels: Labels,
    kind: StepKind,
    /// Whether no build has run the step yet.
    is_new: bool,
    why: String,
}

/// Marks the kernels and targets whose results a build would have to find again.
pub(super) fn mark(session: &Session, report: &mut Report) {
    // A report of an earlier kforge does not say what was selected.
    let Some(built) = &report.built else { return };
    // What a build did not get to is new, and that is no change.
    let whole = !report.has_failed() && !built.interrupted;
    // The build said what there is to say about bundles and manifests.
    match changes(&session.unheard(), &LastRequest::of_report(&built.selected), (whole, &built.failed_keys)) {
        Ok(changes) => changes.iter().for_each(|change| apply(report, change)),
        Err(error) => session.reporter.warn(Warning::NotCompared { why: error.to_string() }),
    }
}

fn apply(report: &mut Report, change: &Change) {
    let Labels { package, kernel, operator, target, .. } = &change.labels;
    // A step of the device only, such as its peaks, is about no kernel.
    if kernel.is_none() && operator.is_none() {
        return;
    }
    for found in report.packages.iter_mut().filter(|p| p.name == *package).flat_map(|p| &mut p.kernels) {
        let mine = kernel.as_ref().map_or(Some(&found.operator) == operator.as_ref(), |name| *name == found.name);
        for one in found.targets.iter_mut().filter(|t| mine && target.as_ref().is_none_or(|name| *name == t.target)) {
            // What the build could not run, for lack of a tool or a device, is still new, and the report says so already.
            if change.is_new && one.unavailable.iter().any(|(kind, ..)| kind == change.kind.name()) {
                continue;
            }
            one.stale.get_or_insert_with(|| change.why.clone());
        }
    }
}

/// The steps that a build with that request would run because something has changed, in the order in which it would reach them. Of the last build: whether it was
/// whole, and the keys of the steps that failed. A failure is not stored, so the workspace remembers such a step with what it was before; with the same key, nothing
/// has changed since. Nor has it then for steps beside it, at other shapes and of other variants, which that build may not have started.
fn changes(
    session: &Session,
    last: &LastRequest,
    (whole, failed_keys): (bool, &[String]),
) -> Result<Vec<Change>, Error> {
    session.look_with(&last.words(), Goal::Build, last.overlay())?.plan_of(session, |opened, packages, ready| {
        let (graph, dry) = ready.with_services(session, opened, |services| {
            let graph = kforge_engine::expanded(ready.graph.clone(), &ready.options, services);
            let dry = kforge_engine::dry_run(graph.clone(), &ready.options, services);
            (graph, dry)
        });
        let nodes: HashMap<&str, _> = graph.nodes().map(|node| (node.id.as_str(), node)).collect();
        let DryRun { will, keys, .. } = dry;
        let is_failed = |id: &str| keys.get(id).is_some_and(|key| failed_keys.contains(&key.to_string()));
        let failed = will.iter().filter(|(id, _)| is_failed(id)).filter_map(|(id, _)| nodes.get(id.as_str()));
        let failed: Vec<_> = failed.map(|node| beside(node)).collect();
        let change = |(id, why): &(String, Why)| {
            let node = nodes.get(id.as_str()).filter(|node| !node.advisory || node.labels.round.is_none())?;
            if failed.contains(&beside(node)) {
                return None;
            }
            // A build that ended at a failure has results of steps whose successors still hold earlier ones. That is no edit, and an edit shows at its first step.
            let input = why.field.as_deref().and_then(|field| node.inputs.get(field.strip_prefix("inputs.")?));
            if !whole && input.is_some_and(|input| matches!(input.source, Source::Output { .. })) {
                return None;
            }
            let kernel = packages.kernel(&node.labels);
            let arguments = kernel.map(|kernel| Arguments::of_step(kernel, &node.params)).unwrap_or_default();
            let told = told(id, node.kind, why, &arguments, whole)?;
            Some(Change { labels: node.labels.clone(), kind: node.kind, is_new: why.code == "new", why: told })
        };
        Ok(will.iter().filter_map(change).collect())
    })
}

/// What steps beside each other share: they differ in shapes, trials and variants.
fn beside(node: &Node) -> (StepKind, &str, [Option<&str>; 3]) {
    let Labels { package, operator, kernel, target, .. } = &node.labels;
    (node.kind, package, [operator, kernel, target].map(Option::as_deref))
}

/// A reason in words; none if it is no change: a result that was never stored, or that was collected, says nothing against the report.
fn told(id: &str, kind: StepKind, why: &Why, arguments: &Arguments, whole: bool) -> Option<String> {
    let Why { code, field, before, after } = why;
    match (code.as_str(), field.as_deref()) {
        ("changed", Some("implementation")) => Some(format!("this kforge executes {kind} steps differently")),
        ("changed", Some(field)) => Some(match field.strip_prefix("inputs.file:") {
            Some(file) => match (before, after) {
                (None, _) => format!("`{file}` was added since this was built"),
                (_, None) => format!("`{file}` was removed since this was built"),
                _ => format!("`{file}` was edited since this was built"),
            },
            None => match words_of(field, arguments) {
                Some(words) => format!("the {words} changed since this was built"),
                None => format!("`{field}` of `{id}` has changed since this was built"),
            },
        }),
        ("new", _) if whole => Some(format!("`{id}` was added since this was built")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_pipeline::report::document::{KernelReport, PackageReport, TargetReport};

    fn why(code: &str, field: Option<&str>, before: Option<&str>, after: Option<&str>) -> Why {
        let text = |part: Option<&str>| part.map(String::from);
        Why { code: code.into(), field: text(field), before: text(before), after: text(after) }
    }

    #[test]
    fn what_was_unavailable_is_not_called_stale() {
        let target = TargetReport {
            target: "h200".into(),
            unavailable: vec![("inspect".into(), 3, "not installed".into())],
            ..TargetReport::default()
        };
        let kernel = KernelReport { name: "k".into(), operator: "o".into(), targets: vec![target] };
        let package = PackageReport { name: "p".into(), kernels: vec![kernel], ..PackageReport::default() };
        let report = Report { packages: vec![package], ..Report::default() };
        let stale = |kind: StepKind, is_new: bool, kernel: Option<&str>| {
            let name = |text: &str| Some(text.to_string());
            let labels = Labels {
                package: "p".into(),
                kernel: kernel.map(String::from),
                operator: name("o"),
                target: kernel.and(name("h200")),
                ..Labels::default()
            };
            let mut report = report.clone();
            apply(&mut report, &Change { labels, kind, is_new, why: "changed".into() });
            report.packages[0].kernels[0].targets[0].stale.is_some()
        };
        assert!(!stale(StepKind::Inspect, true, Some("k")), "it is still not installed");
        assert!(stale(StepKind::Inspect, false, Some("k")) && stale(StepKind::Compile, true, Some("k")));
        assert!(!stale(StepKind::Compile, false, Some("other")));
        assert!(stale(StepKind::Oracle, false, None), "a step of the operator is about each of its kernels");
    }

    #[test]
    fn only_changes_are_told_and_files_by_their_names() {
        let of = |why: Why, whole| told("p/k/generate", StepKind::Generate, &why, &Arguments::default(), whole);
        let file = Some("inputs.file:k.cu");
        assert_eq!(
            of(why("changed", file, Some("a"), Some("b")), true).as_deref(),
            Some("`k.cu` was edited since this was built")
        );
        assert!(of(why("changed", file, None, Some("b")), true).unwrap().contains("was added"));
        assert!(of(why("changed", file, Some("a"), None), true).unwrap().contains("was removed"));
        assert!(
            of(why("changed", Some("params.std"), Some("a"), Some("b")), true)
                .unwrap()
                .contains("the C++ standard changed")
        );
        assert!(of(why("changed", Some("implementation"), None, None), true).unwrap().contains("executes generate"));
        for lost in ["forgotten", "not-cached", "remeasure"] {
            assert_eq!(of(why(lost, None, None, None), true), None);
        }
        assert!(of(why("new", None, None, None), true).is_some());
        assert_eq!(of(why("new", None, None, None), false), None);
    }
}

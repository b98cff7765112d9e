//! How the champions of a workspace use a method: which have it, what it is worth to them, and which do not use it. Knows the plan and its known results; runs
//! nothing.

use crate::session::build::{Packages, Ready};
use kforge_engine::{Blobs, ReadyResult};
use kforge_pipeline::plan::variants::PlannedVariant;
use kforge_pipeline::report::classes::stands_for;
use kforge_pipeline::report::method::{MethodUse, Used};
use kforge_types::model::{Arch, Kernel};
use kforge_types::record::StepKind;
use kforge_types::record::params::{Attribution, Selection};

/// The uses of a method by the kernels that declare it, on targets where machine code can show it.
pub(super) fn uses(packages: &Packages, ready: &Ready<'_>, known: &ReadyResult, method: &str) -> Vec<MethodUse> {
    let mut out = vec![];
    for (node, done) in known.steps.iter().filter(|(node, _)| node.kind == StepKind::Select) {
        let Some(selected) = ready.expander.selected(&node.id).filter(|s| s.stage.is_last) else { continue };
        let Some(member) = packages.member(&node.labels.package) else { continue };
        let Some(kernel) = member.package.kernel(&selected.kernel) else { continue };
        let emulated = member.package.targets.get(&selected.target).is_none_or(|target| target.arch == Arch::Cpu);
        let declares = |kernel: &Kernel| kernel.methods.iter().any(|m| m.id == method);
        let written = selected.builds.iter().filter_map(|b| b.written.as_ref());
        if emulated || !(declares(kernel) || written.into_iter().any(|w| declares(&w.kernel))) {
            continue;
        }
        let digest = done.as_ref().and_then(|d| d.result.as_ref()?.outputs.get("selection").copied());
        let bytes = digest.and_then(|digest| ready.leaves.get(&digest).ok().flatten());
        let selection = bytes.and_then(|bytes| serde_json::from_slice::<Selection>(&bytes).ok());
        let per = ready.expander.about(&selected).and_then(|about| about.per);
        let of = |class: &str, variant: Option<&PlannedVariant>, used: Used, steps: Vec<String>| MethodUse {
            package: node.labels.package.clone(),
            kernel: selected.kernel.clone(),
            target: selected.target.clone(),
            types: selected.choice.label.clone(),
            stands_for: stands_for(per.as_deref(), &selected.class_name(class)),
            champion: variant.map(|v| v.label.clone()),
            used,
            steps,
        };
        let Some(selection) = selection else {
            out.push(of("all", None, Used::Open, vec![]));
            continue;
        };
        for champion in &selection.champions {
            let build = selected.builds.iter().find(|b| Some(b.variant.order) == champion.variant);
            let Some(build) = build else {
                out.push(of(&champion.class, None, Used::Open, vec![]));
                continue;
            };
            let kernel = build.written.as_ref().map_or(kernel, |written| &written.kernel);
            let declared = kernel.methods.iter().find(|m| m.id == method);
            // A method that turning off changes nothing of is not used.
            let absent = declared.is_none_or(|m| kernel.leaves_out(&build.variant, m));
            let (used, steps) = match absent {
                true => (Used::No, vec![]),
                false => found(ready, known, node, build, method),
            };
            out.push(of(&champion.class, Some(build), used, steps));
        }
    }
    out
}

/// What a method is worth to a champion, and the steps that found it.
fn found(
    ready: &Ready<'_>,
    known: &ReadyResult,
    select: &kforge_engine::Node,
    build: &PlannedVariant,
    method: &str,
) -> (Used, Vec<String>) {
    let mine = |node: &kforge_engine::Node| {
        let (labels, of) = (&node.labels, &select.labels);
        labels.method.as_deref() == Some(method)
            && labels.variant.as_deref() == Some(&build.label)
            && (&labels.package, &labels.kernel, &labels.target) == (&of.package, &of.kernel, &of.target)
            && matches!(node.kind, StepKind::Match | StepKind::Attribute)
    };
    let steps: Vec<_> = known.steps.iter().filter(|(node, _)| mine(node)).collect();
    let attribution = steps.iter().filter(|(node, _)| node.kind == StepKind::Attribute).find_map(|(_, done)| {
        let digest = done.as_ref()?.result.as_ref()?.outputs.get("attribution").copied()?;
        serde_json::from_slice::<Attribution>(&ready.leaves.get(&digest).ok()??).ok()
    });
    let ids = steps.iter().map(|(node, _)| node.id.clone()).collect();
    (attribution.map_or(Used::Yes, |found| Used::Worth(Box::new(found))), ids)
}

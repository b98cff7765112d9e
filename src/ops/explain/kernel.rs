//! A kernel as `kforge explain KERNEL` shows it: who is champion and why, and its steps by kind. Knows the plan and its known results; runs nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::choice::choices;
use crate::session::build::names::pairs_read;
use crate::session::build::{Packages, Ready};
use crate::session::places::Places;
use kforge_engine::{Blobs, Done, Node, ReadyResult, Source};
use kforge_pipeline::plan::kernels::Selected;
use kforge_pipeline::report::Names;
use kforge_pipeline::report::assemble::Reader;
use kforge_pipeline::report::baselines::BaselineReport;
use kforge_pipeline::report::calls::CallsReport;
use kforge_pipeline::report::kernel::{KernelDocument, ReadsDocument, SeatDocument, WrongDocument};
use kforge_pipeline::report::leaders::{self, LeaderReport};
use kforge_pipeline::report::provenance::{self, ObservedReport};
use kforge_pipeline::report::versus::Pairs;
use kforge_types::model::bound::Reference;
use kforge_types::model::{Arch, CudaSpec, Language, ToolchainSpec, TorchSpec};
use kforge_types::record::event::Labels;
use kforge_types::record::params::Judgement;
use kforge_types::record::spec::Tree;
use kforge_types::record::{FORMAT_VERSION, StepKind, StepResult, Verdict};

/// What is known of a kernel of that name, for each package that has one with steps in the plan.
pub(super) fn kernels(packages: &Packages, ready: &Ready<'_>, known: &ReadyResult, name: &str) -> Vec<KernelDocument> {
    let mut out: Vec<KernelDocument> = vec![];
    for (node, _) in known.steps.iter().filter(|(node, _)| node.labels.kernel.as_deref() == Some(name)) {
        let labels = &node.labels;
        let at = out.iter().position(|k| k.package == labels.package).unwrap_or_else(|| {
            out.push(KernelDocument {
                format_version: FORMAT_VERSION,
                package: labels.package.clone(),
                kernel: name.into(),
                operator: labels.operator.clone().unwrap_or_default(),
                seats: vec![],
                steps: BTreeMap::new(),
                open: vec![],
                last_build: vec![],
            });
            out.len() - 1
        });
        let kernel = &mut out[at];
        *kernel.steps.entry(node.kind.name().into()).or_default() += 1;
        if known.open.contains(&node.id) {
            kernel.open.push(node.id.to_string());
        }
        if kernel.operator.is_empty() {
            kernel.operator = labels.operator.clone().unwrap_or_default();
        }
        kernel.seats.extend(seat(packages, ready, known, node));
    }
    out
}

/// The seat whose champion this step selects; none for another step.
fn seat(packages: &Packages, ready: &Ready<'_>, known: &ReadyResult, node: &Node) -> Option<SeatDocument> {
    let selected = ready.expander.selected(&node.id).filter(|s| node.kind == StepKind::Select && s.stage.is_last)?;
    let observed = provenance::observed(
        known
            .steps
            .iter()
            .filter(|(node, _)| is_its(node, &selected))
            .filter_map(|(_, done)| done.as_ref()?.evidence.as_ref()),
    );
    let choices = choices(ready, known, &node.id).unwrap_or_default();
    Some(SeatDocument {
        reads: reads(packages, ready, known, (node, &selected), &observed),
        target: selected.target.clone(),
        types: selected.choice.label.clone(),
        select: node.id.clone(),
        wrong: choices.is_empty().then(|| wrong(ready, known, &selected)).flatten(),
        choices,
        last_build: vec![],
        last_failures: vec![],
        not_built: None,
        baselines: baselines(ready, known, &selected),
        leaders: leaders(ready, known, node, &selected),
        calls: calls(ready, known, &selected),
        observed,
    })
}

/// The wrong variants of a selection without a result; none if no variant is known to be wrong.
fn wrong(ready: &Ready<'_>, known: &ReadyResult, selected: &Selected) -> Option<WrongDocument> {
    let judges = |node: &Node| node.kind == StepKind::Judge && node.labels.method.is_none() && is_its(node, selected);
    let judged: Vec<(&Node, &StepResult)> = (known.steps.iter().filter(|(node, _)| judges(node)))
        .filter_map(|(node, done)| Some((node, done.as_ref()?.result.as_ref()?)))
        .collect();
    let fails = |result: &StepResult| matches!(result.verdict, Some(Verdict::Fail(_)));
    let of = |label: &str| -> Vec<(&Node, &StepResult)> {
        judged.iter().filter(|(node, _)| node.labels.variant.as_deref() == Some(label)).copied().collect()
    };
    let variants: Vec<Vec<(&Node, &StepResult)>> = selected.builds.iter().map(|build| of(&build.label)).collect();
    let (first, result) = *variants.iter().flatten().find(|(_, result)| fails(result))?;
    let document = result.outputs.get("judgement").and_then(|digest| ready.leaves.get(digest).ok().flatten());
    let judgement = document.and_then(|bytes| serde_json::from_slice::<Judgement>(&bytes).ok());
    let nodes: Vec<&Node> = known.steps.iter().map(|(node, _)| node).collect();
    let verdict = Places::of_steps(&nodes, &ready.journal, &*ready.leaves).verdict(&first.id, result.verdict.clone()?);
    let Verdict::Fail(why) = verdict else { return None };
    Some(WrongDocument {
        variants: variants.len() as u64,
        wrong: variants.iter().filter(|judged| judged.iter().any(|(_, result)| fails(result))).count() as u64,
        untried: variants.iter().filter(|judged| judged.is_empty()).count() as u64,
        variant: first.labels.variant.clone()?,
        shape: first.labels.shape.clone()?,
        why,
        finding: judgement.and_then(|judgement| judgement.finding),
    })
}

/// What a selection follows from, by the inputs of its steps and by the manifest.
fn reads(
    packages: &Packages,
    ready: &Ready<'_>,
    known: &ReadyResult,
    (select, selected): (&Node, &Selected),
    observed: &[ObservedReport],
) -> ReadsDocument {
    let labels = &select.labels;
    let steps = || known.steps.iter().map(|(node, _)| node).filter(|node| node.labels.package == labels.package);
    let ids: HashMap<&str, &Node> = steps().map(|node| (node.id.as_str(), node)).collect();
    let mut sources = BTreeSet::new();
    for compile in steps().filter(|node| node.kind == StepKind::Compile && is_its(node, selected)) {
        let Some(Source::Output { node, .. }) = compile.inputs.get("tree:source").map(|input| &input.source) else {
            continue;
        };
        let inputs = ids.get(node.as_str()).into_iter().flat_map(|generate| generate.inputs.keys());
        sources.extend(inputs.filter_map(|name| name.strip_prefix("file:")).map(String::from));
    }
    let member = packages.member(&labels.package);
    let kernel = member.and_then(|member| member.package.kernel(&selected.kernel));
    let operator = member.zip(kernel).and_then(|(member, kernel)| member.package.operator(&kernel.operator));
    let target = member.and_then(|member| member.package.targets.get(&selected.target));
    let mut reference_files = BTreeSet::new();
    let oracles = steps().filter(|node| node.kind == StepKind::Oracle);
    for oracle in oracles.filter(|node| operator.is_some_and(|of| node.labels.operator.as_ref() == Some(&of.name))) {
        for tree in ["tree:reference", "tree:inputs"] {
            let Some(Source::Blob(digest)) = oracle.inputs.get(tree).map(|input| &input.source) else { continue };
            let bytes = ready.leaves.get(digest).ok().flatten();
            let tree = bytes.and_then(|bytes| serde_json::from_slice::<Tree>(&bytes).ok());
            reference_files.extend(tree.into_iter().flat_map(|tree| tree.files.into_keys()));
        }
    }
    let mut tables = vec![format!("kernel.{}", selected.kernel)];
    tables.extend(operator.map(|operator| format!("operator.{}", operator.name)));
    tables.push(format!("targets.{}", selected.target));
    let devices = match (target, observed) {
        (Some(target), []) if target.arch != Arch::Cpu => {
            vec![target.device.clone().unwrap_or_else(|| target.arch.to_string())]
        }
        (_, observed) => observed.iter().map(|of| of.device.clone()).collect::<BTreeSet<_>>().into_iter().collect(),
    };
    ReadsDocument {
        sources: sources.into_iter().collect(),
        reference: operator.map(|operator| named(&operator.reference)).unwrap_or_default(),
        reference_files: reference_files.into_iter().collect(),
        tables,
        toolchain: match (member, kernel, target) {
            (Some(member), Some(kernel), Some(target)) => {
                toolchain(&member.package.toolchain, kernel.language, target.arch == Arch::Cpu)
            }
            _ => String::new(),
        },
        devices,
    }
}

/// A reference as a manifest names it.
fn named(reference: &Reference) -> String {
    match reference {
        Reference::Builtin { name, .. } => format!("builtin:{name}"),
        Reference::Python { file, function }
        | Reference::Torch { file, function, .. }
        | Reference::Cpp { file, function } => format!("{file}::{function}"),
    }
}

/// What compiles a kernel, or runs it where nothing is compiled, as the manifest declares it.
fn toolchain(declared: &ToolchainSpec, language: Language, emulated: bool) -> String {
    match (language, emulated) {
        (Language::Cuda, true) => "the C++ compiler of this machine".into(),
        (Language::Cuda, false) => match &declared.cuda {
            Some(CudaSpec::Version(version)) => format!("CUDA {version}"),
            Some(CudaSpec::Path(path)) => format!("the CUDA in {path}"),
            Some(CudaSpec::System) | None => "the CUDA of this machine".into(),
        },
        (Language::Triton, _) => match &declared.triton {
            Some(version) => format!("Triton {version}"),
            None => "the default release of Triton".into(),
        },
        (Language::Torch, _) => match &declared.torch {
            Some(TorchSpec::Release { release, cuda }) => format!("PyTorch {}", TorchSpec::described(release, *cuda)),
            Some(TorchSpec::System) | None => "the PyTorch of this machine".into(),
        },
    }
}

/// Whether a step is about a kernel on a target, for the choice of types of a selection.
fn is_its(node: &Node, selected: &Selected) -> bool {
    let labels = &node.labels;
    let variant = |label: &String| selected.builds.iter().any(|build| build.label == *label);
    labels.kernel.as_ref() == Some(&selected.kernel)
        && labels.target.as_ref() == Some(&selected.target)
        && labels.variant.as_ref().is_none_or(variant)
}

/// The leaders among the kernels of an operator that are about a kernel.
fn leaders(ready: &Ready<'_>, known: &ReadyResult, select: &Node, selected: &Selected) -> Vec<LeaderReport> {
    let is_of_operator = |node: &Node| {
        (&node.labels.package, &node.labels.operator) == (&select.labels.package, &select.labels.operator)
            && node.labels.target.as_ref() == Some(&selected.target)
            && node.labels.types.as_deref().unwrap_or_default() == selected.choice.label
    };
    let results: Pairs<'_> = (known.steps.iter().filter(|(node, _)| node.kind == StepKind::Pairs))
        .map(|(node, done)| (node.id.as_str(), done.as_ref().and_then(|done| done.result.as_ref())))
        .collect();
    let reader = Reader {
        read: &|digest| ready.leaves.get(digest).ok().flatten(),
        places: &|_, text| text.to_string(),
        place: &|_, place| Some(place.clone()),
        first_place: &|_, _| None,
    };
    let steps = known.steps.iter().filter(|(node, _)| node.kind == StepKind::Select && is_of_operator(node));
    let of_step = |(node, done): &(Node, Option<Done>)| {
        let names = ready.names(&node.id).filter(|names| !names.kernels.is_empty())?;
        let names = Names { pairs: pairs_read(&node.inputs), ..names };
        let result = done.as_ref().and_then(|done| done.result.as_ref());
        Some(leaders::of_result(&node.labels, result, &names, &results, &reader))
    };
    // A champion whose confirmation fails does not lead.
    let fails = |leader: &LeaderReport| {
        known.steps.iter().any(|(node, done)| {
            let labels = &node.labels;
            let is_its = labels.confirms && labels.kernel.as_ref() == Some(&leader.kernel);
            is_its
                && (labels.variant.as_ref(), labels.shape.as_ref()) == (Some(&leader.variant), Some(&leader.shape))
                && matches!(
                    done.as_ref().and_then(|done| done.result.as_ref()?.verdict.as_ref()),
                    Some(Verdict::Fail(_))
                )
        })
    };
    let all = steps.filter_map(of_step).flatten();
    all.filter(|leader| leader.is_about(&selected.kernel) && !fails(leader)).collect()
}

/// The baselines beside the champions of a selection that are rated.
fn baselines(ready: &Ready<'_>, known: &ReadyResult, selected: &Selected) -> Vec<BaselineReport> {
    let rated = |(node, done): &(Node, Option<Done>), confirms: bool| {
        let labels = &node.labels;
        let is_rated = node.kind == StepKind::Rate && labels.variant.is_some() && labels.confirms == confirms;
        let is_rated = is_rated && is_its(node, selected);
        let digest = done.as_ref()?.result.as_ref()?.outputs.get("rating").copied().filter(|_| is_rated)?;
        let rating = serde_json::from_slice(&ready.leaves.get(&digest).ok()??).ok()?;
        let (shape, baseline, variant) = (labels.shape.clone()?, labels.baseline.clone()?, labels.variant.clone()?);
        Some(BaselineReport::new(shape, baseline, variant, rating))
    };
    let of = |confirms| known.steps.iter().filter_map(move |step| Some((&step.0.labels, rated(step, confirms)?)));
    let mut all: Vec<BaselineReport> = of(false).map(|(_, first)| first).collect();
    for (labels, mut second) in of(true) {
        let timed = known.steps.iter().find(|(node, _)| node.kind == StepKind::Baseline && node.labels == *labels);
        let evidence = timed.and_then(|(_, done)| done.as_ref()?.evidence.as_ref());
        second.second_standing = evidence.map(|evidence| evidence.standing);
        all.iter_mut().for_each(|first| first.hear(&second));
    }
    all
}

/// The call times of the champions of a selection, without those of calls that are wrong.
fn calls(ready: &Ready<'_>, known: &ReadyResult, selected: &Selected) -> Vec<CallsReport> {
    let is_wrong = |labels: &Labels| {
        known.steps.iter().any(|(node, done)| {
            let of = &node.labels;
            let same = of.confirms && of.variant == labels.variant && of.shape == labels.shape;
            let verdict = || done.as_ref()?.result.as_ref()?.verdict.as_ref();
            node.kind == StepKind::Judge
                && same
                && is_its(node, selected)
                && matches!(verdict(), Some(Verdict::Fail(_)))
        })
    };
    let timed = |(node, done): &(Node, Option<Done>)| {
        let labels = &node.labels;
        let is_timed = node.kind == StepKind::Calls && is_its(node, selected) && !is_wrong(labels);
        let digest = done.as_ref()?.result.as_ref()?.outputs.get("observation").copied().filter(|_| is_timed)?;
        let seen = serde_json::from_slice(&ready.leaves.get(&digest).ok()??).ok()?;
        CallsReport::of(labels.shape.as_ref()?, labels.variant.as_deref()?, &seen)
    };
    known.steps.iter().filter_map(timed).collect()
}

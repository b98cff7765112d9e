//! Builds the sources of an artifact again and compares the machine code. Knows sessions and plans; the head of the parent module has the decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::VerifyArtifactError;
use crate::build::{BuildRequest, Built, Ended, build};
use crate::event::{Event, Observer, Reporter, Steps, Warning, Watch};
use crate::session::evidence_policy::EvidencePolicy;
use crate::session::fresh_home::fresh_home;
use crate::{Error, Session};
use kforge_engine::action::of_binary;
use kforge_engine::evidence::BINARY;
use kforge_engine::{Blobs, Done, Graph, Node, Source};
use kforge_foundation::base::Digest;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::archive::{self, EXTENSION};
use kforge_pipeline::release::artifact::kernels::{PackagedKernel, PackagedVariant};
use kforge_pipeline::release::artifact::{KernelsDocument, SOURCE};
use kforge_pipeline::release::bundle::Bundle;
use kforge_pipeline::release::committed::FOLDER;
use kforge_project::workspace::lockfile::{Lockfile, Pin, Seat};
use kforge_project::workspace::select::SelectionArgs;
use kforge_types::record::kind::fatbin::documents::FATBIN;
use kforge_types::record::params::PTX;
use kforge_types::record::spec::Tree;
use kforge_types::record::{Spec, Standing, StepKind};

/// The result of a rebuild.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// The number of binaries with equal bytes.
    pub equal: u64,
    /// The others.
    pub differences: Vec<Difference>,
    /// Steps for which the evidence in the artifact does not count here, besides those of other binaries.
    pub lacking: Vec<String>,
    /// The number of verdicts that are unknown here, for example because the tolerance cannot tell correct from wrong.
    pub unknown: u64,
}

/// A binary that was not made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The kernel, its types and target, and the variant.
    pub place: String,
    /// The file in the artifact.
    pub binary: String,
    /// The offset of the first byte that differs; none if one is the beginning of the other, or nothing was made.
    pub first: Option<u64>,
    /// Why it differs.
    pub cause: Cause,
}

/// Why a binary differs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// Nothing was compiled for the variant, or its fatbin could not be packed.
    #[error("nothing was compiled or packed for it")]
    NotMade,
    /// Other sources were compiled.
    #[error("it was compiled from other sources: {} differ", .0.join(", "))]
    Sources(Vec<String>),
    /// Other compilers or parameters.
    #[error("it was compiled with other {}", .0.join(", "))]
    Inputs(Vec<String>),
    /// What is in a fatbin is equal.
    #[error("its machine code and PTX are equal: only what `fatbinary` writes around them differs")]
    Packed,
    /// All inputs are equal.
    #[error("all inputs of the compilation are equal: the compiler itself does not always give the same bytes")]
    Compiler,
}

/// Builds the sources in `folder`, where the whole artifact lies, and compares.
pub(super) fn rebuild(
    session: &Session,
    name: &Path,
    folder: &Path,
    document: &KernelsDocument,
    evidence: &Bundle,
) -> Result<Rebuilt, Error> {
    let source = folder.join(SOURCE);
    let (workspace, member) = super::package_of(&source, name)?;
    let mut lock = workspace.lock.clone();
    pin(&mut lock, &member.package.name, document);
    lock.write(&source, false)?;
    let bundle = archive::encode(evidence).map_err(crate::evidence::EvidenceError::Unreadable)?;
    let bundles = source.join(FOLDER);
    std::fs::create_dir_all(&bundles).map_err(Error::write(&bundles))?;
    let bundle_name = format!("artifact.{EXTENSION}");
    let bundle_file = bundles.join(&bundle_name);
    std::fs::write(&bundle_file, bundle).map_err(Error::write(&bundle_file))?;
    let mut elsewhere = session.elsewhere(source.clone(), folder.join("target"));
    elsewhere.settings.home = folder.join("home");
    let origin = format!("{FOLDER}/{bundle_name}");
    elsewhere.reporter =
        Reporter::new(Arc::new(WithoutOwnClaims { observer: session.reporter.observer().clone(), origin }));
    fresh_home(session, &elsewhere.settings.home)?;
    let targets: BTreeSet<&String> = document.kernels.iter().map(|kernel| &kernel.target).collect();
    let words = SelectionArgs { targets: targets.into_iter().cloned().collect(), ..SelectionArgs::default() };
    let request = BuildRequest {
        words: words.clone(),
        keep_going: true,
        evidence: EvidencePolicy::requiring(Some(Standing::Claimed)),
        plans: true,
        ..BuildRequest::new(Goal::Build)
    };
    let mut unknown = 0;
    let lacking = match build(&elsewhere, &request)? {
        Built::Finished(finished) => match finished.ended {
            Ended::Done => {
                unknown = finished.verdicts.unknown;
                vec![]
            }
            Ended::NoEvidence(lacking) => lacking.into_iter().map(|lacking| lacking.id).collect(),
            Ended::Interrupted => return Err(Error::Interrupted),
            Ended::NotBuilt | Ended::Contradicted(_) | Ended::Wrong => {
                return Err(VerifyArtifactError::NotRebuilt(name.into()).into());
            }
        },
        Built::Unchanged(_) | Built::Unaffected(_) => vec![],
    };
    let (equal, differences) = compare(&elsewhere, &words, document, evidence, folder)?;
    let of_others = |step: &String| {
        differences
            .iter()
            .any(|difference| step.starts_with(&format!("{}/", step_prefix(&member.package.name, difference))))
    };
    let package = &member.package.name;
    let lacking = lacking.into_iter().filter(|step| !of_others(step) && !is_unclaimed(package, document, step));
    let lacking = lacking.collect();
    Ok(Rebuilt { equal, differences, lacking, unknown })
}

/// Passes on what a rebuild reports, except that the evidence of the artifact is claimed: the rebuild takes it as claims because whether they hold is what it
/// finds out, and the user does not know the bundle.
struct WithoutOwnClaims {
    observer: Arc<dyn Observer>,
    /// The bundle.
    origin: String,
}

impl Observer for WithoutOwnClaims {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Warning(Warning::Claimed { origin, .. }) if *origin == self.origin => {}
            event => self.observer.event(event),
        }
    }

    fn watch<'b>(&'b self, build: Steps<'b>, graph: &Graph) -> Box<dyn Watch + 'b> {
        self.observer.watch(build, graph)
    }
}

/// Whether a step is about a variant at a shape for which the artifact names another champion. A build verifies each pinned variant at every shape that it serves.
fn is_unclaimed(package: &str, document: &KernelsDocument, step: &str) -> bool {
    document.kernels.iter().any(|kernel| {
        kernel.variants.iter().any(|variant| {
            kernel.shapes.iter().filter(|shape| shape.variant != variant.variant).any(|shape| {
                let parts = [package, &kernel.kernel, &label(kernel, variant), &kernel.target, &shape.shape];
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                step.strip_prefix(&parts.join("/")).is_some_and(|rest| rest.starts_with('/'))
            })
        })
    })
}

/// The beginning of the ids of a variant's steps.
fn step_prefix(package: &str, difference: &Difference) -> String {
    format!("{package}/{}", difference.place)
}

/// Pins the champions of the artifact, so that nothing else is built.
pub(super) fn pin(lock: &mut Lockfile, package: &str, document: &KernelsDocument) {
    for kernel in &document.kernels {
        for class in &kernel.classes {
            let seat = Seat {
                package: package.into(),
                kernel: kernel.kernel.clone(),
                types: kernel.types.clone(),
                target: kernel.target.clone(),
                class: class.class.clone(),
            };
            lock.champions.insert(seat, Pin::Accepted(class.variant.clone()));
        }
    }
}

/// Compares the binaries of the artifact with those that were compiled.
fn compare(
    session: &Session,
    words: &SelectionArgs,
    document: &KernelsDocument,
    evidence: &Bundle,
    folder: &Path,
) -> Result<(u64, Vec<Difference>), Error> {
    session.look(words, Goal::Build)?.plan(session, |opened, ready| {
        let steps = ready.with_services(session, opened, |services| {
            kforge_engine::known(ready.graph.clone(), &ready.options, services).steps
        });
        let known = ready.with_services(session, opened, |services| {
            kforge_engine::questions(ready.graph.clone(), &ready.options, services)
        });
        let (mut equal, mut differences) = (0, vec![]);
        for (kernel, variant) in
            document.kernels.iter().flat_map(|kernel| kernel.variants.iter().map(move |v| (kernel, v)))
        {
            // Machine code in Triton of one variant differs in what it was specialised for.
            let asked = evidence.questions.iter().find(|question| question.key == variant.compilation);
            let specialised = |spec: &Spec| spec.params.get("triton").cloned();
            let made = known.made.iter().find(|made| {
                let labels = &made.node.labels;
                asked.is_none_or(|asked| specialised(&asked.spec) == specialised(&made.spec))
                    && labels.kernel.as_ref() == Some(&kernel.kernel)
                    && labels.target.as_ref() == Some(&kernel.target)
                    && labels.variant.as_deref() == Some(&label(kernel, variant))
                    && labels.method.is_none()
            });
            let place = [&kernel.kernel, &label(kernel, variant), &kernel.target];
            let place = place.into_iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("/");
            let output = |name: &str| made.and_then(|made| made.result.outputs.get(name));
            let machine_code = (&variant.binary, variant.digest, output(BINARY));
            let ptx = variant.ptx.as_ref().map(|ptx| (&ptx.file, ptx.digest, output(PTX)));
            let fatbin = made.and_then(|made| fatbin_of(&steps, &made.node.id));
            let fatbin = variant.fatbin.as_ref().map(|packed| (&packed.file, packed.digest, fatbin));
            let mut is_other = false;
            for (file, packed, digest) in [Some(machine_code), ptx, fatbin].into_iter().flatten() {
                let difference = |first, cause| Difference { place: place.clone(), binary: file.clone(), first, cause };
                match (made, digest) {
                    (Some(_), Some(digest)) if *digest == packed => equal += 1,
                    (Some(made), Some(digest)) => {
                        let own = ready.leaves.get(digest)?.unwrap_or_default();
                        let packed = std::fs::read(folder.join(file)).map_err(Error::read(file))?;
                        let first = own.iter().zip(&packed).position(|(a, b)| a != b).map(|at| at as u64);
                        let is_fatbin = variant.fatbin.as_ref().is_some_and(|fatbin| fatbin.file == *file);
                        if is_fatbin && !is_other {
                            differences.push(difference(first, Cause::Packed));
                            continue;
                        }
                        is_other = true;
                        let local = of_binary(&made.spec, &*ready.leaves)?;
                        let cause = match asked.zip(local) {
                            Some((asked, local)) => {
                                let tree = local.inputs.get("tree:source").and_then(|input| input.digest);
                                let tree = tree.map(|tree| ready.leaves.get(&tree)).transpose()?.flatten();
                                let tree = tree.and_then(|tree| serde_json::from_slice(&tree).ok());
                                cause(&asked.spec, &local, variant, tree)
                            }
                            None => Cause::NotMade,
                        };
                        differences.push(difference(first, cause));
                    }
                    _ => differences.push(difference(None, Cause::NotMade)),
                }
            }
        }
        Ok::<_, Error>((equal, differences))
    })
}

/// The fatbin that was packed of what a step compiled; none if it was not packed here.
fn fatbin_of<'s>(steps: &'s [(Node, Option<Done>)], compile: &str) -> Option<&'s Digest> {
    let reads = |node: &Node| match node.inputs.get(BINARY).map(|input| &input.source) {
        Some(Source::Output { node, .. }) => node == compile,
        _ => false,
    };
    let (_, done) = steps.iter().find(|(node, _)| node.kind == StepKind::Fatbin && reads(node))?;
    done.as_ref()?.result.as_ref()?.outputs.get(FATBIN)
}

/// The label of a variant with its types, as steps have it.
fn label(kernel: &PackagedKernel, variant: &PackagedVariant) -> String {
    let parts = [kernel.types.as_str(), &variant.variant];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",")
}

/// Which inputs of two compilations differ.
fn cause(packed: &Spec, local: &Spec, variant: &PackagedVariant, tree: Option<Tree>) -> Cause {
    let fields = |spec: &Spec| spec.explain().into_iter().collect::<BTreeMap<String, String>>();
    let (packed, local) = (fields(packed), fields(local));
    let names: BTreeSet<&String> = packed.keys().chain(local.keys()).collect();
    let differ: Vec<String> = names.into_iter().filter(|name| packed.get(*name) != local.get(*name)).cloned().collect();
    let is_source = |name: &String| name == "inputs.tree:source";
    if let Some(tree) = tree.filter(|_| differ.iter().any(is_source)) {
        let of = |files: &BTreeMap<String, Digest>, name: &String| files.get(name).copied();
        let files: BTreeSet<&String> = tree.files.keys().chain(variant.sources.keys()).collect();
        let changed = files.into_iter().filter(|name| of(&tree.files, name) != of(&variant.sources, name));
        return Cause::Sources(changed.map(|name| format!("`{name}`")).collect());
    }
    match differ.is_empty() {
        true => Cause::Compiler,
        false => Cause::Inputs(differ.into_iter().map(|name| name.trim_start_matches("inputs.").into()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::description::LaunchSequence;
    use kforge_types::record::{Form, Input};

    #[test]
    fn the_cause_is_in_the_inputs_or_it_is_the_compiler() {
        let digest = |text: &str| Digest::of(text.as_bytes());
        let spec = |tree: &str, tool: &str| Spec {
            kind: StepKind::Compile,
            version: 1,
            implementation: None,
            params: serde_json::json!({ "std": "c++17" }),
            inputs: [("tree:source", tree), ("toolchain", tool)]
                .map(|(name, text)| (name.to_string(), Input { digest: Some(digest(text)), form: Form::Blob }))
                .into(),
        };
        let sources = |k: &str| BTreeMap::from([("k.cu".to_string(), digest(k)), ("h.cuh".to_string(), digest("h"))]);
        let launch = LaunchSequence {
            tunables: BTreeMap::new(),
            requires: vec![],
            workspaces: vec![],
            constants: vec![],
            launches: vec![],
        };
        let variant = PackagedVariant {
            variant: String::new(),
            specialization: String::new(),
            binary: String::new(),
            digest: digest("b"),
            ptx: None,
            fatbin: None,
            members: vec![],
            compilation: digest("c"),
            sources: sources("k"),
            symbols: BTreeMap::new(),
            launch,
        };
        let of = |local: Spec, k: &str| cause(&spec("t", "nvrtc"), &local, &variant, Some(Tree { files: sources(k) }));
        assert_eq!(of(spec("t", "nvrtc"), "k"), Cause::Compiler);
        assert_eq!(of(spec("t", "other"), "k"), Cause::Inputs(vec!["toolchain".into()]));
        assert_eq!(of(spec("u", "nvrtc"), "edited"), Cause::Sources(vec!["`k.cu`".into()]));
        assert_eq!(of(spec("u", "other"), "edited"), Cause::Sources(vec!["`k.cu`".into()]));
        let params = Spec { params: serde_json::json!({ "std": "c++20" }), ..spec("t", "nvrtc") };
        assert_eq!(of(params, "k"), Cause::Inputs(vec!["params.std".into()]));
    }
}

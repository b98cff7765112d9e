//! What is known of the champions of a package and of the baselines beside them: verdicts, what was observed, times.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::de::DeserializeOwned;

use super::dataset::{Solved, SolvedKernel};
use crate::session::build::Ready;
use crate::session::places::Places;
use kforge_engine::{Blobs, Done, Node, Source};
use kforge_foundation::base::Digest;
use kforge_numerics::measure::judge::judge;
use kforge_pipeline::release::traces::{Evaluation, Known, LeftOut, SpeedUpDoubt, evaluation, not_compiled};
use kforge_pipeline::report::Report;
use kforge_pipeline::report::document::TargetReport;
use kforge_project::workspace::Member;
use kforge_project::workspace::find::MANIFEST;
use kforge_types::model::baseline::How;
use kforge_types::model::kernel::LaunchAction;
use kforge_types::model::{Arch, Kernel, Tolerance};
use kforge_types::record::event::EvidenceSeen;
use kforge_types::record::kind::baseline::documents::{BaselineObserved, RateParams, Rating};
use kforge_types::record::params::{JudgeParams, Judgement};
use kforge_types::record::spec::Tree;
use kforge_types::record::timing::BenchObserved;
use kforge_types::record::{Finding, FindingKind, Standing, StepKind, Verdict, VerifyObservation};

/// What is known of a solution at a shape.
pub(in crate::export) struct Found {
    /// The kernel or baseline, and the target.
    of: String,
    /// The shape.
    pub(in crate::export) shape: String,
    /// What the verdict is about.
    pub(super) solution: Solved,
    /// The kernel, the target and the variant; none for a baseline.
    pub(in crate::export) variant: Option<[String; 3]>,
    what: What,
}

enum What {
    /// It was judged.
    Judged(Box<Judged>),
    /// Its source does not compile for this architecture.
    NotCompiled { arch: String, why: String, kforge: String, at: String },
}

struct Judged {
    verdict: Verdict,
    explanation: String,
    observation: Option<VerifyObservation>,
    wrong_values: bool,
    time_ns: Option<f64>,
    samples_ns: Vec<f64>,
    reference: Option<(f64, f64)>,
    /// What is open of the speed-up over the reference.
    doubt: Option<SpeedUpDoubt>,
    seen: Option<EvidenceSeen>,
}

/// Which variants count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::export) enum Which {
    /// Champions at their shapes, or the first variant where there is no champion.
    Chosen,
    /// All of them.
    All,
}

impl Found {
    /// The kernel and the target.
    fn seat(&self) -> Option<[String; 2]> {
        self.variant.clone().map(|[kernel, target, _]| [kernel, target])
    }

    /// What it is about, for messages.
    pub(in crate::export) fn place(&self) -> String {
        format!("{} at {}", self.of, self.shape)
    }

    /// The samples of its time, and their median, in nanoseconds.
    pub(in crate::export) fn times(&self) -> (&[f64], Option<f64>) {
        match &self.what {
            What::Judged(of) => (&of.samples_ns, of.time_ns),
            What::NotCompiled { .. } => (&[], None),
        }
    }

    /// The evaluation for a trace.
    pub(in crate::export) fn evaluation(&self, extended: bool) -> Result<Evaluation, LeftOut> {
        match &self.what {
            What::Judged(of) => evaluation(&Known {
                verdict: &of.verdict,
                explanation: &of.explanation,
                observation: of.observation.as_ref(),
                wrong_values: of.wrong_values,
                time_ns: of.time_ns,
                reference: of.reference,
                doubt: of.doubt.as_ref(),
                seen: of.seen.as_ref(),
                extended,
            }),
            What::NotCompiled { arch, why, kforge, at } => Ok(not_compiled(arch, kforge, at, why)),
        }
    }
}

/// The steps of a package.
struct Steps<'a, 'p, 'q> {
    ready: &'a Ready<'p>,
    places: &'a Places<'q>,
    member: &'a Member,
    /// Those of the package that ended.
    steps: Vec<&'a Node>,
    done: HashMap<&'a str, &'a Done>,
    nodes: HashMap<&'a str, &'a Node>,
}

/// What is known of a package: of variants at their shapes, and of baselines. `last` is the report of the last build, if there is one.
pub(in crate::export) fn found<'a, 'p, 'q>(
    which: Which,
    member: &'a Member,
    (report, last): (&Report, Option<&Report>),
    ready: &'a Ready<'p>,
    steps: &'a [(Node, Option<Done>)],
    places: &'a Places<'q>,
) -> Vec<Found> {
    let ended = || steps.iter().filter_map(|(node, done)| Some((node, done.as_ref()?)));
    let of = Steps {
        ready,
        places,
        member,
        steps: ended().map(|(node, _)| node).filter(|node| node.labels.package == member.package.name).collect(),
        done: ended().map(|(node, done)| (node.id.as_str(), done)).collect(),
        nodes: steps.iter().map(|(node, _)| (node.id.as_str(), node)).collect(),
    };
    let kernels = report.packages.iter().filter(|p| p.name == member.package.name).flat_map(|p| &p.kernels);
    let mut out = vec![];
    for (reported, target) in kernels.flat_map(|kernel| kernel.targets.iter().map(move |target| (kernel, target))) {
        let Some(kernel) = member.package.kernel(&reported.name) else { continue };
        let chosen = (which == Which::Chosen).then(|| of.chosen(kernel, target));
        let seat = Seat { kernel, target, chosen };
        for node in of.of_seat(kernel, target) {
            match node.kind {
                StepKind::Judge if !node.labels.confirms => out.extend(of.judged(&seat, node)),
                StepKind::Rate if !node.labels.confirms => out.extend(of.rated(&seat, node)),
                _ => {}
            }
        }
    }
    let failed = last.into_iter().flat_map(|last| of.failed(last));
    match which {
        Which::All => out.extend(failed),
        // A kernel whose source does not compile has many variants, and the first says it.
        Which::Chosen => {
            let mut said: BTreeMap<[String; 2], String> = BTreeMap::new();
            let seats: BTreeSet<[String; 2]> = out.iter().filter_map(Found::seat).collect();
            out.extend(failed.filter(|one| {
                let Some([kernel, target, variant]) = one.variant.clone() else { return false };
                let seat = [kernel, target];
                !seats.contains(&seat) && *said.entry(seat).or_insert_with(|| variant.clone()) == variant
            }));
        }
    }
    out
}

/// A kernel on a target.
struct Seat<'r> {
    kernel: &'r Kernel,
    target: &'r TargetReport,
    /// The variants that count, each at a shape, or at every one. None if all count.
    chosen: Option<BTreeSet<(String, Option<String>)>>,
}

impl Seat<'_> {
    fn counts(&self, variant: &str, shape: &str) -> bool {
        let has = |shape: Option<&str>| {
            let mine = (variant.to_string(), shape.map(String::from));
            self.chosen.as_ref().is_none_or(|chosen| chosen.contains(&mine))
        };
        has(Some(shape)) || has(None)
    }

    fn named(&self, what: &str) -> String {
        format!("{what} on {}", self.target.target)
    }
}

impl<'a> Steps<'a, '_, '_> {
    /// A document that a step gave.
    fn output<T: DeserializeOwned>(&self, id: &str, output: &str) -> Option<T> {
        let digest = self.done.get(id)?.result.as_ref()?.outputs.get(output).copied()?;
        serde_json::from_slice(&self.read(&digest)?).ok()
    }

    fn read(&self, digest: &Digest) -> Option<Vec<u8>> {
        self.ready.leaves.get(digest).ok().flatten()
    }

    /// The step whose output is this input of a node.
    fn from(&self, node: &Node, input: &str) -> Option<&'a Node> {
        match &node.inputs.get(input)?.source {
            Source::Output { node, .. } => self.nodes.get(node.as_str()).copied(),
            Source::Blob(_) => None,
        }
    }

    /// The steps of a kernel on a target that ended, those of methods left out.
    fn of_seat<'s>(&'s self, kernel: &'s Kernel, target: &'s TargetReport) -> impl Iterator<Item = &'a Node> + 's {
        self.steps.iter().copied().filter(move |node| {
            let labels = &node.labels;
            labels.kernel.as_ref() == Some(&kernel.name)
                && labels.target.as_ref() == Some(&target.target)
                && labels.method.is_none()
        })
    }

    /// The variants that count: champions at their shapes, or the first variant where there is no champion.
    fn chosen(&self, kernel: &Kernel, target: &TargetReport) -> BTreeSet<(String, Option<String>)> {
        let champions = target.champions.iter().filter_map(|c| Some((c.variant.clone()?, &c.shapes)));
        let at = |(variant, shapes): (String, &'_ Vec<String>)| {
            shapes.iter().map(|shape| (variant.clone(), Some(shape.clone()))).collect::<Vec<_>>()
        };
        let all: BTreeSet<(String, Option<String>)> = champions.flat_map(at).collect();
        if !all.is_empty() {
            return all;
        }
        let mut variants = self.of_seat(kernel, target).filter_map(|node| node.labels.variant.clone());
        variants.next().map(|variant| (variant, None)).into_iter().collect()
    }

    fn judged(&self, seat: &Seat<'_>, node: &Node) -> Option<Found> {
        let (variant, shape) = (node.labels.variant.clone()?, node.labels.shape.clone()?);
        if !seat.counts(&variant, &shape) {
            return None;
        }
        let mut judgement: Judgement = self.output(&node.id, "judgement")?;
        let mut verify = self.from(node, "observation");
        let is_mine = |other: &&Node| {
            other.labels.variant.as_ref() == Some(&variant) && other.labels.shape.as_ref() == Some(&shape)
        };
        // A confirmation that fails takes the place of what it was to confirm.
        let others = self.of_seat(seat.kernel, seat.target).filter(is_mine);
        let confirmations = others.filter(|other| other.kind == StepKind::Judge && other.labels.confirms);
        let mut failing = confirmations.filter_map(|confirmation| {
            let judged: Judgement = self.output(&confirmation.id, "judgement")?;
            matches!(judged.verdict, Verdict::Fail(_)).then_some((confirmation, judged))
        });
        if let Some((confirmation, failed)) = failing.next() {
            judgement = failed;
            verify = self.from(confirmation, "observation").or(verify);
        }
        let observation: Option<VerifyObservation> = verify.and_then(|verify| self.output(&verify.id, "observation"));
        let params: JudgeParams = serde_json::from_value(node.params.clone()).ok()?;
        let hot = seat.target.basis.as_ref().is_some_and(|basis| basis.hot);
        let time = seat.target.times.iter().find(|time| time.shape == shape && time.variant == variant && !time.few);
        let files = || self.sources(self.from(verify?, "binary")?);
        let of = Judged {
            wrong_values: observation.as_ref().is_some_and(|seen| has_wrong_values(seen, &params.tolerance)),
            verdict: self.places.verdict(&node.id, judgement.verdict),
            explanation: self.places.text(&node.id, &judgement.explanation),
            time_ns: time.and_then(|time| if hot { time.hot_ns } else { time.cold_ns }),
            samples_ns: self.samples(seat, hot, &variant, &shape),
            reference: self.reference(seat, &variant, &shape),
            doubt: self.doubt(seat, &variant, &shape),
            seen: verify.and_then(|verify| self.done.get(verify.id.as_str())).and_then(|done| done.evidence.clone()),
            observation,
        };
        Some(Found {
            of: seat.named(&seat.kernel.name),
            solution: solved(seat.kernel, node, &variant, files()),
            variant: Some([seat.kernel.name.clone(), seat.target.target.clone(), variant]),
            what: What::Judged(Box::new(of)),
            shape,
        })
    }

    /// The samples of a variant's time at a shape, in nanoseconds.
    fn samples(&self, seat: &Seat<'_>, hot: bool, variant: &str, shape: &str) -> Vec<f64> {
        let is_mine = |node: &&Node| {
            let labels = &node.labels;
            node.kind == StepKind::Bench
                && (labels.variant.as_deref(), labels.shape.as_deref()) == (Some(variant), Some(shape))
        };
        let benches = self.of_seat(seat.kernel, seat.target).filter(is_mine);
        let seen = benches.filter_map(|node| self.output::<BenchObserved>(&node.id, "observation"));
        let series = seen.filter(|seen| !seen.few).find_map(|seen| if hot { seen.hot } else { seen.cold });
        series.map(|series| series.samples_ns).unwrap_or_default()
    }

    /// Whether a baseline of that name is the operator's reference as PyTorch runs it.
    fn is_reference(&self, baseline: Option<&str>) -> bool {
        let declared = self.member.package.baselines.iter().find(|b| Some(b.name.as_str()) == baseline);
        declared.is_some_and(|b| b.source.is_none() && b.how == How::Eager)
    }

    /// What is open of the ratio of [`Self::reference`].
    fn doubt(&self, seat: &Seat<'_>, variant: &str, shape: &str) -> Option<SpeedUpDoubt> {
        let mut all = seat.target.baselines.iter().filter(|one| self.is_reference(Some(&one.baseline)));
        let one = all.find(|one| (one.variant.as_str(), one.shape.as_str()) == (variant, shape))?;
        if let Some(why) = one.unconfirmed() {
            return Some(SpeedUpDoubt::Unconfirmed(why.to_string()));
        }
        let is_claim = one.confirmation.is_some() && one.second_standing == Some(Standing::Claimed);
        is_claim.then_some(SpeedUpDoubt::Claimed)
    }

    /// The time of the operator's reference beside a champion, and its ratio to the champion's.
    fn reference(&self, seat: &Seat<'_>, variant: &str, shape: &str) -> Option<(f64, f64)> {
        let is_reference = |node: &&Node| {
            let labels = &node.labels;
            node.kind == StepKind::Rate
                && !labels.confirms
                && self.is_reference(labels.baseline.as_deref())
                && (labels.variant.as_deref(), labels.shape.as_deref()) == (Some(variant), Some(shape))
        };
        let mut rates = self.of_seat(seat.kernel, seat.target).filter(is_reference);
        let rating: Rating = self.output(&rates.next()?.id, "rating")?;
        // A ratio of calls is none of device times.
        let ratio = rating.ratio.filter(|_| !rating.of_calls)?;
        Some((rating.device_ns?, ratio.median))
    }

    /// The files of a compile step, by path in the package.
    fn sources(&self, compile: &Node) -> Option<BTreeMap<String, String>> {
        let digest = match &compile.inputs.get("tree:source")?.source {
            Source::Blob(digest) => *digest,
            Source::Output { node, name, .. } => {
                self.done.get(node.as_str())?.result.as_ref()?.outputs.get(name).copied()?
            }
        };
        let tree: Tree = serde_json::from_slice(&self.read(&digest)?).ok()?;
        let text = |(name, digest): (String, Digest)| Some((name, String::from_utf8(self.read(&digest)?).ok()?));
        tree.files.into_iter().map(text).collect()
    }

    /// What the last build says of variants whose source does not compile for a device: the same at each shape. A failure is no result that is kept, so it counts
    /// only if the files are no newer than that build.
    fn failed(&self, last: &Report) -> Vec<Found> {
        let package = &self.member.package;
        let Some(built) = &last.built else { return vec![] };
        let reported = last.packages.iter().filter(|p| p.name == package.name).flat_map(|p| &p.kernels);
        let failed = reported.flat_map(|kernel| &kernel.targets).flat_map(|target| &target.failed);
        let mut out = vec![];
        for (id, why) in failed {
            let Some(node) = self.nodes.get(id.as_str()).filter(|node| node.kind == StepKind::Compile) else {
                continue;
            };
            let labels = &node.labels;
            let declared = labels.kernel.as_ref().and_then(|name| package.kernel(name));
            let target = labels.target.as_ref().and_then(|name| package.targets.get(name));
            let (Some(kernel), Some(target), Some(variant)) = (declared, target, labels.variant.as_ref()) else {
                continue;
            };
            if target.arch == Arch::Cpu || labels.method.is_some() || self.done.contains_key(id.as_str()) {
                continue;
            }
            let Some(files) = self.sources(node).filter(|files| !self.is_newer(files, &built.at)) else { continue };
            let arch = node.params["arch"].as_str().unwrap_or(&target.name).to_string();
            let solution = solved(kernel, node, variant, Some(files));
            let shapes = package.operator(&kernel.operator).into_iter().flat_map(|operator| &operator.shapes);
            out.extend(shapes.map(|shape| Found {
                of: format!("{} on {}", kernel.name, target.name),
                shape: shape.name.clone(),
                solution: solution.clone(),
                variant: Some([kernel.name.clone(), target.name.clone(), variant.clone()]),
                what: What::NotCompiled {
                    arch: arch.clone(),
                    why: why.clone(),
                    kforge: built.kforge.clone(),
                    at: built.at.clone(),
                },
            }));
        }
        out
    }

    /// Whether any file of the package, or its manifest, is newer than a time, or cannot be compared with it.
    fn is_newer(&self, files: &BTreeMap<String, String>, than: &str) -> bool {
        let Ok(than) = than.parse::<jiff::Timestamp>() else { return true };
        let changed = |name: &str| {
            let at = std::fs::metadata(self.member.folder.join(name)).and_then(|data| data.modified()).ok()?;
            jiff::Timestamp::try_from(at).ok()
        };
        let names = files.keys().map(String::as_str).chain([MANIFEST]);
        names.map(changed).any(|at| at.is_none_or(|at| at > than))
    }

    /// A baseline beside a champion.
    fn rated(&self, seat: &Seat<'_>, node: &Node) -> Option<Found> {
        let (name, shape) = (node.labels.baseline.clone()?, node.labels.shape.clone()?);
        let declared = self.member.package.baselines.iter().find(|baseline| baseline.name == name)?;
        // The operator's own reference is no solution.
        let (file, _) = declared.source.clone()?;
        let rating: Rating = self.output(&node.id, "rating")?;
        let observed = self.from(node, "observation")?;
        let seen: BaselineObserved = self.output(&observed.id, "observation")?;
        let params: RateParams = serde_json::from_value(node.params.clone()).ok()?;
        let wrong_values = has_wrong_values(&seen.compared, &params.tolerance);
        // As a baseline its outputs are converted before they are compared. As a solution it owes the type that the definition declares.
        let typed: Vec<Finding> = seen.converted.iter().map(|(output, given)| wrong_type(output, given)).collect();
        let (mut verdict, mut explanation, mut observation) = (rating.verdict, rating.explanation, seen.compared);
        if let (Some(first), false) = (typed.first(), matches!(verdict, Verdict::Fail(_))) {
            (verdict, explanation) = (Verdict::Fail(first.message.clone()), String::new());
        }
        observation.findings.extend(typed);
        let of = Judged {
            wrong_values,
            observation: Some(observation),
            verdict,
            explanation,
            samples_ns: rating.device_ns.map(|_| seen.device_ns).unwrap_or_default(),
            time_ns: rating.device_ns,
            reference: None,
            doubt: None,
            seen: self.done.get(observed.id.as_str()).and_then(|done| done.evidence.clone()),
        };
        Some(Found {
            of: seat.named(&name),
            shape,
            solution: Solved::Baseline(file),
            variant: None,
            what: What::Judged(Box::new(of)),
        })
    }
}

/// A variant with the files that it was compiled from.
fn solved(kernel: &Kernel, node: &Node, variant: &str, files: Option<BTreeMap<String, String>>) -> Solved {
    let entry = kernel.launches.iter().find_map(|launch| match &launch.action {
        LaunchAction::Kernel { entry, .. } => Some(entry.value.clone()),
        _ => None,
    });
    let entry = kernel.torch.as_ref().map(|torch| torch.function.clone()).or(entry);
    let files = files.filter(|files| node.labels.round.is_none() && files.contains_key(&kernel.source));
    match (files, entry) {
        (Some(files), Some(entry)) => Solved::Kernel(Box::new(SolvedKernel {
            kernel: kernel.name.clone(),
            language: kernel.language,
            source: kernel.source.clone(),
            entry,
            variant: variant.to_string(),
            files,
        })),
        _ => Solved::Written,
    }
}

/// The finding of an output that is given in another type than the operator declares.
fn wrong_type(output: &str, given: &str) -> Finding {
    Finding::new(FindingKind::WrongType, format!("returned `{output}` as {given}, which is not its declared type"))
}

/// Whether compared outputs are wrong, whatever else was found.
fn has_wrong_values(observation: &VerifyObservation, tolerance: &BTreeMap<String, Tolerance>) -> bool {
    let compared = VerifyObservation { findings: vec![], ..observation.clone() };
    matches!(judge(&compared, tolerance).verdict, Verdict::Fail(_))
}

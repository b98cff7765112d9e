//! What an artifact claims, against its own evidence and sources. Knows the documents, the bundle and the package that `source/` holds; reads no file and
//! trusts nobody. Whether its signature counts is decided before.
//!
//! | claim | must equal |
//! |---|---|
//! | a kernel's interface and launches | what the manifest in the artifact gives |
//! | a binary | the file, the output of its compilation in the evidence, and the binary of every question about it |
//! | PTX | asked for by the manifest, an output of the same compilation, for its architecture and with its entries; nothing else is known of it |
//! | a fatbin | asked for by the manifest; holds the machine code and the PTX that lie beside it, for the architecture, and nothing else |
//! | the sources of a binary | the files in the artifact, and the tree in the question of its compilation |
//! | the shapes of a kernel | all shapes of its operator, each once |
//! | a pass | the verdict on the observation under the tolerance of the manifest, computed again; also in the process that ran no other candidate |
//! | a time | the median of the samples |
//! | a record | the record of that question in the evidence |
//!
//! Only a build of `source/` computes expected values again, which are digests in the questions, and finds whether a tolerance can tell correct from wrong. What
//! a method is worth and how far each record was trusted is the word of whoever packed the artifact.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{is_fatbin, is_ptx};
use super::kernels::{PackagedKernel, PackagedShape, PackagedTime, PackagedVariant};
use super::{
    ArtifactFiles, BINARIES, EVIDENCE, GENERATED, INDEX, INDEX_SIGNATURE, KERNELS, KernelsDocument, SBOM, SOURCE,
    STATEMENT,
};
use crate::plan::operators::{tolerance_of, trials_of};
use crate::plan::timing_steps::BENCH_PROTOCOL;
use crate::plan::triton::Compiled;
use crate::plan::variants::VERIFY_PROTOCOL;
use crate::release::bundle::{self, BINARY, Bundle, Question};
use kforge_foundation::base::Digest;
use kforge_numerics::measure::confirm::confirmed;
use kforge_numerics::measure::judge::judge;
use kforge_numerics::measure::sampling::median_interval;
use kforge_numerics::measure::stats::median;
use kforge_project::source::python;
use kforge_project::workspace::standalone::DEPENDENCIES;
use kforge_types::model::description::LaunchSequence;
use kforge_types::model::triton::{JitParam, Specialised};
use kforge_types::model::{
    Dependency, Kernel, Language, Metric, Operator, Package, Per, Problem, ShapeRole, Target, TypeChoice, Variant,
};
use kforge_types::record::contract_description::complete;
use kforge_types::record::fatbin::{self, FatbinFault};
use kforge_types::record::machine_code;
use kforge_types::record::params::{
    CompileFacts, CompileParams, Compiler, Judgement, PTX, Trial, VerifyParams, split_from,
};
use kforge_types::record::spec::Tree;
use kforge_types::record::timing::BenchObserved;
use kforge_types::record::{DeviceClass, StepKind, Verdict, VerifyObservation};

/// Something that an artifact claims and that is not so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}")]
pub struct FalseClaim {
    /// The kernel, and the shape or the variant if the claim is about one.
    pub place: String,
    /// What is wrong.
    pub fault: ClaimFault,
}

/// What is wrong with a claim.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what each means")]
pub enum ClaimFault {
    #[error("the manifest in `{SOURCE}` does not declare it for this target and these types")]
    NotDeclared,
    #[error("the manifest in `{SOURCE}` gives {0} that differ from those in `kernels.json`")]
    Differs(&'static str),
    #[error("`{SOURCE}` holds {0}, and the artifact is of one package with another name, version or licence")]
    OtherPackage(String),
    #[error("`{SOURCE}` names a CUDA toolkit in its own folder: the artifact would bring the compiler that judges it")]
    OwnCompiler,
    #[error("the artifact has {found} of it, but expected is {expected}")]
    Count { found: usize, expected: usize },
    #[error("no part of an artifact has this name")]
    ForeignFile,
    #[error("it does not follow from the other files")]
    Derived,
    #[error("its label or its symbols are not those of its tunables and of its compilation")]
    Named,
    #[error("its binary `{0}` is not in the artifact under the digest that `kernels.json` states")]
    NoBinary(String),
    #[error("its PTX is not for {0} or lacks an entry")]
    OtherPtx(String),
    #[error("its fatbin `{file}` is refused: {fault}")]
    Fatbin { file: String, fault: FatbinFault },
    #[error("the evidence has no compilation of its binary")]
    NotCompiled,
    #[error("its compilation in the evidence is of other {0}")]
    OtherCompilation(&'static str),
    #[error("its source `{0}` is not the file from which the binary was compiled")]
    OtherSource(String),
    #[error("its shapes are {found}, but the operator has {declared}")]
    Shapes { found: String, declared: String },
    #[error("its class `{0}` has shapes or a champion that the rest of `kernels.json` does not have")]
    Class(String),
    #[error("the evidence has no {0} of it")]
    NoRecord(&'static str),
    #[error("the {what} in the evidence is of another {of}")]
    OtherQuestion { what: &'static str, of: &'static str },
    #[error("the {what} in the evidence does not pass: {verdict}")]
    NotPassed { what: &'static str, verdict: String },
    #[error("the evidence does not show the {0} that `kernels.json` states")]
    OtherFigure(&'static str),
    #[error("its records in `kernels.json` are not those of the evidence")]
    Records,
}

/// The files, the document and the evidence of an artifact, and the package that its sources declare.
pub struct Artifact<'a> {
    /// The files.
    pub files: &'a ArtifactFiles,
    /// `kernels.json`.
    pub document: &'a KernelsDocument,
    /// `evidence.kfe`.
    pub evidence: &'a Bundle,
    /// The package in `source/`.
    pub package: &'a Package,
}

impl Artifact<'_> {
    /// Every claim that is not so, in the order of the document.
    pub fn false_claims(&self) -> Vec<FalseClaim> {
        let mut found = vec![];
        let questions: BTreeMap<Digest, &Question> = self.evidence.questions.iter().map(|q| (q.key, q)).collect();
        found.extend(self.of_files());
        found.extend(self.of_kernels());
        for kernel in &self.document.kernels {
            Claims { artifact: self, kernel, questions: &questions, found: &mut found }.check();
        }
        found
    }

    /// Files that no part of an artifact has.
    fn of_files(&self) -> Vec<FalseClaim> {
        let kernels = &self.document.kernels;
        let is_binary = |name: &str| {
            let mut variants = kernels.iter().flat_map(|k| &k.variants);
            variants.any(|variant| {
                let ptx = variant.ptx.as_ref().map(|ptx| &ptx.file);
                let fatbin = variant.fatbin.as_ref().map(|fatbin| &fatbin.file);
                [Some(&variant.binary), ptx, fatbin].into_iter().flatten().any(|file| file == name)
            })
        };
        let is_generated = |name: &str| {
            let mut sources = kernels.iter().flat_map(|k| &k.variants).flat_map(|variant| variant.sources.keys());
            sources.any(|source| *source == name)
        };
        let is_hidden = |name: &str| name.split('/').any(|part| part.starts_with('.'));
        let known = |name: &str| match name.split_once('/') {
            None => ALONE.contains(&name) || is_license(name),
            Some((BINARIES, _)) => is_binary(name),
            Some((SOURCE, rest)) => !is_hidden(rest),
            Some((GENERATED, rest)) => is_generated(rest),
            Some(_) => false,
        };
        let foreign = self.files.all().keys().filter(|name| !known(name));
        foreign.map(|name| FalseClaim { place: format!("`{name}`"), fault: ClaimFault::ForeignFile }).collect()
    }

    /// Every kernel of the package is there once, for each choice of types and each target of the artifact.
    fn of_kernels(&self) -> Vec<FalseClaim> {
        let packaged = &self.document.kernels;
        let targets: BTreeSet<&String> = packaged.iter().map(|kernel| &kernel.target).collect();
        let mut found = vec![];
        if packaged.is_empty() {
            found.push(FalseClaim { place: "kernels".into(), fault: ClaimFault::Count { found: 0, expected: 1 } });
        }
        for kernel in &self.package.kernels {
            let choices = self.package.operator(&kernel.operator).map(Operator::choices).unwrap_or_default();
            for target in kernel.targets.iter().filter(|target| targets.contains(target)) {
                for choice in &choices {
                    let same = |one: &&PackagedKernel| {
                        one.kernel == kernel.name && one.target == *target && one.types == choice.label
                    };
                    let count = packaged.iter().filter(same).count();
                    if count != 1 {
                        let parts = [&kernel.name, &choice.label, target];
                        let place = parts.into_iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>();
                        let fault = ClaimFault::Count { found: count, expected: 1 };
                        found.push(FalseClaim { place: place.join("/"), fault });
                    }
                }
            }
        }
        found
    }
}

/// The files of an artifact that lie in no folder, besides licences.
const ALONE: [&str; 6] = [EVIDENCE, INDEX, INDEX_SIGNATURE, KERNELS, SBOM, STATEMENT];

/// The beginnings of names of files with the terms of a licence, in lower case.
pub const LICENSES: [&str; 3] = ["license", "licence", "copying"];

/// Whether a file has the terms of a licence, by its name.
pub fn is_license(name: &str) -> bool {
    let lower = name.to_lowercase();
    LICENSES.iter().any(|start| lower.starts_with(start))
}

/// The claims about one kernel.
struct Claims<'a, 'f> {
    artifact: &'a Artifact<'a>,
    kernel: &'a PackagedKernel,
    questions: &'a BTreeMap<Digest, &'a Question>,
    found: &'f mut Vec<FalseClaim>,
}

/// A kernel as the manifest declares it.
#[derive(Clone, Copy)]
struct Declared<'a> {
    kernel: &'a Kernel,
    operator: &'a Operator,
    choice: &'a TypeChoice,
}

impl<'a> Claims<'a, '_> {
    fn says(&mut self, of: &str, fault: ClaimFault) {
        let of = if of.is_empty() { String::new() } else { format!(", {of}") };
        self.found.push(FalseClaim { place: format!("{}{of}", self.kernel.title()), fault });
    }

    fn check(&mut self) {
        let packaged: &'a PackagedKernel = self.kernel;
        let package = self.artifact.package;
        let choices = package.operator(&packaged.operator).map(Operator::choices).unwrap_or_default();
        let declared = package.kernel(&packaged.kernel).zip(package.operator(&packaged.operator));
        let choice = choices.iter().find(|choice| choice.label == packaged.types);
        let target = package.targets.get(&packaged.target).filter(|target| target.arch.name() == packaged.arch);
        let (Some((kernel, operator)), Some(choice), Some(target)) = (declared, choice, target) else {
            return self.says("", ClaimFault::NotDeclared);
        };
        let declared = Declared { kernel, operator, choice };
        if kernel.operator != packaged.operator || !kernel.targets.contains(&packaged.target) {
            return self.says("", ClaimFault::NotDeclared);
        }
        if operator.interface(choice).as_ref() != Ok(&packaged.interface) || kernel.select.metric != packaged.metric {
            self.says("", ClaimFault::Differs("arguments"));
        }
        let per = match &kernel.select.per {
            Per::Value(expr) => Some(expr.text().to_string()),
            Per::All | Per::Shape => None,
        };
        if per != packaged.per {
            self.says("", ClaimFault::Differs("classes"));
        }
        self.coverage(declared, target);
        self.devices(target);
        let labels: BTreeSet<&String> = packaged.variants.iter().map(|variant| &variant.variant).collect();
        let distinct: BTreeSet<(&String, &String)> =
            packaged.variants.iter().map(|variant| (&variant.variant, &variant.specialization)).collect();
        if distinct.len() != packaged.variants.len() {
            self.says("", ClaimFault::Named);
        }
        if packaged.methods.iter().any(|method| !labels.contains(&method.variant)) {
            self.says("", ClaimFault::Differs("methods"));
        }
        for variant in &packaged.variants {
            let Ok(Some(own)) = kernel.variant(target, choice, &variant.launch.tunables) else {
                self.says(&variant.variant, ClaimFault::NotDeclared);
                continue;
            };
            self.variant(declared, variant, &own);
        }
        for shape in &packaged.shapes {
            self.shape(declared, shape);
        }
        self.records();
    }

    /// All shapes of the operator, each in one class with a champion that is there.
    fn coverage(&mut self, declared: Declared<'_>, target: &Target) {
        let Declared { kernel, operator, choice } = declared;
        let packaged = self.kernel;
        let names = |names: &mut dyn Iterator<Item = &str>| {
            let mut names: Vec<&str> = names.collect();
            names.sort_unstable();
            names.join(", ")
        };
        // Shapes that `requires` leaves to other kernels are no shapes of this one.
        let served = kernel.served(target, operator, choice).ok();
        let served = served.unwrap_or_else(|| vec![true; operator.shapes.len()]);
        let of_kernel = operator.shapes.iter().zip(served).filter(|(_, served)| *served);
        let declared = names(&mut of_kernel.map(|(shape, _)| shape.name.as_str()));
        let found = names(&mut packaged.shapes.iter().map(|shape| shape.shape.as_str()));
        if found != declared {
            self.says("", ClaimFault::Shapes { found, declared });
        }
        let classes: BTreeSet<&String> = packaged.classes.iter().map(|class| &class.class).collect();
        if classes.len() != packaged.classes.len() {
            self.says("", ClaimFault::Differs("classes"));
        }
        // A class is that of the manifest, or was split from it at one bench shape.
        for shape in &packaged.shapes {
            let own = operator.shape(&shape.shape).and_then(|own| kernel.class_of(operator, choice, own).ok());
            let (whole, at) = split_from(&shape.class).map_or((shape.class.as_str(), None), |(c, s)| (c, Some(s)));
            if own.as_deref() != Some(whole) || at.is_some_and(|at| at != shape.shape) {
                self.says(&shape.shape, ClaimFault::Class(shape.class.clone()));
            }
        }
        for class in &packaged.classes {
            let of_class = packaged.shapes.iter().filter(|shape| shape.class == class.class);
            let own = of_class.clone().map(|shape| &shape.shape).collect::<BTreeSet<_>>();
            let same = own == class.shapes.iter().collect() && own.len() == class.shapes.len();
            let champion = of_class.clone().all(|shape| packaged.variant_at(shape).is_some());
            if !same || own.is_empty() || !champion || !of_class.clone().all(|shape| shape.variant == class.variant) {
                self.says("", ClaimFault::Class(class.class.clone()));
            }
        }
        for shape in packaged.shapes.iter().filter(|s| !packaged.classes.iter().any(|c| c.class == s.class)) {
            self.says("", ClaimFault::Class(shape.class.clone()));
        }
    }

    /// The devices of the observations are those of the records, run the machine code, and are the target's.
    fn devices(&mut self, target: &Target) {
        let packaged = self.kernel;
        let keys = packaged.shapes.iter().flat_map(|shape| [Some(shape.verification), shape.confirmation]).flatten();
        let seen: Vec<&DeviceClass> = keys
            .filter_map(|key| self.questions.get(&key))
            .flat_map(|question| question.records.iter().map(|record| &record.provenance.device))
            .collect();
        let fits = |device: &&DeviceClass| {
            device.runs(&packaged.arch) && target.device.as_ref().is_none_or(|wanted| *wanted == device.product)
        };
        let named: BTreeSet<String> = seen.iter().map(ToString::to_string).collect();
        if !seen.iter().all(fits) || named != packaged.devices.iter().cloned().collect() {
            self.says("", ClaimFault::Differs("devices"));
        }
    }

    fn variant(&mut self, declared: Declared<'_>, packaged: &PackagedVariant, own: &Variant) {
        let Declared { kernel, operator, choice } = declared;
        let label = &packaged.variant;
        let serves =
            |shape: &&PackagedShape| shape.variant == *label && shape.specialization == packaged.specialization;
        let example = self.kernel.shapes.iter().find(serves).and_then(|shape| operator.shape(&shape.shape));
        let problem = example.and_then(|shape| operator.bind(choice, shape).ok());
        if self.sequence(declared, packaged, own, problem.as_ref()).as_ref() != Some(&packaged.launch) {
            self.says(label, ClaimFault::Differs("launches"));
        }
        let files = self.artifact.files;
        let file = files.get(&packaged.binary).filter(|_| packaged.binary.starts_with(&format!("{BINARIES}/")));
        if file.map(Digest::of) != Some(packaged.digest) {
            self.says(label, ClaimFault::NoBinary(packaged.binary.clone()));
        }
        let is_archive = file.is_some_and(machine_code::is_archive);
        self.fatbin(packaged);
        let Some(question) = self.questions.get(&packaged.compilation).filter(|q| q.spec.kind == StepKind::Compile)
        else {
            return self.says(label, ClaimFault::NotCompiled);
        };
        if !question.records.iter().any(|record| record.result.outputs.get(BINARY) == Some(&packaged.digest)) {
            self.says(label, ClaimFault::OtherCompilation("machine code"));
        }
        self.ptx(packaged, question);
        let params = serde_json::from_value::<CompileParams>(question.spec.params.clone()).ok();
        let functions = self.functions(kernel);
        let compile = problem
            .filter(|_| kernel.language == Language::Triton)
            .and_then(|problem| Compiled { kernel, variant: own, choice, functions: &functions }.at(&problem).ok());
        let entries = compile.as_ref().map_or_else(|| kernel.entries(own, choice), Specialised::entries);
        let is_its = |params: &CompileParams| match kernel.language {
            Language::Cuda => params.triton.is_empty() && params.std == kernel.std.as_deref().unwrap_or("c++17"),
            Language::Triton => compile.as_ref().is_some_and(|found| {
                params.compiler == Compiler::Triton
                    && params.triton == found.compiles()
                    && found.class == packaged.specialization
            }),
            // Nothing of it is packaged.
            Language::Torch => false,
        };
        let same = params.is_some_and(|params| {
            let defines = kernel.defines(own, choice);
            params.arch == self.kernel.arch
                && params.entries == entries
                && params.flags == kernel.flags(own, choice)
                && params.main == kernel.source
                && is_its(&params)
                && params.defines.iter().all(|(name, value)| defines.get(name) == Some(value))
                && params.host.is_none()
                && packaged.sources.contains_key(&params.main)
        });
        if !same {
            self.says(label, ClaimFault::OtherCompilation("entries, flags, source or architecture"));
        }
        let facts = self.facts(question);
        let symbols = facts.map(|facts| entries.iter().cloned().zip(facts.symbols).collect::<BTreeMap<_, _>>());
        let members = if is_archive { entries.as_slice() } else { &[] };
        if symbols.as_ref() != Some(&packaged.symbols) || own.label != *label || packaged.members != members {
            self.says(label, ClaimFault::Named);
        }
        let tree = serde_json::to_vec(&Tree { files: packaged.sources.clone() }).map(|bytes| Digest::of(&bytes)).ok();
        if question.spec.inputs.get("tree:source").and_then(|input| input.digest) != tree {
            self.says(label, ClaimFault::OtherCompilation("sources"));
        }
        for (name, digest) in &packaged.sources {
            let at = |place: String| files.get(&place).map(Digest::of);
            let found = match name.strip_prefix('@') {
                // The lockfile pins dependencies that are wheels; those that are folders are in the artifact.
                Some(file) => {
                    match self.artifact.package.dependencies.get(file.split('/').next().unwrap_or_default()) {
                        Some(Dependency::Path { .. }) => at(format!("{SOURCE}/{DEPENDENCIES}/{file}")),
                        _ => continue,
                    }
                }
                None => at(format!("{SOURCE}/{name}")).or_else(|| at(format!("{GENERATED}/{name}"))),
            };
            if found != Some(*digest) {
                self.says(label, ClaimFault::OtherSource(name.clone()));
            }
        }
    }

    /// What the compiler said about the binary of a compilation.
    fn facts(&self, compilation: &Question) -> Option<CompileFacts> {
        compilation.records.iter().find_map(|record| {
            let digest = record.result.outputs.get("facts")?;
            serde_json::from_slice(self.artifact.evidence.contents.get(digest)?).ok()
        })
    }

    /// The functions that the source of a kernel in Triton declares.
    fn functions(&self, kernel: &Kernel) -> BTreeMap<String, Vec<JitParam>> {
        let source = self.artifact.files.get(&format!("{SOURCE}/{}", kernel.source));
        let source = source.filter(|_| kernel.language == Language::Triton);
        source.map(|bytes| python::functions(&String::from_utf8_lossy(bytes))).unwrap_or_default()
    }

    /// The launches of a variant as the manifest gives them, in Triton with what the compiler said about the binary.
    fn sequence(
        &self,
        Declared { kernel, choice, .. }: Declared<'_>,
        packaged: &PackagedVariant,
        own: &Variant,
        problem: Option<&Problem>,
    ) -> Option<LaunchSequence> {
        let problem = problem?;
        match kernel.language {
            Language::Cuda => return kernel.sequence(own, choice, problem).ok(),
            Language::Torch => return None,
            Language::Triton => {}
        }
        let facts = self.facts(self.questions.get(&packaged.compilation)?)?.triton;
        let functions = self.functions(kernel);
        let compiled = Compiled { kernel, variant: own, choice, functions: &functions };
        let mut sequence = compiled.described(problem).ok()?;
        let tensors = &self.kernel.interface.tensors;
        complete(&mut sequence, tensors, &compiled.at(problem).ok()?.entries(), &facts).ok()?;
        Some(sequence)
    }

    /// PTX is there if the manifest asks for it, comes from the compilation of the binary, and has its architecture and entries.
    fn ptx(&mut self, packaged: &PackagedVariant, compilation: &Question) {
        let label = &packaged.variant;
        let is_asked = self.artifact.package.targets.get(&self.kernel.target).is_some_and(|target| target.ptx);
        let Some(ptx) = &packaged.ptx else {
            if is_asked {
                self.says(label, ClaimFault::Differs("forms of its binaries"));
            }
            return;
        };
        if !is_asked {
            self.says(label, ClaimFault::Differs("forms of its binaries"));
        }
        let Some(bytes) =
            self.artifact.files.get(&ptx.file).filter(|bytes| is_ptx(&ptx.file) && Digest::of(bytes) == ptx.digest)
        else {
            return self.says(label, ClaimFault::NoBinary(ptx.file.clone()));
        };
        if !compilation.records.iter().all(|record| record.result.outputs.get(PTX) == Some(&ptx.digest)) {
            self.says(label, ClaimFault::OtherCompilation("PTX"));
        }
        let text = String::from_utf8_lossy(bytes);
        let arch = text.lines().find_map(|line| line.strip_prefix(".target ")).map(|line| line.split(',').next());
        let has = |symbol: &String| text.contains(&format!(".entry {symbol}("));
        if arch.flatten().map(str::trim) != Some(self.kernel.arch.as_str()) || !packaged.symbols.values().all(has) {
            self.says(label, ClaimFault::OtherPtx(self.kernel.arch.clone()));
        }
    }

    /// A fatbin is there if the manifest asks for it, and holds the machine code and the PTX beside it.
    fn fatbin(&mut self, packaged: &PackagedVariant) {
        let label = &packaged.variant;
        let is_asked = self.artifact.package.targets.get(&self.kernel.target).is_some_and(|target| target.fatbin);
        if is_asked != packaged.fatbin.is_some() {
            self.says(label, ClaimFault::Differs("forms of its binaries"));
        }
        let Some(fatbin) = &packaged.fatbin else { return };
        if fatbin.with_ptx != packaged.ptx.is_some() {
            self.says(label, ClaimFault::Differs("forms of its binaries"));
        }
        let files = self.artifact.files;
        let bytes =
            files.get(&fatbin.file).filter(|bytes| is_fatbin(&fatbin.file) && Digest::of(bytes) == fatbin.digest);
        let Some(bytes) = bytes else { return self.says(label, ClaimFault::NoBinary(fatbin.file.clone())) };
        // Files that are missing are named where they are checked themselves.
        let Some(code) = files.get(&packaged.binary) else { return };
        let ptx = packaged.ptx.as_ref().and_then(|ptx| files.get(&ptx.file));
        if let Err(fault) = fatbin::check(bytes, &self.kernel.arch, code, ptx) {
            self.says(label, ClaimFault::Fatbin { file: fatbin.file.clone(), fault });
        }
    }

    fn shape(&mut self, declared: Declared<'_>, packaged: &PackagedShape) {
        let Declared { operator, choice, .. } = declared;
        let name = &packaged.shape;
        let Some(shape) = operator.shape(name) else { return };
        let Ok(problem) = operator.bind(choice, shape) else { return self.says(name, ClaimFault::Differs("dims")) };
        if shape.dims != packaged.dims || shape.role != packaged.role {
            self.says(name, ClaimFault::Differs("dims"));
        }
        if tolerance_of(operator, choice, shape, &problem) != packaged.tolerance {
            self.says(name, ClaimFault::Differs("tolerances"));
        }
        let timed = match &packaged.time {
            Some(time) => self.time(declared, packaged, &problem, time),
            None => None,
        };
        const VERIFICATION: &str = "verification";
        let verification = (packaged.verification, VERIFICATION, false);
        if let Some(judgement) = self.verification(declared, packaged, &problem, verification) {
            if judgement.worst != packaged.worst {
                self.says(name, ClaimFault::OtherFigure("largest error"));
            }
            self.passes(name, VERIFICATION, &judgement);
        }
        if packaged.time.is_none() && shape.role == ShapeRole::Bench {
            self.says(name, ClaimFault::NoRecord("timing"));
        }
        const CONFIRMATION: &str = "verification in a process of its own";
        // A class without a bench shape has nothing to time, and its champion is confirmed only where its device is.
        let same = |other: &&PackagedShape| other.class == packaged.class;
        let is_timed = self.kernel.shapes.iter().filter(same).any(|other| other.role == ShapeRole::Bench);
        if packaged.confirmation.is_none() && is_timed {
            self.says(name, ClaimFault::NoRecord(CONFIRMATION));
        }
        if let Some(key) = packaged.confirmation
            && let Some(judgement) = self.verification(declared, packaged, &problem, (key, CONFIRMATION, true))
        {
            let judgement = confirmed(judgement, timed.as_ref(), &packaged.tolerance);
            self.passes(name, CONFIRMATION, &judgement);
        }
    }

    fn passes(&mut self, shape: &str, what: &'static str, judgement: &Judgement) {
        if judgement.verdict != Verdict::Pass {
            self.says(shape, ClaimFault::NotPassed { what, verdict: judgement.verdict.to_string() });
        }
    }

    /// The judgement of the observation that answers a question, if the question is about this binary, these launches and this problem. `isolated` says whether
    /// it must be of a process that ran no other candidate.
    fn verification(
        &mut self,
        declared: Declared<'_>,
        shape: &PackagedShape,
        problem: &Problem,
        (key, what, isolated): (Digest, &'static str, bool),
    ) -> Option<Judgement> {
        let question = self.question(shape, key, StepKind::Verify, what)?;
        self.asks(declared, shape, problem, question, what)?;
        if isolated != (question.spec.params.get("isolated").and_then(serde_json::Value::as_bool) == Some(true)) {
            self.says(&shape.shape, ClaimFault::OtherQuestion { what, of: "process" });
        }
        let observation: Option<VerifyObservation> = self.observed(question);
        match observation {
            Some(observation) if observation.emulated || !observation.unconfined.is_empty() => {
                let verdict = "it was emulated or unconfined".into();
                self.says(&shape.shape, ClaimFault::NotPassed { what, verdict });
                None
            }
            // Fresh trials come on top of the fixed ones.
            Some(observation) if (observation.asked as usize) < trials_of(declared.operator, problem).len() => {
                self.says(&shape.shape, ClaimFault::OtherQuestion { what, of: "number of trials" });
                None
            }
            Some(observation) => Some(judge(&observation, &shape.tolerance)),
            None => {
                self.says(&shape.shape, ClaimFault::NoRecord(what));
                None
            }
        }
    }

    fn time(
        &mut self,
        declared: Declared<'_>,
        shape: &PackagedShape,
        problem: &Problem,
        time: &PackagedTime,
    ) -> Option<BenchObserved> {
        const WHAT: &str = "timing";
        let question = self.question(shape, time.question, StepKind::Bench, WHAT)?;
        self.asks(declared, shape, problem, question, WHAT)?;
        let observation: Option<BenchObserved> = self.observed(question);
        let Some(observation) = observation else {
            self.says(&shape.shape, ClaimFault::NoRecord(WHAT));
            return None;
        };
        let series = match self.kernel.metric {
            Metric::Cold => &observation.cold,
            Metric::Hot => &observation.hot,
        };
        let samples = series.as_ref().map_or(&[][..], |series| &series.samples_ns);
        if samples.is_empty()
            || median(samples) != time.median_ns
            || median_interval(samples) != time.interval_ns
            || samples.len() as u64 != time.samples
        {
            self.says(&shape.shape, ClaimFault::OtherFigure("time"));
        }
        Some(observation)
    }

    /// The question of that key and kind.
    fn question(
        &mut self,
        shape: &PackagedShape,
        key: Digest,
        kind: StepKind,
        what: &'static str,
    ) -> Option<&'a Question> {
        let question = self.questions.get(&key).copied().filter(|question| question.spec.kind == kind);
        if question.is_none() {
            self.says(&shape.shape, ClaimFault::NoRecord(what));
        }
        question
    }

    /// None, after saying so, if a question is about another binary, other launches or another problem than the shape's.
    fn asks(
        &mut self,
        declared: Declared<'_>,
        shape: &PackagedShape,
        problem: &Problem,
        question: &Question,
        what: &'static str,
    ) -> Option<()> {
        let Declared { kernel, operator, choice } = declared;
        let other = |of| Some(ClaimFault::OtherQuestion { what, of });
        let packaged = self.kernel.variant_at(shape);
        let binary = question.spec.inputs.get(BINARY).and_then(|input| input.digest);
        let params = serde_json::from_value::<VerifyParams>(question.spec.params.clone()).ok();
        let fault = match (packaged, params) {
            (Some(packaged), _) if binary != Some(packaged.digest) => other("binary"),
            (Some(packaged), Some(asked)) => {
                let own = Variant { values: packaged.launch.tunables.clone(), label: String::new(), order: 0 };
                let functions = self.functions(kernel);
                let (launches, entries) = match kernel.language {
                    Language::Cuda => (kernel.launches(&own, choice, problem).ok(), kernel.entries(&own, choice)),
                    Language::Triton => {
                        let compiled = Compiled { kernel, variant: &own, choice, functions: &functions };
                        let found = compiled.at(problem).ok();
                        let entries = found.as_ref().map(Specialised::entries).unwrap_or_default();
                        (found.map(|found| found.launches), entries)
                    }
                    Language::Torch => (None, vec![]),
                };
                let workspaces = kernel.workspaces(&own, choice, problem).ok();
                let trials = trials_of(operator, problem);
                let (newest, verifies) = match question.spec.kind {
                    StepKind::Bench => (BENCH_PROTOCOL, false),
                    _ => (VERIFY_PROTOCOL, true),
                };
                let has = |trial: &Trial| {
                    let input = question.spec.inputs.get(&format!("expected:{}", trial.trial));
                    input.is_some_and(|input| input.digest.is_some())
                };
                let expected = !verifies || trials.iter().all(has);
                match () {
                    () if asked.arch != self.kernel.arch => other("architecture"),
                    () if asked.problem != *problem => other("problem"),
                    () if Some(asked.launches) != launches || Some(asked.workspaces) != workspaces => {
                        other("sequence of launches")
                    }
                    () if asked.constants != kernel.constants() || asked.entries != entries => {
                        other("sequence of launches")
                    }
                    () if asked.compare != operator.compare() || asked.trials != trials => other("comparison"),
                    () if (asked.compiler == Compiler::Triton) != (kernel.language == Language::Triton) => {
                        other("compiler")
                    }
                    () if asked.torch.is_some() => other("kind of kernel"),
                    () if matches!(asked.compiler, Compiler::EmulatorPlain | Compiler::EmulatorCheck) => {
                        other("compiler")
                    }
                    () if asked.samples.is_some() || asked.only.is_some() || asked.host.is_some() => other("protocol"),
                    () if !(1..=newest).contains(&asked.protocol) => other("protocol"),
                    () if !expected => other("set of expected values"),
                    () => None,
                }
            }
            _ => other("kind"),
        };
        match fault {
            Some(fault) => {
                self.says(&shape.shape, fault);
                None
            }
            None => Some(()),
        }
    }

    /// The observation that answers a question: its only record.
    fn observed<T: serde::de::DeserializeOwned>(&self, question: &Question) -> Option<T> {
        let [record] = question.records.as_slice() else { return None };
        let digest = record.result.outputs.get("observation")?;
        serde_json::from_slice(self.artifact.evidence.contents.get(digest)?).ok()
    }

    /// The records of the document are those of the evidence, and every verdict and time rests on one of them.
    fn records(&mut self) {
        let packaged = self.kernel;
        let same = packaged.records.iter().all(|(key, record)| {
            let question = self.questions.get(key);
            question.is_some_and(|question| {
                question.spec.kind == record.kind
                    && question.records.len() == 1
                    && question.records.iter().all(|known| {
                        let (device, at) = (known.provenance.device.to_string(), &known.provenance.measured_at);
                        bundle::digest(known) == record.record && device == record.device && *at == record.measured_at
                    })
            })
        });
        let named = packaged.shapes.iter().flat_map(|shape| {
            let time = shape.time.as_ref().map(|time| time.question);
            [Some(shape.verification), shape.confirmation, time].into_iter().flatten()
        });
        if !same || !named.into_iter().all(|key| packaged.records.contains_key(&key)) {
            self.says("", ClaimFault::Records);
        }
    }
}

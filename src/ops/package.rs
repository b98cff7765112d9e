//! Packs the champions of a package as an artifact: machine code, launches, sources and evidence, as a folder and as an archive. Knows builds and
//! their results; [`kforge_pipeline::release::artifact`] knows the format.

mod gather;
mod sources;
pub(crate) mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::build::steps::execute;
use crate::event;
use crate::pen::{Passphrase, Pen};
use crate::session::Opened;
use crate::session::build::{Packages, PlanRequest};
use crate::session::evidence_policy::EvidencePolicy;
use crate::session::needs::{DEFAULT_CUDA, lock_name, needs_triton};
use crate::session::tools::DEFAULT_TRITON;
use crate::{Error, Session};
use kforge_engine::ClaimsOption;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::archive;
use kforge_pipeline::release::artifact::check::{Artifact, FalseClaim};
use kforge_pipeline::release::artifact::files::{ArtifactFiles, Index, PackageIdentity, document};
use kforge_pipeline::release::artifact::spdx::{Materials, materials};
use kforge_pipeline::release::artifact::statement::{Provenance, statement};
use kforge_pipeline::release::artifact::{
    ArtifactError, EVIDENCE, INDEX, INDEX_SIGNATURE, KERNELS, KernelsDocument, SBOM, STATEMENT, kernels, tar,
};
use kforge_pipeline::release::signature::{Purpose, Signature};
use kforge_project::toolchain;
use kforge_project::workspace::Member;
use kforge_project::workspace::lockfile::{LockedDependency, LockedWheel, Lockfile};
use kforge_project::workspace::select::{Selected, SelectionArgs};
use kforge_types::model::{Arch, CudaSpec};
use kforge_types::record::Standing;
use kforge_types::record::contract_description::DescriptionError;
use kforge_types::record::fatbin::FatbinFault;

use self::gather::Gathered;

/// The request for artifacts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageRequest {
    /// The packages and targets. Kernels, operators and shapes are not selected: an artifact holds a whole package.
    pub words: SelectionArgs,
    /// The folder to write into; `package` in the folder for outputs if none is named.
    pub output: Option<PathBuf>,
    /// The key that signs the artifacts.
    pub key: Option<PathBuf>,
    /// Also pack evidence that is only claimed. The artifact then says so.
    pub allow_claimed: bool,
    /// The option by which the user says so, for messages.
    pub claims: ClaimsOption,
    /// The number of steps to run in parallel; a negative number means all cores except that many.
    pub jobs: Option<i64>,
    /// Write nothing.
    pub dry_run: bool,
}

/// An artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packaged {
    /// What its index says.
    pub index: Index,
    /// Its folder.
    pub folder: PathBuf,
    /// Its archive.
    pub archive: PathBuf,
    /// The size of the archive in bytes.
    pub bytes: u64,
    /// The number of kernels, each for one choice of types and one target.
    pub kernels: u64,
    /// The fingerprint of the key that signed it.
    pub signed_by: Option<String>,
    /// Whether any of its evidence is only claimed.
    pub claimed: bool,
}

/// Why something of a package cannot be packed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}")]
pub struct Refusal {
    /// The package, or the kernel with its types and target.
    pub place: String,
    /// The reason.
    pub why: RefusalReason,
}

/// The reason for a [`Refusal`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusalReason {
    /// The package states no licence.
    #[error("it states no licence; add `license = \"...\"` with an SPDX expression to `[package]`")]
    NoLicense,
    /// The compilers lie in the package's folder.
    #[error(
        "its CUDA toolkit lies in a folder of the workspace: an artifact would bring the compiler that judges it; name a release, such as `cuda = \"13.0\"`"
    )]
    OwnCompiler,
    /// The target of a kernel in Triton asks for a form of machine code that is not made of it.
    #[error(
        "kernel `{kernel}` is written in Triton, and target `{target}` asks for {form}, which kforge does not make of it"
    )]
    TritonForm {
        /// The kernel.
        kernel: String,
        /// The target.
        target: String,
        /// PTX or a fatbin.
        form: &'static str,
    },
    /// A binary of Triton asks for what loaders do not give.
    #[error("its binary cannot be launched by loaders: {0}")]
    Contract(DescriptionError),
    /// Steps gave no result.
    #[error("it is not built{}", .0.as_ref().map_or_else(String::new, |step| format!(": `{step}` gave no result")))]
    NotBuilt(Option<String>),
    /// Evidence exists and does not count.
    #[error("its evidence does not count: {0}")]
    Evidence(String),
    /// A class of shapes has no champion.
    #[error("there is no champion{stands_for}: {because}")]
    Vacant {
        /// The shapes of the class, in words.
        stands_for: String,
        /// The reason, for people.
        because: String,
        /// Whether every variant is wrong, or what they are is not known.
        ground: Ground,
    },
    /// A champion was selected without measurements.
    #[error("its champion{stands_for} is provisional: it was selected without timings of a device{}", .unanswered.as_ref().map_or_else(String::new, |why| format!(" ({why})")))]
    Provisional {
        /// The shapes of the class, in words.
        stands_for: String,
        /// Why what is stored does not answer, if that is the reason.
        unanswered: Option<String>,
    },
    /// A champion is wrong on a device.
    #[error("its champion is wrong: {0}")]
    Wrong(String),
    /// A champion is not known to be correct on a device, nor to be wrong.
    #[error("its champion is not verified on a device: {0}")]
    NotVerified(String),
    /// A confirmation is missing.
    #[error("its champion is not confirmed at shape `{0}`: build it where the device is, or bring newer evidence")]
    NotConfirmed(String),
    /// An agent wrote the champion.
    #[error("an agent wrote its champion: `kforge accept {0}` writes the source into the package first")]
    Written(String),
    /// A kernel has a launcher of its own.
    #[error("it has a launcher of its own, so it is never timed")]
    Host,
    /// A kernel is written in PyTorch.
    #[error("it is written in PyTorch, and kforge packages machine code")]
    Torch,
    /// Its fatbin could not be packed here.
    #[error("its fatbin is not made, because `{step}` is not possible here: {why}")]
    NoFatbin {
        /// The step.
        step: String,
        /// What is missing.
        why: String,
        /// Whether `kforge fetch` can install it: the CUDA toolkit is a release, not one of this machine.
        is_fetched: bool,
    },
    /// Its fatbin holds something else than it must.
    #[error("its fatbin is refused: {0}")]
    Fatbin(FatbinFault),
    /// The machine code is for other architectures.
    #[error("its binary has machine code for {found}, not for {declared}")]
    Architecture {
        /// The architecture of the target.
        declared: String,
        /// Those of the binary.
        found: String,
    },
}

/// What a [`RefusalReason`] rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// A kernel is wrong.
    Wrong,
    /// Evidence is missing or undecided, and nothing is known to be wrong.
    Unknown,
    /// The package cannot be packed as it is, whatever a device would show.
    Package,
}

impl RefusalReason {
    /// What it rests on.
    pub fn ground(&self) -> Ground {
        match self {
            Self::Wrong(_) => Ground::Wrong,
            Self::Vacant { ground, .. } => *ground,
            Self::Evidence(_) | Self::Provisional { .. } | Self::NotConfirmed(_) | Self::NotVerified(_) => {
                Ground::Unknown
            }
            Self::NoLicense
            | Self::OwnCompiler
            | Self::TritonForm { .. }
            | Self::Contract(_)
            | Self::NotBuilt(_)
            | Self::Written(_)
            | Self::Host
            | Self::Torch
            | Self::NoFatbin { .. }
            | Self::Fatbin(_)
            | Self::Architecture { .. } => Ground::Package,
        }
    }
}

/// Why a package cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// Parts of it cannot be packed.
    #[error(
        "`{package}` cannot be packaged: {}",
        if let [one] = reasons.as_slice() { one.to_string() } else { format!("{} reasons", reasons.len()) }
    )]
    Refused {
        /// The package.
        package: String,
        /// All reasons.
        reasons: Vec<Refusal>,
        /// The option that takes claimed evidence.
        claims: ClaimsOption,
    },
    /// It has no kernel for a GPU.
    #[error("`{0}` has no kernel for a GPU target of the selection: there is nothing to package")]
    Nothing(String),
    /// Another folder has the artifact's place.
    #[error("`{}` cannot be replaced: {why}; or name another folder with `--output`", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// What is there.
        why: String,
    },
    /// The files cannot be packed.
    #[error("`{package}` cannot be packaged: {why}")]
    Files {
        /// The package.
        package: String,
        /// The reason.
        why: ArtifactError,
    },
    /// A manifest cannot be written without its workspace: a bug.
    #[error("BUG: `{package}` has no manifest of its own: {why}")]
    Manifest {
        /// The package.
        package: String,
        /// The reason.
        why: String,
    },
    /// An artifact would be refused by its reader: a bug.
    #[error("BUG: the artifact of `{package}` claims what is not so: {claim}")]
    Claims {
        /// The package.
        package: String,
        /// The first claim.
        claim: Box<FalseClaim>,
    },
}

/// Builds the selected packages for GPU targets as far as they are not built, and packs their champions.
///
/// # Errors
/// [`PackageError`], or the plan cannot be made, or files cannot be written. If any package is refused, nothing is written.
pub fn package(
    session: &Session,
    request: &PackageRequest,
    passphrase: &Passphrase<'_>,
) -> Result<Vec<Packaged>, Error> {
    let pen = request.key.as_ref().map(|key| Pen::of(session, key, passphrase)).transpose()?;
    package_with(session, request, pen.as_ref())
}

/// The same with a key that is open already, in place of the one that the request names.
///
/// # Errors
/// Those of [`package()`].
pub(crate) fn package_with(
    session: &Session,
    request: &PackageRequest,
    pen: Option<&Pen>,
) -> Result<Vec<Packaged>, Error> {
    let mut opened = session.open()?;
    let required = if request.allow_claimed { Standing::Claimed } else { Standing::Signed };
    let mut asked = PlanRequest {
        selected: session.select(&opened.workspace, &request.words)?,
        goal: Goal::Build,
        jobs: request.jobs,
        keep_going: true,
        remeasure: false,
        evidence: EvidencePolicy::requiring(Some(required)),
        overlay: None,
        write: true,
        looks: false,
    };
    let packages = session.packages(&opened, &asked)?;
    asked.selected.targets = gpu_targets(&packages, &asked.selected)?;
    // What no build can change is said before one begins, with what is known of the rest.
    for member in packages.all().filter_map(|package| packages.member(&package.name)) {
        let mut reasons = gather::of_package(member);
        if !reasons.is_empty() {
            let asked = PlanRequest { write: false, looks: true, ..asked };
            reasons.extend(known_refusals(session, &mut opened, &packages, &asked, member, request.claims));
            let package = member.package.name.clone();
            return Err(PackageError::Refused { package, reasons, claims: request.claims }.into());
        }
    }
    let mut ready = session.ready(&mut opened, &packages, &asked)?;
    let outcome = execute(session, &opened, &mut ready, &packages, event::Purpose::Side, None);
    ready.journal.flush()?;
    ready.sweep_lost(&outcome);
    if outcome.interrupted {
        return Err(Error::Interrupted);
    }
    let known = gather::Known::of(session, &opened, &ready, outcome)?.for_users_of(request.claims);
    let mut found = vec![];
    for member in packages.all().filter_map(|package| packages.member(&package.name)) {
        found.push((member, gather::gather(&opened, &ready, &known, member, &asked.selected)?));
    }
    // Compressing takes longer than all else of packaging.
    let evidence: Result<Vec<Vec<u8>>, _> =
        found.par_iter().map(|(_, gathered)| archive::encode_small(&gathered.evidence)).collect();
    let evidence = evidence.map_err(crate::evidence::EvidenceError::Unreadable)?;
    let mut artifacts = vec![];
    for ((member, gathered), evidence) in found.into_iter().zip(evidence) {
        let lock = lock_of(&opened.workspace.lock, member);
        let files = files(&opened, &ready, member, &gathered, evidence, &lock)?;
        check(member, &files, &gathered)?;
        artifacts.push((member.package.name.clone(), gathered, files, lock));
    }
    let target = opened.target.clone();
    let folder = request.output.as_ref().map_or_else(|| target.join("package"), |output| session.cwd.join(output));
    let mut packaged = vec![];
    for (package, gathered, files, lock) in artifacts {
        let failed = |why| Error::from(PackageError::Files { package: package.clone(), why });
        let (files, signed_by) = match pen {
            Some(pen) => {
                let signature = pen.sign(session, Purpose::Artifact, files.required(INDEX).map_err(failed)?)?;
                let fingerprint = signature.key().fingerprint();
                (files.signed(&signature), Some(fingerprint))
            }
            None => {
                let name = write::file_stem(&files.index().map_err(failed)?);
                match earlier_signature(&folder.join(name), files.required(INDEX).map_err(failed)?) {
                    Some(signature) => {
                        let fingerprint = signature.key().fingerprint();
                        (files.signed(&signature), Some(fingerprint))
                    }
                    None => (files, None),
                }
            }
        };
        let index = files.index().map_err(failed)?;
        let archive = tar::pack(&files).map_err(failed)?;
        let name = write::file_stem(&index);
        let file = format!("{name}.{}", tar::EXTENSION);
        let wheels = wheels(&lock);
        let about = Provenance {
            package: &index.package,
            version: &index.version,
            targets: gathered.targets(),
            wheels: &wheels,
            tools: &gathered.tools,
            archive: Some((&file, &archive)),
        };
        let beside = statement(&files, &about).map_err(failed)?;
        if !request.dry_run {
            write::write(session, &folder, &name, &files, &archive, &beside)?;
        }
        packaged.push(Packaged {
            folder: folder.join(&name),
            archive: folder.join(&file),
            bytes: archive.len() as u64,
            kernels: gathered.kernels.len() as u64,
            claimed: gathered.is_claimed(),
            signed_by,
            index,
        });
    }
    Ok(packaged)
}

/// The signature of the artifact that a folder holds, if it is of the same files: an artifact that is packaged again stays signed.
fn earlier_signature(folder: &Path, index: &[u8]) -> Option<Signature> {
    if std::fs::read(folder.join(INDEX)).ok()? != index {
        return None;
    }
    let text = std::fs::read_to_string(folder.join(INDEX_SIGNATURE)).ok()?;
    let signature = Signature::parse(&text).ok()?;
    (signature.namespace() == Purpose::Artifact.namespace() && signature.verifies(index)).then_some(signature)
}

/// Why the kernels of a package cannot be packed, as far as that is known without building anything. If that cannot be found out, nothing is known.
fn known_refusals(
    session: &Session,
    opened: &mut Opened,
    packages: &Packages,
    asked: &PlanRequest,
    member: &Member,
    claims: ClaimsOption,
) -> Vec<Refusal> {
    let Ok(ready) = session.ready(opened, packages, asked) else { return vec![] };
    let known = gather::Known::without_building(session, opened, &ready).for_users_of(claims);
    match gather::gather(opened, &ready, &known, member, &asked.selected) {
        Err(Error::Package(PackageError::Refused { mut reasons, .. })) => {
            reasons.retain(|reason| !known.may_change(reason));
            reasons
        }
        _ => vec![],
    }
}

/// The GPU targets among the selected ones.
fn gpu_targets(packages: &Packages, selected: &Selected) -> Result<Vec<String>, PackageError> {
    let mut targets: Vec<String> = vec![];
    for package in packages.all() {
        let takes = |name: &&String| selected.targets.is_empty() || selected.targets.contains(name);
        let is_gpu = |name: &&String| package.targets.get(*name).is_some_and(|target| target.arch != Arch::Cpu);
        let own = package.kernels.iter().flat_map(|kernel| &kernel.targets).filter(takes).filter(is_gpu);
        let own: Vec<String> = own.cloned().collect();
        if own.is_empty() {
            return Err(PackageError::Nothing(package.name.clone()));
        }
        targets.extend(own);
    }
    targets.sort();
    targets.dedup();
    Ok(targets)
}

/// The part of a lockfile that is about a package.
fn lock_of(lock: &Lockfile, member: &Member) -> Lockfile {
    let package = &member.package;
    let release = match &package.toolchain.cuda {
        Some(CudaSpec::Version(release)) => release,
        Some(CudaSpec::Path(_) | CudaSpec::System) => "",
        None => DEFAULT_CUDA,
    };
    let release_of_triton = package.toolchain.triton.as_deref().unwrap_or(DEFAULT_TRITON);
    let triton = needs_triton(package).then(|| toolchain::triton::lock_name(release_of_triton));
    let name = lock_name(release);
    let mut own = lock.clone();
    own.wheels.retain(|toolchain, _| *toolchain == name || Some(toolchain) == triton.as_ref());
    // A folder is packed, so nothing has to pin it.
    let is_wheel = |dependency: &LockedDependency| matches!(dependency, LockedDependency::Wheel(_));
    own.dependencies.retain(|(of, _), dependency| *of == package.name && is_wheel(dependency));
    own.champions.retain(|seat, _| seat.package == package.name);
    own
}

/// Whether a CUDA toolkit lies beside the manifest that names it.
pub(crate) fn is_within(cuda: Option<&CudaSpec>) -> bool {
    matches!(cuda, Some(CudaSpec::Path(path)) if Path::new(path).is_relative())
}

/// All wheels of a lockfile.
pub(crate) fn wheels(lock: &Lockfile) -> Vec<LockedWheel> {
    let dependencies = lock.dependencies.values().filter_map(|dependency| match dependency {
        LockedDependency::Wheel(wheel) => Some(wheel),
        LockedDependency::Path { .. } => None,
    });
    let mut all: Vec<LockedWheel> = lock.wheels.values().flatten().chain(dependencies).cloned().collect();
    all.sort();
    all.dedup();
    all
}

/// The files of an artifact, with the index.
fn files(
    opened: &Opened,
    ready: &crate::session::build::Ready<'_>,
    member: &Member,
    gathered: &Gathered,
    evidence: Vec<u8>,
    lock: &Lockfile,
) -> Result<ArtifactFiles, Error> {
    let package = &member.package;
    let failed = |why| Error::from(PackageError::Files { package: package.name.clone(), why });
    let mut all: BTreeMap<String, Vec<u8>> = sources::sources(&opened.workspace, ready, member, lock)?;
    all.extend(gathered.binaries.iter().map(|(name, bytes)| (name.clone(), bytes.clone())));
    let document_of = KernelsDocument { format_version: kernels::FORMAT_VERSION, kernels: gathered.kernels.clone() };
    all.insert(KERNELS.into(), document(&document_of).map_err(failed)?);
    all.insert(EVIDENCE.into(), evidence);
    let identity = PackageIdentity {
        name: package.name.clone(),
        version: package.version.clone(),
        license: package.license.clone().unwrap_or_default(),
    };
    let wheels = wheels(lock);
    let files = ArtifactFiles::new(all).map_err(failed)?;
    let about = Provenance {
        package: &identity.name,
        version: &identity.version,
        targets: gathered.targets(),
        wheels: &wheels,
        tools: &gathered.tools,
        archive: None,
    };
    let of =
        Materials { package: &identity.name, version: &identity.version, license: &identity.license, wheels: &wheels };
    let (statement, materials) = (statement(&files, &about).map_err(failed)?, materials(&files, &of).map_err(failed)?);
    let mut all = files.all().clone();
    all.extend([(STATEMENT.to_string(), statement), (SBOM.to_string(), materials)]);
    ArtifactFiles::new(all).and_then(|files| files.indexed(identity)).map_err(failed)
}

/// Reads what was packed as its reader will, so that no artifact is handed out that would be refused.
fn check(member: &Member, files: &ArtifactFiles, gathered: &Gathered) -> Result<(), Error> {
    let package = member.package.name.clone();
    let document = KernelsDocument::of(files).map_err(|why| PackageError::Files { package: package.clone(), why })?;
    let artifact = Artifact { files, document: &document, evidence: &gathered.evidence, package: &member.package };
    match artifact.false_claims().into_iter().next() {
        Some(claim) => Err(PackageError::Claims { package, claim: Box::new(claim) }.into()),
        None => Ok(()),
    }
}

/// Whether a target is one of a GPU.
fn is_gpu(member: &Member, target: &str) -> bool {
    member.package.targets.get(target).is_some_and(|target| target.arch != Arch::Cpu)
}

//! Verifies an artifact with nothing but the artifact and the reader's trust: digests, signature, and whether every claim follows from its own evidence and
//! sources. On request, builds its sources again and compares the machine code, and verifies and times its champions again on a device. Knows files and
//! sessions; [`kforge_pipeline::release::artifact::check`] knows the claims.
//!
//! | decision | because |
//! |---|---|
//! | the order is digests, signature, claims | what was tampered with is named before anything of it is believed |
//! | a rebuild has a home of its own, with only the toolchains of the user's | nothing that was compiled before may answer |
//! | it pins the champions of the artifact | no other variant is compiled |
//! | it reads the evidence of the artifact as claims | they count only if the compiler makes the same bytes, and the questions hold the same expected values |
//! | where equal inputs give other bytes, the compiler itself varies | everything that a compilation can see is in its inputs |

mod rebuild;
mod rerun;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::evidence::EvidenceError;
use crate::package::write::write_folder;
use crate::package::{PackageError, is_within, wheels};
use crate::{Error, Session};
use kforge_engine::temporary::{self, Temporary};
use kforge_pipeline::optimize::templates::TEMPLATES;
use kforge_pipeline::release::archive;
use kforge_pipeline::release::artifact::check::{Artifact, ClaimFault, FalseClaim};
use kforge_pipeline::release::artifact::files::{ArtifactFiles, Index, LIMIT};
use kforge_pipeline::release::artifact::spdx::{Materials, materials};
use kforge_pipeline::release::artifact::statement::{Provenance, statement, tools_of};
use kforge_pipeline::release::artifact::{
    ArtifactError, EVIDENCE, INDEX, KernelsDocument, SBOM, SOURCE, STATEMENT, tar,
};
use kforge_pipeline::release::signature::Purpose;
use kforge_pipeline::release::trust::{Distrust, Distrusted, Signer};
use kforge_project::workspace::find::MANIFEST;
use kforge_project::workspace::{self, Member, Workspace};
use kforge_types::record::Standing;

pub use rebuild::{Cause, Difference, Rebuilt};
pub use rerun::{Finding, Rerun, RerunFault};

/// The request for a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyArtifactRequest {
    /// The folder or the archive.
    pub path: PathBuf,
    /// Do not require the signature of a trusted key.
    pub allow_untrusted: bool,
    /// Build the sources again and compare the machine code.
    pub rebuild: bool,
    /// Verify and time the champions again on the devices of this machine.
    pub rerun: bool,
}

/// A verified artifact.
#[derive(Debug)]
pub struct VerifiedArtifact {
    /// Its index.
    pub index: Index,
    /// Who signed it, if a trusted key did.
    pub signer: Option<Signer>,
    /// Why its signature does not count, if it has one that does not, and none was required.
    pub distrusted: Option<Distrusted>,
    /// The number of kernels, each for one choice of types and one target.
    pub kernels: u64,
    /// The number of shapes at which champions pass.
    pub shapes: u64,
    /// The number of records by the standing that whoever packed the artifact gave them.
    pub records: BTreeMap<Standing, u64>,
    /// The rebuild, if it was requested.
    pub rebuilt: Option<Rebuilt>,
    /// What was observed again, if that was requested.
    pub rerun: Option<Rerun>,
}

/// Why an artifact is refused.
#[derive(Debug, thiserror::Error)]
pub enum VerifyArtifactError {
    /// Its files are not those of an artifact, or differ from its index.
    #[error("`{}` is refused: {why}", path.display())]
    Files {
        /// The artifact, as the user named it.
        path: PathBuf,
        /// The reason.
        why: ArtifactError,
    },
    /// Nobody signed it.
    #[error("`{}` is not signed", .0.display())]
    Unsigned(PathBuf),
    /// The signature does not count.
    #[error("`{}` is not trusted: {why}", path.display())]
    Distrusted {
        /// The artifact, as the user named it.
        path: PathBuf,
        /// The reason.
        why: Distrusted,
    },
    /// Its sources are not a package.
    #[error("`{}` is refused: `{SOURCE}` holds no package that this kforge reads: {why}", path.display())]
    NoPackage {
        /// The artifact, as the user named it.
        path: PathBuf,
        /// The errors of its manifest.
        why: String,
    },
    /// It claims what is not so.
    #[error("`{}` is refused: {}", path.display(), one_or_count(.claims))]
    Claims {
        /// The artifact, as the user named it.
        path: PathBuf,
        /// All false claims.
        claims: Vec<FalseClaim>,
    },
    /// Its sources could not be built.
    #[error("the sources of `{}` could not be built, so nothing was compared", .0.display())]
    NotRebuilt(PathBuf),
}

fn one_or_count(claims: &[FalseClaim]) -> String {
    match claims {
        [one] => one.to_string(),
        claims => format!("{} of its claims are false", claims.len()),
    }
}

/// Verifies an artifact.
///
/// # Errors
/// [`VerifyArtifactError`], or files cannot be read or written.
pub fn verify_artifact(session: &Session, request: &VerifyArtifactRequest) -> Result<VerifiedArtifact, Error> {
    let files = read(&session.cwd.join(&request.path), &request.path)
        .map_err(|why| VerifyArtifactError::Files { path: request.path.clone(), why })?;
    verify_files(session, request, &files)
}

/// Verifies the files of an artifact. The path of the request is its name in messages.
///
/// # Errors
/// Those of [`verify_artifact`].
pub(crate) fn verify_files(
    session: &Session,
    request: &VerifyArtifactRequest,
    files: &ArtifactFiles,
) -> Result<VerifiedArtifact, Error> {
    let path = &request.path;
    let refused = |why| Error::from(VerifyArtifactError::Files { path: path.clone(), why });
    let index = files.index().map_err(refused)?;
    let (signer, distrusted) = match signer(session, request, files)? {
        Some(Ok(signer)) => (Some(signer), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, None),
    };
    let document = KernelsDocument::of(files).map_err(refused)?;
    let evidence = files.required(EVIDENCE).map_err(refused)?;
    let evidence = archive::unpack(evidence, archive::LIMITS);
    let evidence = evidence.and_then(|evidence| {
        evidence.bundle.check_times(jiff::Timestamp::now())?;
        Ok(evidence.bundle)
    });
    let evidence = evidence.map_err(|why| EvidenceError::Refused { path: path.join(EVIDENCE), why })?;
    let temporary = Temporary::create(temporary::Purpose::Artifact).map_err(Error::write(std::env::temp_dir()))?;
    let folder = temporary.path();
    write_folder(&folder, files)?;
    let (workspace, member) = package_of(&folder.join(SOURCE), path)?;
    let artifact = Artifact { files, document: &document, evidence: &evidence, package: &member.package };
    let mut claims = artifact.false_claims();
    claims.extend(of_package(&index, &member, &workspace, files)?);
    if !claims.is_empty() {
        return Err(VerifyArtifactError::Claims { path: path.clone(), claims }.into());
    }
    let rebuilt = match request.rebuild {
        true => Some(rebuild::rebuild(session, path, &folder, &document, &evidence)?),
        false => None,
    };
    let rerun = match request.rerun {
        true => Some(rerun::rerun(session, path, files, &document)?),
        false => None,
    };
    let mut records = BTreeMap::new();
    for record in document.kernels.iter().flat_map(|kernel| kernel.records.values()) {
        *records.entry(record.standing).or_default() += 1;
    }
    Ok(VerifiedArtifact {
        index,
        signer,
        distrusted,
        kernels: document.kernels.len() as u64,
        shapes: document.kernels.iter().map(|kernel| kernel.shapes.len() as u64).sum(),
        records,
        rebuilt,
        rerun,
    })
}

/// What is not so of the package as a whole: its identity, its compiler, and the documents that follow from other files.
fn of_package(
    index: &Index,
    member: &Member,
    workspace: &Workspace,
    files: &ArtifactFiles,
) -> Result<Vec<FalseClaim>, Error> {
    let package = &member.package;
    let mut found = vec![];
    let mut says = |place: &str, fault| found.push(FalseClaim { place: format!("`{place}`"), fault });
    let license = package.license.clone().unwrap_or_default();
    let same = package.name == index.package && package.version == index.version && license == index.license;
    if !same || workspace.members.len() != 1 || member.folder != workspace.root {
        let of = format!("{} {} ({license})", package.name, package.version);
        says(INDEX, ClaimFault::OtherPackage(of));
    }
    if is_within(package.toolchain.cuda.as_ref()) {
        says(SOURCE, ClaimFault::OwnCompiler);
    }
    let wheels = wheels(&workspace.lock);
    let failed = |why| Error::from(PackageError::Files { package: package.name.clone(), why });
    let about = Materials { package: &package.name, version: &package.version, license: &license, wheels: &wheels };
    if files.get(SBOM) != Some(materials(files, &about).map_err(failed)?.as_slice()) {
        says(SBOM, ClaimFault::Derived);
    }
    let targets: BTreeSet<String> =
        KernelsDocument::of(files).map_err(failed)?.kernels.into_iter().map(|k| k.target).collect();
    let tools = files.get(STATEMENT).map(tools_of).unwrap_or_default();
    let about = Provenance {
        package: &package.name,
        version: &package.version,
        targets: targets.iter().map(String::as_str).collect(),
        wheels: &wheels,
        tools: &tools,
        archive: None,
    };
    if files.get(STATEMENT) != Some(statement(files, &about).map_err(failed)?.as_slice()) {
        says(STATEMENT, ClaimFault::Derived);
    }
    Ok(found)
}

/// Who signed the index, or why the signature does not count if it need not; none if it is not signed and need not be.
fn signer(
    session: &Session,
    request: &VerifyArtifactRequest,
    files: &ArtifactFiles,
) -> Result<Option<Result<Signer, Distrusted>>, Error> {
    let path = &request.path;
    let refused = |why| Error::from(VerifyArtifactError::Files { path: path.clone(), why });
    let Some(signature) = files.signature().map_err(refused)? else {
        return match request.allow_untrusted {
            true => Ok(None),
            false => Err(VerifyArtifactError::Unsigned(path.clone()).into()),
        };
    };
    // The keys that a repository lists do not count: the artifact may lie in one, or be one.
    let trust = session.told(session.trusted(None, None)?)?;
    match trust.judge_for(Purpose::Artifact, files.required(INDEX).map_err(refused)?, &signature) {
        Ok(signer) => Ok(Some(Ok(signer))),
        Err(why) if request.allow_untrusted && why.why != Distrust::Tampered => Ok(Some(Err(why))),
        Err(why) => Err(VerifyArtifactError::Distrusted { path: path.clone(), why }.into()),
    }
}

/// The files of a folder or an archive; `name` is the path as the user gave it.
///
/// # Errors
/// It cannot be read, or holds what no artifact holds.
pub(crate) fn read(place: &Path, name: &Path) -> Result<ArtifactFiles, ArtifactError> {
    let unreadable = |path: &Path| {
        let name = path.display().to_string();
        move |source| ArtifactError::Read { name, source }
    };
    let kind = std::fs::metadata(place).map_err(unreadable(name))?;
    let bounded = |path: &Path, left: u64| -> Result<Vec<u8>, ArtifactError> {
        let mut bytes = vec![];
        let file = std::fs::File::open(path).map_err(unreadable(path))?;
        file.take(left + 1).read_to_end(&mut bytes).map_err(unreadable(path))?;
        match bytes.len() as u64 > left {
            true => Err(ArtifactError::TooLarge { limit: LIMIT }),
            false => Ok(bytes),
        }
    };
    if kind.is_file() {
        return tar::unpack(&bounded(place, LIMIT)?);
    }
    if !kind.is_dir() {
        return Err(ArtifactError::NotFile(name.display().to_string()));
    }
    let (mut files, mut left) = (BTreeMap::new(), LIMIT);
    for entry in walkdir::WalkDir::new(place).sort_by_file_name() {
        let entry = entry.map_err(|e| unreadable(name)(e.into()))?;
        if entry.file_type().is_dir() {
            continue;
        }
        let relative = entry.path().strip_prefix(place).unwrap_or(entry.path());
        let Some(relative) = relative.to_str().map(String::from) else {
            return Err(ArtifactError::Name(relative.display().to_string()));
        };
        if !entry.file_type().is_file() {
            return Err(ArtifactError::NotFile(relative));
        }
        let bytes = bounded(entry.path(), left)?;
        left -= bytes.len() as u64;
        files.insert(relative, bytes);
    }
    ArtifactFiles::new(files)
}

/// The package in the sources of an artifact.
fn package_of(source: &Path, name: &Path) -> Result<(Workspace, Member), Error> {
    let (workspace, diagnostics) = workspace::load(&source.join(MANIFEST), &TEMPLATES);
    let errors: Vec<String> = diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect();
    let no_package = || VerifyArtifactError::NoPackage { path: name.into(), why: errors.join("; ") };
    let workspace = workspace.ok_or_else(no_package)?;
    let member = workspace.members.first().cloned().ok_or_else(no_package)?;
    Ok((workspace, member))
}

//! Signs bundles of evidence, says what signatures are worth, and lists or extends the keys that count.

use std::path::{Path, PathBuf};

use crate::evidence::EvidenceError;
use crate::pen::Pen;
use crate::{Error, Session};
use kforge_foundation::base::files::{write_atomically, write_if_changed};
use kforge_pipeline::release::allowed_signers::{AllowedSigners, BadLine, SignerLine};
use kforge_pipeline::release::archive::{self, Unpacked};
use kforge_pipeline::release::bundle::FORMAT_VERSION;
use kforge_pipeline::release::signature::{KeyError, NotKey, NotSignature, PublicKey, Purpose, SigningKey};
use kforge_pipeline::release::signatures_list::{SignatureView, TrustedView, trusted};
use kforge_pipeline::release::trust::{REPOSITORY_FILE, TrustSource};

/// The beginning of the comment of a key that was made to sign once.
const ONCE: &str = "signed-once";

/// Why bundles cannot be signed, or a key cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// A key cannot be used.
    #[error("cannot sign with `{}`: {why}", path.display())]
    Key {
        /// Its file.
        path: PathBuf,
        /// The reason.
        why: KeyError,
    },
    /// A key needs a passphrase, and nobody can be asked.
    #[error(
        "`{}` is behind a passphrase, and there is no terminal to ask for it: add the key to ssh-agent, and name its public half",
        .0.display()
    )]
    Passphrase(PathBuf),
    /// No key can be made.
    #[error(transparent)]
    Once(KeyError),
    /// `ssh-keygen` is not on `PATH`.
    #[error("signing with `{}`, whose private half is elsewhere, needs `ssh-keygen`, which is not on PATH", .0.display())]
    NoKeygen(PathBuf),
    /// `ssh-keygen` cannot be started.
    #[error("cannot run ssh-keygen: {0}")]
    Keygen(std::io::Error),
    /// `ssh-keygen` did not sign.
    #[error(
        "ssh-keygen did not sign with `{}`: is the key in ssh-agent (`ssh-add -l`), or its security key plugged in?",
        .0.display()
    )]
    NotSigned(PathBuf),
    /// `ssh-keygen` gave something else.
    #[error("what ssh-keygen gave is {0}")]
    Signature(NotSignature),
    /// A text names nobody.
    #[error(
        "`{0}` is no principal: expected a name such as `ci@example.com`, without commas, quotes, `!`, `#` or `*` in front"
    )]
    Principal(String),
    /// A file holds no public key.
    #[error("`{}` is {why}", path.display())]
    NotPublic {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: NotKey,
    },
    /// kforge does not check signatures by such a key.
    #[error("`{}` is a key of type {algorithm}, which kforge does not check: expected ed25519 or ecdsa-sha2-nistp256", path.display())]
    NotChecked {
        /// The file.
        path: PathBuf,
        /// The type.
        algorithm: String,
    },
    /// A file of keys has a bad line.
    #[error("`{}`: {bad}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        bad: BadLine,
    },
    /// A bundle has the signature of another key.
    #[error("`{}` is signed by {}, which another signature would replace", path.display(), .signer.as_ref().map_or_else(|| fingerprint.clone(), |signer| format!("{signer} ({fingerprint})")))]
    Signed {
        /// Its file.
        path: PathBuf,
        /// The principals of the key, if the session trusts it.
        signer: Option<String>,
        /// The fingerprint of the key.
        fingerprint: String,
    },
    /// It is not clear which file a key should be added to.
    #[error("there is no file to add the key to: name one with `--file`")]
    NoFile,
    /// No file counts for artifacts.
    #[error(
        "there is no file of keys that counts for artifacts (that of a repository never does): name one with `--file FILE`"
    )]
    NoFileForArtifacts,
}

/// How bundles are signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignWith {
    /// With the key in this file: a private key, or the public half of one that is in an agent or a security key.
    Key(PathBuf),
    /// With a new key, which is never stored. Its public half is written into a file of keys.
    Once {
        /// The file of keys, in the format `allowed_signers`.
        public: PathBuf,
        /// Who signs.
        principal: String,
    },
}

/// A bundle that was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedBundle {
    /// Its file, as the user named it.
    pub path: PathBuf,
    /// The fingerprint of the key.
    pub fingerprint: String,
    /// Whether it was of an earlier format, and is now of this one.
    pub converted: bool,
}

/// Signs bundles in place. A signature of another key is replaced only if `replace` is set. `passphrase` is asked for the passphrase of a key's file; it returns
/// none if nobody can be asked.
///
/// # Errors
/// [`SignError`], or a bundle is refused. If any bundle is refused or cannot be signed, none is changed.
pub fn sign(
    session: &Session,
    files: &[PathBuf],
    with: &SignWith,
    replace: bool,
    passphrase: &dyn Fn(&Path) -> Option<String>,
) -> Result<Vec<SignedBundle>, Error> {
    let mut bundles = vec![];
    for path in files {
        bundles.push((path, read(session, path)?));
    }
    let pen = match with {
        SignWith::Key(path) => Pen::of(session, path, passphrase)?,
        SignWith::Once { principal, .. } => {
            check_principal(principal)?;
            Pen::Here(Box::new(SigningKey::generate().map_err(SignError::Once)?))
        }
    };
    let mut signed = vec![];
    for (path, (file, unpacked)) in bundles {
        let refused = |why| Error::from(EvidenceError::Refused { path: path.clone(), why });
        let converted = unpacked.version < FORMAT_VERSION;
        let (file, document) = if converted {
            let file = archive::encode(&unpacked.bundle).map_err(refused)?;
            let document = archive::unpack(&file, archive::LIMITS).map_err(refused)?.document;
            (file, document)
        } else {
            (file, unpacked.document)
        };
        let signature = pen.sign(session, Purpose::Evidence, &document)?;
        if let Some(old) = unpacked.signature.filter(|old| !replace && old.key() != signature.key())
            && !is_earlier(session, with, old.key())?
        {
            // Whose key it is is worth saying, but the list of keys is not needed to sign.
            let judged = session.trusted_here(None).ok().and_then(|trust| trust.judge(&document, &old).ok());
            let (path, signer) = (path.clone(), judged.map(|signer| signer.principals));
            return Err(SignError::Signed { path, signer, fingerprint: old.key().fingerprint() }.into());
        }
        let fingerprint = signature.key().fingerprint();
        let file = archive::sign(&file, &signature).map_err(refused)?;
        signed.push((SignedBundle { path: path.clone(), fingerprint, converted }, file));
    }
    // The public half comes first: a signature whose key is lost is worth nothing.
    if let (SignWith::Once { public, principal }, Pen::Here(key)) = (with, &pen) {
        let line = SignerLine::new(Purpose::Evidence, principal, key.public(), ONCE);
        write_once(&session.cwd.join(public), &line)?;
    }
    for (bundle, file) in &signed {
        let place = session.cwd.join(&bundle.path);
        write_if_changed(&place, file).map_err(Error::write(&place))?;
    }
    Ok(signed.into_iter().map(|(bundle, _)| bundle).collect())
}

/// Whether a key signed once for the same principal, so that its line is replaced by that of the new key.
fn is_earlier(session: &Session, with: &SignWith, key: &PublicKey) -> Result<bool, Error> {
    let SignWith::Once { public, principal } = with else { return Ok(false) };
    let (_, signers) = keys(&session.cwd.join(public))?;
    let is_of = |line: &SignerLine| line.principals == *principal && line.comment == ONCE && line.key == *key;
    Ok(signers.lines.iter().any(is_of))
}

/// The bytes of a bundle's file, and what they hold.
fn read(session: &Session, path: &Path) -> Result<(Vec<u8>, Unpacked), EvidenceError> {
    let place = session.cwd.join(path);
    std::fs::File::open(&place).map_err(|source| EvidenceError::Read { path: path.into(), source })?;
    let refused = |why| EvidenceError::Refused { path: path.into(), why };
    let file = archive::bytes(&place).map_err(refused)?;
    let unpacked = archive::unpack(&file, archive::LIMITS).map_err(refused)?;
    Ok((file, unpacked))
}

/// Whether a text can stand for one principal in a file of keys.
fn check_principal(name: &str) -> Result<(), SignError> {
    let wrong = name.is_empty()
        || name.starts_with(['!', '#'])
        || name.chars().any(|c| matches!(c, '"' | ',' | '*' | '?') || c.is_whitespace() || c.is_control());
    if wrong { Err(SignError::Principal(name.into())) } else { Ok(()) }
}

/// The text of a file of keys, which may not exist yet, and its lines.
fn keys(path: &Path) -> Result<(String, AllowedSigners), Error> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(Error::read(path)(e)),
    };
    let signers = AllowedSigners::parse(&text).map_err(|bad| SignError::Line { path: path.into(), bad })?;
    Ok((text, signers))
}

/// Writes the line of a key that signs once, in place of the last such key of the same principal. Other lines stay.
fn write_once(path: &Path, line: &SignerLine) -> Result<(), Error> {
    let (text, signers) = keys(path)?;
    let replaced = |number: usize| {
        let old = signers.lines.iter().find(|old| old.number == number);
        old.is_some_and(|old| old.principals == line.principals && old.comment == ONCE)
    };
    let kept = text.lines().enumerate().filter(|(at, _)| !replaced(at + 1)).map(|(_, line)| format!("{line}\n"));
    let text = format!("{}{}\n", kept.collect::<String>(), line.text());
    write_atomically(path, text.as_bytes(), true).map_err(Error::write(path))
}

/// What the signatures of bundles are worth, for whoever trusts the keys that count here, or that count in the base revision.
///
/// # Errors
/// A bundle is refused, or the trusted keys are not known.
pub fn verify(session: &Session, files: &[PathBuf], base: Option<&str>) -> Result<Vec<SignatureView>, Error> {
    let trust = session.trusted_here(base)?;
    let view = |path: &PathBuf| {
        let (_, unpacked) = read(session, path)?;
        let judged = unpacked.signature.map(|signature| trust.judge(&unpacked.document, &signature));
        Ok(SignatureView::new(path.display().to_string(), unpacked.bundle.records().count() as u64, judged))
    };
    files.iter().map(view).collect()
}

/// The keys that may sign evidence, and where they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKeys {
    /// The source.
    pub source: TrustSource,
    /// The keys, in the order of their lines.
    pub keys: Vec<TrustedView>,
}

/// The keys that may sign evidence here, or that may with a base revision.
///
/// # Errors
/// The trusted keys are not known.
pub fn list(session: &Session, base: Option<&str>) -> Result<TrustedKeys, Error> {
    let trust = session.trusted_here(base)?;
    Ok(TrustedKeys { source: trust.source.clone(), keys: trusted(&trust) })
}

/// A key that was added to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedKey {
    /// The file.
    pub path: PathBuf,
    /// The key's fingerprint.
    pub fingerprint: String,
    /// Whether the file already had such a line.
    pub was_there: bool,
    /// Whether the key is for artifacts, and the file counts for them only once an option or a setting names it.
    pub is_to_be_named: bool,
}

/// Adds a key to a file: the named one, else the one that counts here for the purpose, else, for evidence, the repository's.
///
/// # Errors
/// [`SignError`], or a file cannot be read or written.
pub fn add(
    session: &Session,
    purpose: Purpose,
    principal: &str,
    key: &Path,
    file: Option<&Path>,
) -> Result<AddedKey, Error> {
    check_principal(principal)?;
    let place = session.cwd.join(key);
    let text = std::fs::read_to_string(&place).map_err(Error::read(&place))?;
    let (public, comment) = PublicKey::parse(&text).map_err(|why| SignError::NotPublic { path: key.into(), why })?;
    if !public.is_supported() {
        return Err(SignError::NotChecked { path: key.into(), algorithm: public.algorithm() }.into());
    }
    let counting = match purpose {
        Purpose::Artifact => session.named_trust().and_then(|source| source.file().cloned()),
        Purpose::Evidence if file.is_some() => None,
        Purpose::Evidence => session.trusted_here(None)?.source.file().cloned(),
    };
    let path = match (file, &counting, purpose) {
        (Some(file), ..) => session.cwd.join(file),
        (None, Some(path), _) => path.clone(),
        (None, None, Purpose::Artifact) => return Err(SignError::NoFileForArtifacts.into()),
        (None, None, Purpose::Evidence) if session.has_manifest() => session.workspace()?.root.join(REPOSITORY_FILE),
        (None, None, Purpose::Evidence) => return Err(SignError::NoFile.into()),
    };
    let (text, signers) = keys(&path)?;
    let line = SignerLine::new(purpose, principal, public, &comment);
    let is_same =
        |old: &SignerLine| old.principals == line.principals && old.key == line.key && old.is_for(purpose.namespace());
    let was_there = signers.lines.iter().any(is_same);
    if !was_there {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let text = format!("{text}{end}{}\n", line.text());
        write_atomically(&path, text.as_bytes(), true).map_err(Error::write(&path))?;
    }
    let is_to_be_named = purpose == Purpose::Artifact && counting.as_ref() != Some(&path);
    Ok(AddedKey { path, fingerprint: line.key.fingerprint(), was_there, is_to_be_named })
}

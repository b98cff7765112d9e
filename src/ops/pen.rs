//! What signs documents: a private key in a file, or `ssh-keygen` for keys in agents and hardware. Knows keys and programs; does not know what is signed.

use std::path::{Path, PathBuf};

use crate::evidence::sign::SignError;
use crate::{Error, Session};
use kforge_foundation::process::interactive;
use kforge_pipeline::release::signature::{KeyFile, Purpose, Signature, SigningKey};

/// Asks for the passphrase of a key's file; none if nobody can be asked.
pub type Passphrase<'a> = dyn Fn(&Path) -> Option<String> + 'a;

/// What signs a document.
pub(crate) enum Pen {
    /// A key in memory.
    Here(Box<SigningKey>),
    /// `ssh-keygen`, which finds the private half of this key.
    Keygen { program: PathBuf, key: PathBuf },
}

impl Pen {
    /// Signs bytes for a purpose.
    pub(crate) fn sign(&self, session: &Session, purpose: Purpose, document: &[u8]) -> Result<Signature, SignError> {
        let (program, key) = match self {
            Pen::Here(key) => return key.sign(purpose.namespace(), document).map_err(SignError::Once),
            Pen::Keygen { program, key } => (program, key),
        };
        let name = key.display().to_string();
        let args = ["-Y", "sign", "-n", purpose.namespace(), "-f", name.as_str()];
        let ended = interactive(program, &args, session.environment.all(), document).map_err(SignError::Keygen)?;
        let (status, text) = ended;
        if !status.success() {
            return Err(SignError::NotSigned(key.clone()));
        }
        Signature::parse(&String::from_utf8_lossy(&text)).map_err(SignError::Signature)
    }

    /// What signs with the key in a file: a private key, or the public half of one that is in an agent or a security key.
    pub(crate) fn of(session: &Session, path: &Path, passphrase: &Passphrase<'_>) -> Result<Pen, Error> {
        let place = session.cwd.join(path);
        let text = std::fs::read_to_string(&place).map_err(Error::read(&place))?;
        let wrong = |why| SignError::Key { path: path.into(), why };
        Ok(match KeyFile::parse(&text).map_err(wrong)? {
            KeyFile::Private(key) => Pen::Here(Box::new(key)),
            KeyFile::Encrypted(key) => {
                let passphrase = passphrase(path).ok_or_else(|| SignError::Passphrase(path.into()))?;
                Pen::Here(Box::new(key.open(&passphrase).map_err(wrong)?))
            }
            KeyFile::Elsewhere(_) => {
                let programs = session.environment.path().split(':').map(|folder| Path::new(folder).join("ssh-keygen"));
                let program = programs.into_iter().find(|program| program.is_absolute() && program.is_file());
                Pen::Keygen { program: program.ok_or_else(|| SignError::NoKeygen(path.into()))?, key: place }
            }
        })
    }
}

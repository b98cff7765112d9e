//! Signatures of bundles and artifacts, in OpenSSH's format (SSHSIG), and the keys that make them. Knows keys and bytes; does not know whom a build trusts
//! ([`super::trust`]).
//!
//! | decision | because |
//! |---|---|
//! | the namespace is [`NAMESPACE`] or [`ARTIFACT_NAMESPACE`] | a signature that somebody made for a git commit or another file says nothing about evidence |
//! | ed25519 and ECDSA P-256, also in security keys (`sk-`) | these are what people have; the crate checks them in constant time |
//! | no RSA | the only implementation for Rust leaks its private key by timing (RUSTSEC-2023-0071); `ssh-keygen` makes another key in a second |
//! | the crate signs, or `ssh-keygen -Y sign` does | a key in an agent or in hardware never leaves it |

use ssh_key::private::KeypairData;
use ssh_key::public::{EcdsaPublicKey, KeyData};
use ssh_key::rand_core::OsRng;
use ssh_key::{Algorithm, HashAlg, LineEnding, PrivateKey, SshSig};

mod short_number;

/// What a signature of a bundle is for: the namespace of SSHSIG.
pub const NAMESPACE: &str = "kforge-evidence";

/// What a signature of an artifact is for: the namespace of SSHSIG. A runner that may sign evidence need not be allowed to release.
pub const ARTIFACT_NAMESPACE: &str = "kforge-artifact";

/// What is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A bundle of evidence.
    Evidence,
    /// An artifact.
    Artifact,
}

impl Purpose {
    /// The namespace of SSHSIG.
    pub fn namespace(self) -> &'static str {
        match self {
            Purpose::Evidence => NAMESPACE,
            Purpose::Artifact => ARTIFACT_NAMESPACE,
        }
    }

    /// What is signed, in words, in the plural.
    pub fn plural(self) -> &'static str {
        match self {
            Purpose::Evidence => "evidence",
            Purpose::Artifact => "artifacts",
        }
    }
}

/// A public key. Two keys are equal if they verify the same signatures, whatever their comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    data: KeyData,
}

/// A text is not a public key.
#[derive(Debug, thiserror::Error)]
pub enum NotKey {
    /// It is the private half of a key.
    #[error("a private key: expected its public half, in the file with `.pub` after its name")]
    Private,
    /// It is something else.
    #[error("not a public key: {0}")]
    Other(ssh_key::Error),
}

impl PublicKey {
    /// The key in `TYPE BASE64 [COMMENT]`, as in a file `*.pub`, and its comment.
    ///
    /// # Errors
    /// The text is something else.
    pub fn parse(text: &str) -> Result<(PublicKey, String), NotKey> {
        let text = text.trim();
        if is_private(text) {
            return Err(NotKey::Private);
        }
        let key = ssh_key::PublicKey::from_openssh(text).map_err(NotKey::Other)?;
        Ok((PublicKey { data: key.key_data().clone() }, key.comment().to_string()))
    }

    /// The key as `TYPE BASE64`.
    pub fn text(&self) -> String {
        // Only a key whose parts do not fit into memory has no text.
        ssh_key::PublicKey::from(self.data.clone()).to_openssh().unwrap_or_default()
    }

    /// The fingerprint that `ssh-keygen -l` prints: `SHA256:...`.
    pub fn fingerprint(&self) -> String {
        self.data.fingerprint(HashAlg::Sha256).to_string()
    }

    /// The algorithm as OpenSSH names it: `ssh-ed25519`.
    pub fn algorithm(&self) -> String {
        self.data.algorithm().to_string()
    }

    /// Whether this kforge can check signatures by such a key.
    pub fn is_supported(&self) -> bool {
        match &self.data {
            KeyData::Ed25519(_) | KeyData::SkEd25519(_) | KeyData::SkEcdsaSha2NistP256(_) => true,
            KeyData::Ecdsa(key) => matches!(key, EcdsaPublicKey::NistP256(_)),
            _ => false,
        }
    }
}

/// Whether a text is that of a private key in a form of PEM, as OpenSSH and OpenSSL write it.
fn is_private(text: &str) -> bool {
    let label = text.lines().next().and_then(|line| line.strip_prefix("-----BEGIN "));
    label.is_some_and(|label| label.trim_end().trim_end_matches('-').ends_with("PRIVATE KEY"))
}

/// A signature, which may be by anybody and over anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    text: String,
    parsed: SshSig,
    key: PublicKey,
}

/// A text is not an SSH signature.
#[derive(Debug, thiserror::Error)]
#[error("not an SSH signature: {0}")]
pub struct NotSignature(ssh_key::Error);

impl Signature {
    /// The signature in an armoured text (`-----BEGIN SSH SIGNATURE-----`).
    ///
    /// # Errors
    /// The text is something else.
    pub fn parse(text: &str) -> Result<Signature, NotSignature> {
        let parsed = SshSig::from_pem(text).map_err(NotSignature)?;
        let key = PublicKey { data: parsed.public_key().clone() };
        Ok(Signature { text: text.to_string(), parsed, key })
    }

    /// The armoured text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The key that is said to have made it. [`Signature::verifies`] says whether it did.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The namespace for which it was made.
    pub fn namespace(&self) -> &str {
        self.parsed.namespace()
    }

    /// Whether its key made it over these bytes.
    pub fn verifies(&self, document: &[u8]) -> bool {
        let key = ssh_key::PublicKey::from(self.key.data.clone());
        key.verify(self.parsed.namespace(), document, &self.parsed).is_ok()
    }
}

/// A private key that can sign here. Its memory is wiped when it is dropped.
pub struct SigningKey(PrivateKey);

/// What the text of a key file holds.
pub enum KeyFile {
    /// A private key that can sign here.
    Private(SigningKey),
    /// A private key behind a passphrase.
    Encrypted(EncryptedKey),
    /// A public key, or a private one that is only a handle of a security key: `ssh-keygen` finds what signs.
    Elsewhere(PublicKey),
}

/// A private key behind a passphrase.
pub struct EncryptedKey(PrivateKey);

/// Why a key cannot be used to sign.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file holds something else.
    #[error("it is neither a private key in OpenSSH's format nor a public key: {0}")]
    NotKey(ssh_key::Error),
    /// Signatures by such a key are not supported.
    #[error(
        "kforge does not sign with {0} keys: expected ed25519 or ecdsa-sha2-nistp256; `ssh-keygen -t ed25519` makes one"
    )]
    Unsupported(Algorithm),
    /// The passphrase is wrong, or the key is damaged.
    #[error("the passphrase does not open it: {0}")]
    Passphrase(ssh_key::Error),
    /// The number of an ECDSA key begins with a zero byte, as that of 1 key in 256 does, and the key is behind a passphrase.
    #[error(
        "kforge does not read this ecdsa key behind a passphrase, because its number begins with a zero byte; `ssh-keygen -t ed25519` makes another key"
    )]
    ShortNumber,
    /// The key does not sign.
    #[error("it does not sign: {0}")]
    Sign(ssh_key::Error),
    /// No key can be made.
    #[error("no key can be made: {0}")]
    Random(ssh_key::Error),
}

impl KeyFile {
    /// What the text of a key file holds.
    ///
    /// # Errors
    /// The file holds no key, or one that is not supported.
    pub fn parse(text: &str) -> Result<KeyFile, KeyError> {
        if !text.trim_start().starts_with("-----") {
            let key = ssh_key::PublicKey::from_openssh(text.trim()).map_err(KeyError::NotKey)?;
            let public = PublicKey { data: key.key_data().clone() };
            return match public.is_supported() {
                true => Ok(KeyFile::Elsewhere(public)),
                false => Err(KeyError::Unsupported(key.algorithm())),
            };
        }
        let key = match (PrivateKey::from_openssh(text), short_number::padded(text)) {
            (Err(_), Some(padded)) => PrivateKey::from_openssh(&padded),
            (read, _) => read,
        };
        let key = key.map_err(KeyError::NotKey)?;
        let public = PublicKey { data: key.public_key().key_data().clone() };
        match key.algorithm() {
            algorithm if !public.is_supported() => Err(KeyError::Unsupported(algorithm)),
            Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256 => Ok(KeyFile::Elsewhere(public)),
            _ if key.is_encrypted() => Ok(KeyFile::Encrypted(EncryptedKey(key))),
            _ => Ok(KeyFile::Private(SigningKey(key))),
        }
    }
}

impl EncryptedKey {
    /// The key, given its passphrase.
    ///
    /// # Errors
    /// The passphrase is wrong.
    pub fn open(&self, passphrase: &str) -> Result<SigningKey, KeyError> {
        self.0.decrypt(passphrase).map(SigningKey).map_err(|error| match error {
            // Only the contents of a key that was opened have a length that is not correct.
            ssh_key::Error::Encoding(_) if self.0.algorithm().is_ecdsa() => KeyError::ShortNumber,
            error => KeyError::Passphrase(error),
        })
    }
}

impl SigningKey {
    /// A new ed25519 key from the system's entropy. It exists only in memory.
    ///
    /// # Errors
    /// The system gives no entropy.
    pub fn generate() -> Result<SigningKey, KeyError> {
        PrivateKey::random(&mut OsRng, Algorithm::Ed25519).map(SigningKey).map_err(KeyError::Random)
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        PublicKey { data: self.0.public_key().key_data().clone() }
    }

    /// Signs bytes for a namespace ([`Purpose::namespace`]).
    ///
    /// # Errors
    /// The key does not sign.
    pub fn sign(&self, namespace: &str, document: &[u8]) -> Result<Signature, KeyError> {
        if let KeypairData::Encrypted(_) = self.0.key_data() {
            return Err(KeyError::Sign(ssh_key::Error::Encrypted));
        }
        let parsed = self.0.sign(namespace, HashAlg::Sha512, document).map_err(KeyError::Sign)?;
        let text = parsed.to_pem(LineEnding::LF).map_err(KeyError::Sign)?;
        Ok(Signature { text, key: PublicKey { data: parsed.public_key().clone() }, parsed })
    }
}

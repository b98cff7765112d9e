//! Signatures of bundles and the keys that a build trusts, for people and programs. Knows values.

use serde::{Deserialize, Serialize};

use super::trust::{Distrust, Distrusted};
use super::trust::{Signer, Trust};
use kforge_types::record::{FORMAT_VERSION, Standing};

/// What the signature of a bundle is worth: one line of `kforge evidence verify --message-format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SignatureView {
    /// Version of this format.
    pub format_version: u32,
    /// The bundle's file, as it was named.
    pub file: String,
    /// How the records in it stand for whoever trusts the keys that this build trusts: `signed` or `claimed`.
    pub standing: Standing,
    /// The principals of the key that signed it, if the signature counts.
    pub signer: Option<String>,
    /// The fingerprint of the key that signed it; none if it is unsigned.
    pub fingerprint: Option<String>,
    /// Why the signature does not count, in one word: `unsigned`, `namespace`, `unsupported`, `tampered`, `unknown-key`, `not-for-evidence`, `not-yet-valid` or
    /// `expired`.
    pub reason: Option<String>,
    /// The reason for people.
    pub because: Option<String>,
    /// The number of records.
    pub records: u64,
}

impl SignatureView {
    /// What the signature of a bundle is worth; none if it has none.
    pub fn new(file: String, records: u64, judged: Option<Result<Signer, Distrusted>>) -> SignatureView {
        let plain = SignatureView {
            format_version: FORMAT_VERSION,
            file,
            standing: Standing::Claimed,
            signer: None,
            fingerprint: None,
            reason: None,
            because: None,
            records,
        };
        match judged {
            None => SignatureView { reason: Some("unsigned".into()), because: Some("it is unsigned".into()), ..plain },
            Some(Ok(Signer { principals, fingerprint })) => SignatureView {
                standing: Standing::Signed,
                signer: Some(principals),
                fingerprint: Some(fingerprint),
                ..plain
            },
            Some(Err(distrusted)) => SignatureView {
                reason: Some(distrusted.why.name().into()),
                because: Some(distrusted.to_string()),
                fingerprint: Some(distrusted.fingerprint),
                ..plain
            },
        }
    }

    /// The view in one line.
    pub fn text(&self) -> String {
        let records = kforge_foundation::base::count(self.records, "record");
        match (&self.signer, &self.fingerprint, &self.because) {
            (Some(signer), Some(fingerprint), _) => {
                format!("`{}`: signed by {signer} ({fingerprint}), {records}", self.file)
            }
            (_, _, because) => {
                format!("`{}`: only claimed, {records}: {}", self.file, because.as_deref().unwrap_or_default())
            }
        }
    }
}

/// A key that a build looks at: one line of `kforge evidence trust --message-format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrustedView {
    /// Version of this format.
    pub format_version: u32,
    /// Where the key comes from: `flag`, `variable`, `home`, `revision` or `repository`.
    pub source: String,
    /// The source for people, with the file.
    pub named: String,
    /// The number of the line in the file, from 1.
    pub line: u64,
    /// Who signs with the key, as the line states it.
    pub principals: String,
    /// The key's fingerprint.
    pub fingerprint: String,
    /// The key's type: `ssh-ed25519`.
    pub algorithm: String,
    /// The namespaces that it may sign for, as patterns; none for all.
    pub namespaces: Option<String>,
    /// The key counts from this time on, as RFC 3339.
    pub valid_after: Option<String>,
    /// The key counts up to this time, as RFC 3339.
    pub valid_before: Option<String>,
    /// Why a signature of evidence by the key does not count now, in one word: `unsupported`, `not-for-evidence`, `not-yet-valid` or `expired`; none if it counts.
    pub reason: Option<String>,
}

/// The keys that a build looks at, in the order of their lines.
pub fn trusted(trust: &Trust) -> Vec<TrustedView> {
    let time = |time: &Option<jiff::Timestamp>| time.map(|time| time.to_string());
    let view = |line: &super::allowed_signers::SignerLine| {
        let unsupported = (!line.key.is_supported()).then(|| Distrust::Unsupported(line.key.algorithm()));
        TrustedView {
            format_version: FORMAT_VERSION,
            source: trust.source.kind().into(),
            named: trust.source.to_string(),
            line: line.number as u64,
            principals: line.principals.clone(),
            fingerprint: line.key.fingerprint(),
            algorithm: line.key.algorithm(),
            namespaces: line.namespaces.clone(),
            valid_after: time(&line.valid_after),
            valid_before: time(&line.valid_before),
            reason: unsupported.or_else(|| trust.refuses(line)).map(|why| why.name().into()),
        }
    };
    trust.signers.lines.iter().map(view).collect()
}

impl TrustedView {
    /// The view in one line.
    pub fn text(&self) -> String {
        let mut out = format!("{}  {} {}", self.principals, self.fingerprint, self.algorithm);
        let times = [("from", &self.valid_after), ("until", &self.valid_before)];
        for (word, time) in times.iter().filter_map(|(word, time)| Some((word, time.as_ref()?))) {
            out += &format!(", {word} {time}");
        }
        match self.reason.as_deref() {
            None => {}
            Some("expired") => out += " (expired: does not count)",
            Some("not-yet-valid") => out += " (does not count yet)",
            Some("not-for-evidence") => out += " (not for evidence: its `namespaces` leave it out)",
            Some(_) => out += " (kforge does not check such keys)",
        }
        out
    }
}

//! Who signed a record: asked of whoever knows signatures. Knows names of signed documents, as the index keeps them beside records; knows no keys.

use kforge_foundation::base::Digest;

/// The extension of an empty file beside a record that names, after `@`, a signed document that holds the record.
pub(crate) const SIGNED: &str = "signed";

/// Says whose trusted key signed the document that a record came in.
pub trait Signers: Send + Sync {
    /// The principal of the trusted key that signed a document of that name; none if no trusted key did, or if the document does not hold the record. `origin`
    /// is where the record came from, for messages.
    fn signer(&self, document: &str, origin: &str, record: &Digest) -> Option<String>;
}

/// Trusts nobody.
pub(super) struct Nobody;

impl Signers for Nobody {
    fn signer(&self, _: &str, _: &str, _: &Digest) -> Option<String> {
        None
    }
}

/// The name of the signed document in the name of a file beside a record.
pub(super) fn document<'n>(file: &'n str, record: &Digest) -> Option<&'n str> {
    let name = file.strip_prefix(&record.hex())?.strip_prefix('@')?.strip_suffix(SIGNED)?.strip_suffix('.')?;
    // A file of another make could lead out of the folder of documents.
    (!name.is_empty() && name.bytes().all(|b| b.is_ascii_hexdigit())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_document_beside_this_record_is_taken() {
        let (record, other) = (Digest::of(b"a"), Digest::of(b"b"));
        let hex = record.hex();
        assert_eq!(document(&format!("{hex}@0af3.signed"), &record), Some("0af3"));
        for name in [
            format!("{hex}@0af3.json"),
            format!("{hex}@.signed"),
            format!("{hex}@..%2fx.signed"),
            format!("{}@0af3.signed", other.hex()),
        ] {
            assert_eq!(document(&name, &record), None, "{name}");
        }
    }
}

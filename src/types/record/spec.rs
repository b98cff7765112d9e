//! Everything that a step may see. The key is the encoding of exactly this value, so a step cannot read anything that was not hashed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::StepKind;
use kforge_foundation::base::Digest;
use kforge_foundation::base::encode::{FieldWriter, Hasher, Lines, write_value};

/// How an input's bytes are laid out for the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// One file.
    Blob,
    /// A folder. The blob is a [`Tree`], whose files are laid out under the input's name.
    Tree,
}

/// One input by content, or absent because the step that should have produced it gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Input {
    /// The digest of the contents; none if absent.
    pub digest: Option<Digest>,
    /// How the contents are laid out.
    pub form: Form,
}

/// A folder by content: package-relative names of files, and their digests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tree {
    /// Relative names with `/`, never `..`, and the digest of each file.
    pub files: BTreeMap<String, Digest>,
}

/// Everything that a step may see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Spec {
    /// What to do.
    pub kind: StepKind,
    /// Semantic version of the kind.
    pub version: u32,
    /// The code that executes the step, by content ([`super::implementation`]). None if a protocol in the parameters takes its place.
    pub implementation: Option<Digest>,
    /// Its parameters: one of the typed structs of [`super::params`] and its neighbors, serialized. They contain no names of packages, kernels, operators or
    /// shapes, no absolute paths, and no times.
    pub params: serde_json::Value,
    /// Inputs by name.
    pub inputs: BTreeMap<String, Input>,
}

/// Separates these keys from every other use of blake3.
pub const KEY_CONTEXT: &str = "kforge 2026-11 step key v2";

impl Spec {
    /// Passes every field to `writer` in canonical order. Hashing and explaining share this walk.
    pub fn write(&self, writer: &mut dyn FieldWriter) {
        writer.field("kind", b's', self.kind.name().as_bytes(), &|| self.kind.name().into());
        writer.field("version", b'i', &self.version.to_le_bytes(), &|| self.version.to_string());
        write_digest("implementation", self.implementation.as_ref(), b'b', writer);
        write_value("params", &self.params, writer);
        writer.field("inputs", b'm', &(self.inputs.len() as u64).to_le_bytes(), &|| {
            format!("{} inputs", self.inputs.len())
        });
        for (name, input) in &self.inputs {
            let form = if input.form == Form::Tree { b't' } else { b'b' };
            write_digest(&format!("inputs.{name}"), input.digest.as_ref(), form, writer);
        }
    }

    /// The key: equal keys mean equal results.
    pub fn key(&self) -> Digest {
        let mut hasher = Hasher::new(KEY_CONTEXT);
        self.write(&mut hasher);
        hasher.finish()
    }

    /// The fields that were hashed, as `(path, value)` lines.
    pub fn explain(&self) -> Vec<(String, String)> {
        let mut lines = Lines::default();
        self.write(&mut lines);
        lines.fields
    }
}

/// Writes the digest of an input, or that the input is absent.
fn write_digest(path: &str, digest: Option<&Digest>, form: u8, writer: &mut dyn FieldWriter) {
    let Some(digest) = digest else { return writer.field(path, b'n', &[], &|| "absent".into()) };
    let mut bytes = digest.hash().to_vec();
    bytes.extend(digest.size().to_le_bytes());
    bytes.push(form);
    writer.field(path, b'd', &bytes, &|| digest.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        let inputs = [
            ("a".to_string(), Input { digest: Some(Digest::of(b"a")), form: Form::Blob }),
            ("b".to_string(), Input { digest: None, form: Form::Blob }),
        ];
        Spec {
            kind: StepKind::Compile,
            version: 1,
            implementation: None,
            params: serde_json::json!({"std": "c++17"}),
            inputs: inputs.into(),
        }
    }

    #[test]
    fn every_field_enters_the_key() {
        let base = spec().key();
        let changes: [fn(&mut Spec); 9] = [
            |s| s.kind = StepKind::Inspect,
            |s| s.version = 2,
            |s| s.implementation = Some(Digest::of(b"code")),
            |s| s.implementation = Some(Digest::of(b"other code")),
            |s| s.params["std"] = "c++20".into(),
            |s| s.inputs.get_mut("a").unwrap().digest = Some(Digest::of(b"x")),
            |s| s.inputs.get_mut("a").unwrap().digest = None,
            |s| s.inputs.get_mut("a").unwrap().form = Form::Tree,
            |s| {
                s.inputs.remove("b");
            },
        ];
        for (i, change) in changes.iter().enumerate() {
            let mut other = spec();
            change(&mut other);
            assert_ne!(other.key(), base, "change {i}");
        }
    }

    #[test]
    fn the_explanation_names_what_was_hashed() {
        let lines = spec().explain();
        assert!(lines.contains(&("params.std".into(), "c++17".into())), "{lines:?}");
        assert!(lines.contains(&("inputs.b".into(), "absent".into())), "{lines:?}");
    }
}

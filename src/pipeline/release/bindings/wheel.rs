//! A plain wheel of the Python package: for whoever installs it rather than load its folder. Knows the format of wheels (binary distribution format 1.0);
//! installs nothing.
//!
//! Members are stored, not compressed, in a fixed order and without times, so that equal artifacts give equal bytes with any version of a compressor.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::error::BindingsError;
use super::plan::Plan;
use super::python::package;

/// The wheel: its name and its bytes.
///
/// # Errors
/// The version has no form in Python, or the wheel cannot be packed.
pub fn wheel(plan: &Plan) -> Result<(String, Vec<u8>), BindingsError> {
    let version = version(&plan.version).ok_or_else(|| BindingsError::Version(plan.version.clone()))?;
    let module = &plan.name;
    let info = format!("{module}-{version}.dist-info");
    let mut files: BTreeMap<String, Vec<u8>> =
        package(plan)?.into_iter().map(|(name, bytes)| (format!("{module}/{name}"), bytes)).collect();
    let metadata = format!(
        "Metadata-Version: 2.4\nName: {}\nVersion: {version}\nSummary: Kernels of the kforge artifact sha256:{}\n\
         License-Expression: {}\nRequires-Python: >=3.9\n",
        plan.name.replace('_', "-"),
        plan.root,
        plan.license
    );
    files.insert(format!("{info}/METADATA"), metadata.into_bytes());
    let kforge = env!("CARGO_PKG_VERSION");
    let wheel = format!("Wheel-Version: 1.0\nGenerator: kforge {kforge}\nRoot-Is-Purelib: true\nTag: py3-none-any\n");
    files.insert(format!("{info}/WHEEL"), wheel.into_bytes());
    let mut record = String::new();
    for (name, bytes) in &files {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        // Names with commas are quoted, as in any file of comma-separated values.
        let name = if name.contains(',') { format!("\"{name}\"") } else { name.clone() };
        let _ = writeln!(record, "{name},sha256={digest},{}", bytes.len());
    }
    let _ = writeln!(record, "{info}/RECORD,,");
    let mut zip = ZipWriter::new(Cursor::new(vec![]));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    for (name, bytes) in files.iter().chain([(&format!("{info}/RECORD"), &record.into_bytes())]) {
        zip.start_file(name, options)?;
        zip.write_all(bytes)?;
    }
    Ok((format!("{module}-{version}-py3-none-any.whl"), zip.finish()?.into_inner()))
}

/// A semantic version as Python writes it; none if Python has no such version.
fn version(semantic: &str) -> Option<String> {
    let Some((release, pre)) = semantic.split_once('-') else {
        let is_plain = semantic.chars().all(|c| c.is_ascii_digit() || c == '.');
        return is_plain.then(|| semantic.to_string());
    };
    let (word, number) = pre.split_once('.').unwrap_or((pre, "0"));
    let letter = match word {
        "alpha" | "a" => "a",
        "beta" | "b" => "b",
        "rc" => "rc",
        "dev" => ".dev",
        _ => return None,
    };
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    is_number.then(|| format!("{release}{letter}{number}"))
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_are_those_of_python() {
        let of = |text| version(text).unwrap_or_default();
        assert_eq!(
            ["1.2.3", "1.0.0-rc.1", "1.0.0-alpha", "0.1.0-dev.4"].map(of),
            ["1.2.3", "1.0.0rc1", "1.0.0a0", "0.1.0.dev4"]
        );
        assert_eq!(["1.0.0+build", "1.0.0-nightly.1", "1.0.0-rc.x"].map(version), [None, None, None]);
    }
}

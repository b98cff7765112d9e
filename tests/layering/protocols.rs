//! Protocols of devices: an edit of the code behind a protocol fails the test until the protocol's number is raised or the digest is renewed.
//!
//! Code that observes a device does not enter keys, because an observation needs a device and must survive an upgrade of kforge. Instead, the parameters hold a
//! number for that code, which people raise. `protocols.toml` holds the numbers and a digest of every file behind them, so that nobody changes the requests to
//! a device or the reading of its answers without deciding whether old observations remain valid.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kforge::plan::baselines::BASELINE_PROTOCOL;
use kforge::plan::bound::{PEAKS_PROTOCOL, PROFILE_PROTOCOL};
use kforge::plan::calls::CALLS_PROTOCOL;
use kforge::plan::timing_steps::{BENCH_PROTOCOL, PAIRS_PROTOCOL};
use kforge::plan::variants::{HOST_PROTOCOL, SANITIZE_PROTOCOL, TORCH_PROTOCOL, VERIFY_PROTOCOL};
use serde::{Deserialize, Serialize};

use crate::imports::used;
use crate::packages::{digest, src};

/// Each protocol: its name, its number, and the first files of its code. The files that these use belong to it too.
const PROTOCOLS: [(&str, u32, &[&str]); 10] = [
    ("VERIFY_PROTOCOL", VERIFY_PROTOCOL, &["cuda/device/verify.rs", RUNNER]),
    ("HOST_PROTOCOL", HOST_PROTOCOL, &["cuda/device/hosted/verify.rs", "cuda/device/hosted/runner.rs"]),
    (
        "TORCH_PROTOCOL",
        TORCH_PROTOCOL,
        &["worker/steps/verifier/torch.rs", "harness/candidate/start.rs", "harness/candidate/memory.rs"],
    ),
    (
        "CALLS_PROTOCOL",
        CALLS_PROTOCOL,
        &[
            "worker/steps/verifier/calls.rs",
            "worker/steps/verifier/call_pairs.rs",
            "cuda/device/calls/process.rs",
            "harness/candidate/start.rs",
        ],
    ),
    ("SANITIZE_PROTOCOL", SANITIZE_PROTOCOL, &["cuda/device/sanitize.rs", RUNNER]),
    ("BENCH_PROTOCOL", BENCH_PROTOCOL, &["cuda/device/bench.rs", RUNNER]),
    ("PAIRS_PROTOCOL", PAIRS_PROTOCOL, &["cuda/device/pairs.rs", RUNNER]),
    ("BASELINE_PROTOCOL", BASELINE_PROTOCOL, &["cuda/device/baseline.rs", RUNNER]),
    ("PROFILE_PROTOCOL", PROFILE_PROTOCOL, &["cuda/device/profile.rs", RUNNER]),
    ("PEAKS_PROTOCOL", PEAKS_PROTOCOL, &["cuda/device/peaks/step.rs", RUNNER]),
];

/// The process that holds a device's context. It is started, not called.
const RUNNER: &str = "cuda/device/runner.rs";

/// Folders whose code counts. Other code enters keys, or does not look into observations.
const WITHIN: [&str; 4] = ["cuda/device", "harness", "numerics/measure", "worker/steps/verifier"];

/// Files of the device's code that belong to no protocol, and why.
const APART: [(&str, &str); 6] = [
    ("cuda/device/mod.rs", "declares"),
    ("cuda/device/testing.rs", "for tests"),
    ("cuda/device/probe.rs", "lists devices and reads no answer of theirs about a kernel"),
    ("cuda/device/examine", "starts the driver without a candidate, for people and for the text of an error"),
    ("cuda/device/products", "products of the oracle, which have the bits of those made on the host"),
    ("cuda/device/kernels.cu", "the source of `kernels.ptx`, which is what runs"),
];

/// The path of `protocols.toml`.
fn record() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layering/protocols.toml")
}

/// The contents of `protocols.toml`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    /// The number of each protocol.
    protocols: BTreeMap<String, u32>,
    /// The digest of each file of a protocol, by its path below `src`.
    files: BTreeMap<String, String>,
}

/// Files that code includes as text: `include_str!("kernels.ptx")`.
fn included(file: &str) -> Vec<String> {
    let text = fs::read_to_string(src().join(file)).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let names = ["include_str!(\"", "include_bytes!(\""].map(|of| code.split(of).skip(1).collect::<Vec<_>>()).concat();
    let beside = |name: &str| match name.strip_prefix("../") {
        Some(name) => format!("{}/{name}", folder.rsplit_once('/').map_or("", |(above, _)| above)),
        None => format!("{folder}/{name}"),
    };
    names.into_iter().filter_map(|rest| rest.split('"').next()).map(beside).collect()
}

/// All files of a protocol whose code begins at these files.
fn behind(roots: &[&str]) -> BTreeSet<String> {
    let mut open: Vec<String> = roots.iter().map(|root| root.to_string()).collect();
    let mut found = BTreeSet::new();
    while let Some(file) = open.pop() {
        let counts = WITHIN.iter().any(|place| digest::below(&file, place))
            && !APART.iter().any(|(place, _)| digest::below(&file, place));
        if !counts || !found.insert(file.clone()) {
            continue;
        }
        if file.ends_with(".rs") {
            open.extend(used(&file));
            open.extend(included(&file));
            // Child modules that are declared but not named.
            let children = src().join(file.trim_end_matches(".rs"));
            open.extend(children.is_dir().then(|| below(&file)).into_iter().flatten());
        }
    }
    found.into_iter().filter(|file| digest::counts(file)).collect()
}

/// The Rust files in the folder of a module.
fn below(file: &str) -> Vec<String> {
    let folder = src().join(file.trim_end_matches(".rs"));
    let files = crate::packages::sources(&folder).into_iter();
    files.map(|path| path.strip_prefix(src()).unwrap().display().to_string()).collect()
}

fn digest_of(file: &str) -> String {
    let bytes = fs::read(src().join(file)).unwrap();
    let code = match file.ends_with(".rs") {
        true => digest::code(&String::from_utf8_lossy(&bytes)).unwrap().into_bytes(),
        false => bytes,
    };
    blake3::hash(&code).to_hex()[..32].to_string()
}

fn now() -> (Record, BTreeMap<&'static str, BTreeSet<String>>) {
    let behind: BTreeMap<_, _> = PROTOCOLS.iter().map(|(name, _, roots)| (*name, behind(roots))).collect();
    let all: BTreeSet<&String> = behind.values().flatten().collect();
    let files = all.into_iter().map(|file| (file.clone(), digest_of(file))).collect();
    let protocols = PROTOCOLS.iter().map(|(name, number, _)| (name.to_string(), *number)).collect();
    (Record { protocols, files }, behind)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "whoever runs the test asks for the record to be renewed")]
fn an_edit_behind_a_protocol_raises_its_number_or_renews_its_digest() {
    let (now, behind) = now();
    if std::env::var_os("KFORGE_TEST_RENEW").is_some() {
        let head = "# Numbers of protocols, and digests of the code behind them: see protocols.rs.\n\n";
        fs::write(record(), format!("{head}{}", toml::to_string(&now).unwrap())).unwrap();
    }
    let held: Record = toml::from_str(&fs::read_to_string(record()).unwrap()).unwrap();
    let all: BTreeSet<&String> = held.files.keys().chain(now.files.keys()).collect();
    let edited: Vec<&String> = all.into_iter().filter(|file| held.files.get(*file) != now.files.get(*file)).collect();
    let mut text = String::new();
    for file in edited {
        let of = |(name, number, _): &(&str, u32, &[&str])| {
            behind[name].contains(file).then(|| format!("{name} (recorded as {}, is {number})", held.protocols[*name]))
        };
        let protocols: Vec<String> = PROTOCOLS.iter().filter_map(of).collect();
        text += &format!("src/{file} is behind {}\n", protocols.join(", "));
    }
    assert!(
        text.is_empty() && held.protocols == now.protocols,
        "the code behind protocols of devices changed:\n{text}\
         Raise the number of each protocol for which a device is asked otherwise than before, or for which its answers are read otherwise: observations made \
         with the old number answer no more. Then run\n    KFORGE_TEST_RENEW=1 cargo test --test layering protocols\n\
         and say in the commit why the numbers that stay hold."
    );
}

#[test]
fn every_file_of_a_devices_code_is_behind_a_protocol_or_said_to_be_apart() {
    let (now, behind) = now();
    let is_apart = |file: &String| APART.iter().any(|(place, _)| digest::below(file, place));
    let walk = walkdir::WalkDir::new(src().join("cuda/device")).into_iter().map(Result::unwrap);
    let files = walk.filter(|entry| entry.file_type().is_file());
    let names = files.map(|entry| entry.path().strip_prefix(src()).unwrap().display().to_string());
    let missing: Vec<String> =
        names.filter(|file| digest::counts(file) && !now.files.contains_key(file) && !is_apart(file)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    // The code that draws and compares is found across packages, and the code that runs is found across processes.
    let all = ["cuda/device/kernels.ptx", "cuda/device/session.rs", "cuda/device/wire.rs"];
    // Processes of the kernel's own run in the place of the runner.
    let has_runner = |protocol: &str| !["HOST_PROTOCOL", "TORCH_PROTOCOL"].contains(&protocol);
    for (protocol, files) in behind.iter().filter(|(protocol, _)| has_runner(protocol)) {
        let missing: Vec<&&str> = all.iter().filter(|file| !files.contains(**file)).collect();
        assert!(missing.is_empty(), "{protocol}: {missing:?}");
    }
    for file in ["harness/observer.rs", "harness/layout.rs", "numerics/measure/compare.rs"] {
        assert!(behind["VERIFY_PROTOCOL"].contains(file), "{file}");
    }
    assert!(behind["BENCH_PROTOCOL"].contains("numerics/measure/sampling.rs"));
    for file in ["harness/candidate/devices.py", "worker/steps/verifier/place.rs", "harness/observer.rs"] {
        assert!(behind["TORCH_PROTOCOL"].contains(file), "{file}");
    }
}

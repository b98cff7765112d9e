//! Written bundles are read back unchanged, with the same bytes in any order; and every fault of a bundle is refused.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use serde_json::{Value, json};

use super::archive::{LIMITS, Limits, decode, detach, detached, encode, encode_small, sign, unpack};
use super::bundle::{Bundle, Document, Question, Step, TimedChampion, digest, records};
use super::signature::{NAMESPACE, Signature, SigningKey};
use kforge_engine::evidence::Record;
use kforge_foundation::base::Digest;
use kforge_types::record::event::Labels;
use kforge_types::record::{DeviceClass, Provenance, Spec, StepKind, StepResult};

fn provenance(day: u32) -> Provenance {
    let (product, arch) = ("NVIDIA H200".into(), "sm_90".into());
    Provenance {
        device: DeviceClass { product, arch, driver_major: 580, mig: None },
        driver: "580.159.04".into(),
        kforge: "0.1.0".into(),
        protocol: 1,
        measured_at: format!("2026-11-{day:02}T00:00:00Z"),
        clocks_mhz: Some((1980, 3201)),
        temperature_c: None,
        throttle: vec![],
        spent_us: Default::default(),
    }
}

/// Adds an answer of that day to the question with the parameter `n`.
fn answer(bundle: &mut Bundle, n: u64, day: u32) {
    let spec = Spec {
        kind: StepKind::Bench,
        version: 1,
        implementation: None,
        params: json!({"arch": "sm_90a", "n": n, "seeds": [1.5, u64::MAX]}),
        inputs: BTreeMap::new(),
    };
    let mut keep = |value: Value| {
        let bytes = serde_json::to_vec(&value).unwrap();
        let digest = Digest::of(&bytes);
        bundle.contents.insert(digest, bytes);
        digest
    };
    let samples: Vec<f64> = (0..31).map(|i| f64::from(i * day) + 0.1).collect();
    let series = json!({"samples_ns": samples, "dropped": 0});
    let outputs = [
        ("observation".to_string(), keep(json!({"cold": series, "hot": null, "verified": true}))),
        ("provenance".to_string(), keep(serde_json::to_value(provenance(day)).unwrap())),
    ];
    let result = StepResult {
        outputs: outputs.into(),
        verdict: None,
        notes: vec![],
        summary: "31 samples".into(),
        duration_ms: 7,
    };
    let record = Record { question: spec.key(), provenance: provenance(day), result };
    match bundle.questions.iter_mut().find(|q| q.key == spec.key()) {
        Some(question) => question.records.push(record),
        None => {
            let labels = Labels { package: "p".into(), kernel: Some("k".into()), ..Labels::default() };
            let steps = vec![Step { id: format!("p/k/{n}/bench"), labels }];
            bundle.questions.push(Question { key: spec.key(), spec, steps, records: vec![record] });
        }
    }
}

fn bundle(answers: &[(u64, u32)]) -> Bundle {
    let mut bundle = Bundle::default();
    answers.iter().for_each(|(n, day)| answer(&mut bundle, *n, *day));
    let text = |text: &str| text.to_string();
    bundle.champions = vec![TimedChampion {
        package: text("p"),
        kernel: text("k"),
        types: text(""),
        target: text("h200"),
        shape: text("big"),
        variant: text("V=1"),
        hot: false,
        bench: bundle.questions.iter().map(|q| q.key).min().unwrap(),
    }];
    bundle
}

/// Members of a zip archive by name.
fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(vec![]));
    for (name, bytes) in members {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn contents(bundle: &Bundle, document: &Document) -> Vec<u8> {
    document.contents.iter().flat_map(|digest| bundle.contents[digest].clone()).collect()
}

/// The file of a bundle with a changed document.
fn changed(bundle: &Bundle, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let document = bundle.document();
    let mut value = serde_json::to_value(&document).unwrap();
    change(&mut value);
    let text = serde_json::to_vec(&value).unwrap();
    zip(&[("evidence.json", &text), ("contents", &contents(bundle, &document))])
}

#[track_caller]
fn refused(file: &[u8], says: &str) {
    let error = decode(file, LIMITS).expect_err(says).to_string();
    assert!(error.contains(says), "`{error}` does not say `{says}`");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn what_is_written_is_read_again_and_the_order_of_finding_does_not_matter() {
    let one = bundle(&[(1, 1), (2, 2), (2, 3)]);
    let other = bundle(&[(2, 3), (2, 2), (1, 1)]);
    let file = encode(&one).unwrap();
    assert_eq!(file, encode(&other).unwrap());
    let read = decode(&file, LIMITS).unwrap();
    assert_eq!(read.records().count(), 3, "both records of a question are kept");
    assert_eq!((encode(&read).unwrap(), &read.contents), (file.clone(), &one.contents));
    assert_eq!(decode(&changed(&one, |_| ()), LIMITS).unwrap(), read, "whoever compressed it");
}

#[test]
fn many_answers_take_little_room() {
    let answers: Vec<(u64, u32)> = (0..500).map(|n| (n, 1 + n as u32 % 28)).collect();
    let bundle = bundle(&answers);
    let plain = serde_json::to_vec(&bundle.document()).unwrap().len();
    let file = encode(&bundle).unwrap().len();
    assert!(file * 8 < plain, "{file} of {plain}");
}

#[test]
fn no_changed_byte_changes_what_is_read() {
    let bundle = bundle(&[(1, 1)]);
    for file in [encode(&bundle).unwrap(), encode_small(&bundle).unwrap()] {
        let whole = decode(&file, LIMITS).unwrap();
        for at in 0..file.len() {
            let mut flipped = file.clone();
            flipped[at] ^= 0x15;
            // Times and attributes in the archive's headers do not belong to its contents.
            if let Ok(read) = decode(&flipped, LIMITS) {
                assert_eq!(read, whole, "byte {at}");
            }
        }
        for end in 0..file.len() {
            assert!(decode(&file[..end], LIMITS).is_err(), "cut off at {end}");
        }
    }
}

#[test]
fn a_small_file_holds_the_same_bundle_and_any_tool_shows_its_document() {
    // Contents that repeat what lies too far back for deflate.
    let answers: Vec<(u64, u32)> = (0..500).map(|n| (n, 1 + n as u32 % 28)).collect();
    let bundle = bundle(&answers);
    let (plain, small) = (encode(&bundle).unwrap(), encode_small(&bundle).unwrap());
    assert!(small.len() < plain.len(), "{} of {}", small.len(), plain.len());
    assert_eq!(small, encode_small(&bundle).unwrap());
    assert_eq!(decode(&small, LIMITS).unwrap(), decode(&plain, LIMITS).unwrap());
    assert_eq!(members(&small)[0], members(&plain)[0], "the document is deflated in both");
    let signed = signed(&small, &SigningKey::generate().unwrap());
    assert_eq!(members(&signed)[..2], members(&small)[..]);
    assert!(
        decode(&small, Limits { contents: 100, ..LIMITS }).unwrap_err().to_string().contains("contents is too large")
    );
}

#[test]
fn contents_that_ask_for_much_memory_are_refused_before_it_is_taken() {
    let small = encode_small(&bundle(&[(1, 1)])).unwrap();
    let xz = small.windows(6).position(|w| w == b"\xfd7zXZ\0").unwrap();
    // The header of the first block: size, flags, and the filter LZMA2 with the code of its dictionary; the checksum is made to fit.
    let block = xz + 12;
    let length = (usize::from(small[block]) + 1) * 4;
    let code = small[block..block + length].windows(2).position(|w| w == [0x21, 1]).unwrap() + 2;
    let asking = |dictionary: u8| {
        let mut file = small.clone();
        file[block + code] = dictionary;
        let sum = crc32(&file[block..block + length - 4]);
        file[block + length - 4..block + length].copy_from_slice(&sum.to_le_bytes());
        decode(&file, LIMITS)
    };
    assert!(asking(small[block + code]).is_ok());
    let said = asking(39).unwrap_err();
    assert!(
        std::error::Error::source(&said).map_or_else(|| said.to_string(), ToString::to_string).contains("mem"),
        "{said}"
    );
}

/// The checksum of a header in the format of xz.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    })
}

#[test]
fn other_archives_are_refused() {
    let good = bundle(&[(1, 1)]);
    let document = good.document();
    let (text, contents) = (serde_json::to_vec(&document).unwrap(), contents(&good, &document));
    refused(b"", "not a bundle of evidence");
    refused(b"PK\x03\x04", "not a bundle of evidence");
    refused(&zip(&[]), "expected only `evidence.json` and `contents`");
    refused(&zip(&[("evidence.json", &text)]), "expected only `evidence.json` and `contents`");
    for name in ["../evidence.json", "/etc/passwd", "evidence.json/", "x\ny"] {
        refused(&zip(&[(name, &text), ("contents", &contents)]), "expected only `evidence.json` and `contents`");
        let three = zip(&[("evidence.json", &text), ("contents", &contents), (name, b"x")]);
        refused(&three, "expected only `evidence.json` and `contents`");
    }
    refused(&zip(&[("evidence.json", b"{"), ("contents", b"")]), "is not JSON");
    let more = [&contents[..], b"x"].concat();
    refused(&zip(&[("evidence.json", &text), ("contents", &more)]), "holds more than `evidence.json` names");
    let less = &contents[..contents.len() - 1];
    refused(&zip(&[("evidence.json", &text), ("contents", less)]), "ends too early");
    let mut other = contents.clone();
    other[0] ^= 1;
    refused(&zip(&[("evidence.json", &text), ("contents", &other)]), "does not have its digest");
}

#[test]
fn a_document_that_does_not_hold_together_is_refused() {
    let good = bundle(&[(1, 1), (2, 2)]);
    let refuse = |says: &str, change: fn(&mut Value)| refused(&changed(&good, change), says);
    refuse("its format is 3: expected at most 2", |d| d["format_version"] = json!(3));
    refuse("its format is 0", |d| d["format_version"] = json!(0));
    refuse("its format is none", |d| drop(d.as_object_mut().unwrap().remove("format_version")));
    refuse("says that it is signed", |d| d["signed"] = json!(true));
    refuse("a field that this version does not know: `signed`", |d| d["signed"] = json!(false));
    refuse("does not match its schema: missing field `signed`", |d| d["format_version"] = json!(1));
    refuse("does not match its schema", |d| d["more"] = json!(1));
    refuse("does not know: `questions.1.records.0.provenance.weather`", |d| {
        d["questions"][1]["records"][0]["provenance"]["weather"] = json!("rain");
    });
    refuse("the key of its fields is", |d| d["questions"][0]["spec"]["params"]["n"] = json!(3));
    refuse("answers question", |d| {
        d["questions"][0]["records"][0]["question"] = d["questions"][1]["key"].clone();
    });
    refuse("it appears twice", |d| d["questions"][1] = d["questions"][0].clone());
    refuse("a record of it appears twice", |d| {
        let twice = d["questions"][0]["records"][0].clone();
        d["questions"][0]["records"].as_array_mut().unwrap().push(twice);
    });
    refuse("nothing answers it", |d| d["questions"][0]["records"] = json!([]));
    refuse("no record names content", |d| {
        d["champions"] = json!([]);
        d["questions"].as_array_mut().unwrap().pop();
    });
    refuse("at `big` was not timed", |d| d["champions"][0]["bench"] = json!(Digest::of(b"nobody")));
    refuse("does not say where it was observed", |d| {
        let outputs = &mut d["questions"][0]["records"][0]["result"]["outputs"];
        outputs.as_object_mut().unwrap().remove("provenance");
    });
    refuse("its provenance differs from the one", |d| {
        d["questions"][0]["records"][0]["provenance"]["driver"] = json!("580.1");
    });
    refuse("is missing", |d| {
        let missing = json!(Digest::of(b"nobody has it"));
        d["questions"][0]["records"][0]["result"]["outputs"]["log"] = missing;
    });
}

#[test]
fn what_no_device_was_asked_or_could_have_seen_is_refused() {
    let with = |change: fn(&mut Bundle)| {
        let mut bundle = bundle(&[(1, 1)]);
        change(&mut bundle);
        encode(&bundle).unwrap_err().to_string()
    };
    /// Changes the spec of the first question, with its key and its record's question.
    fn asked(bundle: &mut Bundle, change: impl FnOnce(&mut Spec)) {
        let question = &mut bundle.questions[0];
        change(&mut question.spec);
        question.key = question.spec.key();
        question.records[0].question = question.key;
        bundle.champions.clear();
    }
    let emulated = with(|b| asked(b, |spec| spec.params["arch"] = json!("cpu")));
    assert!(emulated.contains("does not observe a device"), "{emulated}");
    let compiled = with(|b| asked(b, |spec| spec.kind = StepKind::Compile));
    assert!(compiled.contains("no other question is about the binary that it compiled"), "{compiled}");
    let host = with(|b| {
        asked(b, |spec| {
            spec.kind = StepKind::Compile;
            spec.params["arch"] = json!("cpu");
        });
    });
    assert!(host.contains("does not observe a device"), "{host}");
    let other = with(|b| asked(b, |spec| spec.kind = StepKind::Pairs));
    assert!(other.contains("its observation is not one of a pairs step"), "{other}");
}

#[test]
fn what_is_too_large_is_refused_before_it_is_unpacked() {
    let file = encode(&bundle(&[(1, 1), (2, 2)])).unwrap();
    let limits = |file, document, contents| Limits { file, document, contents, signature: 1 << 10 };
    let says = |limits| decode(&file, limits).unwrap_err().to_string();
    assert!(says(limits(10, 1 << 20, 1 << 20)).contains("the file is too large"));
    assert!(says(limits(1 << 20, 100, 1 << 20)).contains("evidence.json is too large"));
    assert!(says(limits(1 << 20, 1 << 20, 100)).contains("contents is too large"));
    assert!(decode(&file, limits(1 << 20, 1 << 20, 1 << 20)).is_ok());
    let signed = signed(&file, &SigningKey::generate().unwrap());
    let error = decode(&signed, Limits { signature: 10, ..LIMITS }).unwrap_err().to_string();
    assert!(error.contains("signature is too large"), "{error}");
}

/// The file of a bundle, signed for evidence.
fn signed(file: &[u8], key: &SigningKey) -> Vec<u8> {
    let document = unpack(file, LIMITS).unwrap().document;
    sign(file, &key.sign(NAMESPACE, &document).unwrap()).unwrap()
}

/// The members of an archive with their bytes as they are compressed.
fn members(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(Cursor::new(file)).unwrap();
    let mut found = vec![];
    for at in 0..archive.len() {
        let mut member = archive.by_index_raw(at).unwrap();
        let mut bytes = vec![];
        std::io::Read::read_to_end(&mut member, &mut bytes).unwrap();
        found.push((member.name().unwrap().into_owned(), bytes));
    }
    found
}

#[test]
fn a_bundle_can_be_signed_and_signed_again_and_keeps_its_other_members() {
    let (one, two) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    let plain = encode(&bundle(&[(1, 1), (2, 2)])).unwrap();
    let first = signed(&plain, &one);
    let second = signed(&first, &two);
    for (file, key) in [(&first, &one), (&second, &two)] {
        let read = unpack(file, LIMITS).unwrap();
        let signature = read.signature.unwrap();
        assert!(signature.key() == &key.public() && signature.verifies(&read.document));
        assert_eq!((read.bundle, read.version), (decode(&plain, LIMITS).unwrap(), 2));
        assert_eq!(members(file)[..2], members(&plain)[..]);
        assert_eq!(members(file)[2].0, "signature");
    }
    assert_eq!(unpack(&plain, LIMITS).unwrap().signature, None);
    // A signature of something else is not taken.
    let other = one.sign(NAMESPACE, b"another document").unwrap();
    assert_eq!(sign(&plain, &other).unwrap_err().to_string(), "the signature is not one of `evidence.json`");
}

#[test]
fn a_signature_that_cannot_be_read_refuses_the_bundle_and_one_that_does_not_verify_is_read() {
    let good = bundle(&[(1, 1)]);
    let document = good.document();
    let (text, contents) = (serde_json::to_vec(&document).unwrap(), contents(&good, &document));
    let with = |text: &[u8], signature: &[u8]| {
        zip(&[("evidence.json", text), ("contents", &contents), ("signature", signature)])
    };
    for wrong in [&b""[..], b"signed by me", b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"] {
        refused(&with(&text, wrong), "its `signature` is not an SSH signature");
    }
    let signature = SigningKey::generate().unwrap().sign(NAMESPACE, &text).unwrap();
    let read = unpack(&with(&text, signature.text().as_bytes()), LIMITS).unwrap();
    assert!(read.signature.unwrap().verifies(&read.document));
    // Somebody who changes the document keeps a consistent bundle, and a signature that is not one of it.
    let changed = String::from_utf8(text.clone()).unwrap().replacen("\"kforge\":\"", "\"kforge\":\"9", 1);
    let read = unpack(&with(changed.as_bytes(), signature.text().as_bytes()), LIMITS).unwrap();
    assert!(!read.signature.unwrap().verifies(&read.document));
    // Changed contents are damage, signed or not, because the document names them by digest.
    let mut other = contents.clone();
    other[0] ^= 1;
    let file = zip(&[("evidence.json", &text), ("contents", &other), ("signature", signature.text().as_bytes())]);
    refused(&file, "does not have its digest");
    // The order is part of the form.
    let file = zip(&[("signature", signature.text().as_bytes()), ("evidence.json", &text), ("contents", &contents)]);
    refused(&file, "and `signature` if it is signed");
}

#[test]
fn a_bundle_of_the_first_format_is_read_and_cannot_be_signed_as_it_is() {
    let good = bundle(&[(1, 1), (2, 2)]);
    let file = changed(&good, |d| {
        d["format_version"] = json!(1);
        d["signed"] = json!(false);
    });
    let read = unpack(&file, LIMITS).unwrap();
    assert_eq!(
        (read.version, &read.signature, &read.bundle),
        (1, &None, &decode(&encode(&good).unwrap(), LIMITS).unwrap())
    );
    let signature = SigningKey::generate().unwrap().sign(NAMESPACE, &read.document).unwrap();
    let error = sign(&file, &signature).unwrap_err().to_string();
    assert_eq!(error, "it holds a `signature`, which a bundle of format 1 cannot have");
}

#[test]
fn a_signed_document_is_kept_without_its_contents() {
    let good = bundle(&[(1, 1), (2, 2)]);
    let read = unpack(&signed(&encode(&good).unwrap(), &SigningKey::generate().unwrap()), LIMITS).unwrap();
    let signature: Signature = read.signature.unwrap();
    let (document, again) = detached(&detach(&read.document, &signature).unwrap(), LIMITS).unwrap();
    assert_eq!((&document, &again), (&read.document, &signature));
    assert_eq!(records(&document).unwrap(), good.records().map(digest).collect());
    assert!(detached(&encode(&good).unwrap(), LIMITS).is_err());
}

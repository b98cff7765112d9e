//! Fatbins in artifacts: what `kforge package` packs and refuses, and that `kforge verify-artifact` names whatever in a fatbin is not so. A stand-in packs
//! them; the tests of the toolchain pack with NVIDIA's `fatbinary`.

use std::collections::BTreeMap;
use std::fs;

use kforge::release::artifact::{ArtifactFiles, INDEX, KERNELS, KernelsDocument, tar};
use serde_json::Value;

use crate::lab::{Lab, SOURCE, steps};
use crate::packaged::{ARCHIVE, Change, built, files, forged, licensed, run, verify, without};

/// A built package whose target asks for fatbins and more, on a machine without a device.
fn asking(more: &str) -> Lab {
    let lab = built().manifest("[targets.h]", &format!("[targets.h]\nfatbin = true\n{more}"));
    lab.on(&without());
    lab
}

fn named<'f>(files: &'f BTreeMap<String, Vec<u8>>, ending: &str) -> (&'f String, &'f Vec<u8>) {
    let mut found = files.iter().filter(|(name, _)| name.starts_with("binaries/") && name.ends_with(ending));
    let one = found.next().unwrap_or_else(|| panic!("no {ending}"));
    assert_eq!(found.next(), None, "{ending}");
    one
}

fn document(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Value {
    serde_json::from_slice(&files[name]).unwrap()
}

/// The names of the files that the index marks.
fn marked(files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let index = document(files, INDEX);
    let marked = index["files"].as_array().unwrap().iter().filter(|entry| entry["without_evidence"] == true);
    marked.map(|entry| entry["name"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_fatbin_lies_beside_machine_code_if_its_target_asks_for_it_and_holds_that_machine_code() {
    let lab = asking("");
    // What was verified stays verified, and nothing is compiled again.
    let built = lab.built(&[]);
    assert_eq!(steps(&built, "fatbin", "executed").len(), 1);
    assert!(steps(&built, "compile", "executed").is_empty());
    assert!(steps(&lab.built(&[]), "fatbin", "executed").is_empty(), "it is made once");
    run(&lab, &["package"], 0);
    let whole = files(&lab);
    let ((_, cubin), (fatbin, bytes)) = (named(&whole, ".cubin"), named(&whole, ".fatbin"));
    assert_eq!(bytes[80..80 + cubin.len()], cubin[..]);
    let variant = &document(&whole, KERNELS)["kernels"][0]["variants"][0];
    assert_eq!(variant["fatbin"]["file"], fatbin.as_str());
    assert!(variant["fatbin"].get("with_ptx").is_none() && variant.get("ptx").is_none());
    // Its evidence is that of the machine code.
    assert!(marked(&whole).is_empty());
    assert!(!String::from_utf8_lossy(&whole["sbom.spdx.json"]).contains(fatbin));
    let statement = String::from_utf8_lossy(&whole["provenance.intoto.json"]).into_owned();
    assert!(statement.contains(fatbin) && statement.contains("\"name\":\"fatbinary\""), "{statement}");
    let path = lab.project.root().join(ARCHIVE);
    verify(&lab, &path, 0);
    let said = run(&lab, &["verify-artifact", path.to_str().unwrap(), "--allow-untrusted", "--rebuild"], 0);
    assert!(said.contains("Rebuilt 2 of 2 binaries with equal bytes"), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_fatbin_with_ptx_is_marked_as_without_evidence_wherever_ptx_is() {
    let lab = asking("ptx = true");
    run(&lab, &["package"], 0);
    let whole = files(&lab);
    let ((ptx, text), (fatbin, bytes)) = (named(&whole, ".ptx"), named(&whole, ".fatbin"));
    // The first line is a comment, which is not packed.
    let code = &text[text.iter().position(|byte| *byte == b'\n').unwrap() + 1..];
    assert!(bytes.windows(code.len()).any(|window| window == code));
    let variant = &document(&whole, KERNELS)["kernels"][0]["variants"][0];
    assert_eq!(variant["fatbin"]["with_ptx"], true);
    let mut both = vec![ptx.clone(), fatbin.clone()];
    both.sort();
    assert_eq!(marked(&whole), both);
    let packages = document(&whole, "sbom.spdx.json")["packages"].as_array().unwrap().clone();
    let listed = packages.iter().find(|package| package["name"] == fatbin.as_str()).unwrap();
    assert!(listed["comment"].as_str().unwrap().contains("PTX in it, which is without evidence"), "{listed}");
    let path = lab.project.root().join(ARCHIVE);
    verify(&lab, &path, 0);
    let said = run(&lab, &["verify-artifact", path.to_str().unwrap(), "--allow-untrusted", "--rebuild"], 0);
    assert!(said.contains("Rebuilt 3 of 3 binaries with equal bytes"), "{said}");

    // Without its mark, without its PTX, and with other PTX than what lies beside it.
    let mut unmarked = whole.clone();
    let index = String::from_utf8(unmarked[INDEX].clone()).unwrap();
    unmarked.insert(INDEX.into(), index.replace(",\"without_evidence\":true", "").into_bytes());
    let place = lab.project.place().join("unmarked.tar");
    fs::write(&place, tar::pack(&ArtifactFiles::new(unmarked).unwrap()).unwrap()).unwrap();
    assert!(verify(&lab, &place, 101).contains("its mark `without_evidence` is true, listed is false"));
    let at = bytes.windows(8).position(|window| window == b".version").unwrap();
    let said = tampered(&lab, &whole, &|bytes| bytes[at + 9] = b'8');
    assert!(said.contains("its PTX is not what is packed beside it"), "{said}");
    let header = bytes.windows(5).position(|window| window == [1, 0, 1, 1, 80]).unwrap();
    let said = tampered(&lab, &whole, &|bytes| {
        bytes.truncate(header);
        let size = bytes.len() as u64 - 16;
        bytes[8..16].copy_from_slice(&size.to_le_bytes());
    });
    assert!(said.contains("it has no PTX for sm_90a"), "{said}");
}

/// The refusal of an artifact whose fatbin has other bytes, with a new index and the digest of those bytes, as a forger writes them.
fn tampered(lab: &Lab, whole: &BTreeMap<String, Vec<u8>>, change: &dyn Fn(&mut Vec<u8>)) -> String {
    let (name, bytes) = named(whole, ".fatbin");
    let (mut files, mut bytes) = (whole.clone(), bytes.clone());
    change(&mut bytes);
    let mut document = document(whole, KERNELS);
    document["kernels"][0]["variants"][0]["fatbin"]["digest"] = kforge::base::Digest::of(&bytes).to_string().into();
    let document: KernelsDocument = serde_json::from_value(document).unwrap();
    files.insert(KERNELS.into(), kforge::release::artifact::files::document(&document).unwrap());
    files.insert(name.clone(), bytes);
    let said = verify(lab, &forged(lab, files), 101);
    assert!(said.contains(&format!("its fatbin `{name}` is refused: ")), "{said}");
    said
}

#[test]
fn what_in_a_fatbin_is_not_so_is_named() {
    let lab = asking("");
    run(&lab, &["package"], 0);
    let whole = files(&lab);
    let says = |change: &dyn Fn(&mut Vec<u8>), expected: &str| {
        let said = tampered(&lab, &whole, change);
        assert!(said.contains(expected), "{said}");
    };
    says(&|bytes| bytes[16 + 64] ^= 1, "its machine code is not the binary that is packed beside it");
    says(&|bytes| bytes[16 + 28] = 80, "it has no machine code for sm_90a; it holds machine code for sm_80a");
    says(&|bytes| bytes.push(0), "bytes follow its container");
    says(&|bytes| bytes.truncate(bytes.len() - 8), "it is no fatbin, or it is cut short");
    let twice = |bytes: &mut Vec<u8>| {
        let entry = bytes[16..].to_vec();
        bytes.extend(entry);
        let size = bytes.len() as u64 - 16;
        bytes[8..16].copy_from_slice(&size.to_le_bytes());
    };
    says(&twice, "it holds machine code for sm_90a besides what is expected");
    says(&|bytes| bytes[16 + 41] |= 0x80, "machine code for sm_90a in it is compressed");
    says(&|bytes| bytes[16 + 48] = 1, "the header of machine code for sm_90a in it has unknown fields");

    // A fatbin that is missing, that nobody asked for, or that is said to hold PTX.
    let with = |change: &Change<'_>| {
        let (mut files, mut document) = (whole.clone(), document(&whole, KERNELS));
        change(&mut files, &mut document["kernels"][0]["variants"][0]);
        let document: KernelsDocument = serde_json::from_value(document).unwrap();
        files.insert(KERNELS.into(), kforge::release::artifact::files::document(&document).unwrap());
        verify(&lab, &forged(&lab, files), 101)
    };
    let (name, _) = named(&whole, ".fatbin");
    let forms = "gives forms of its binaries that differ";
    let said = with(&|files, variant| {
        files.remove(name);
        variant.as_object_mut().unwrap().remove("fatbin");
    });
    assert!(said.contains(forms), "{said}");
    let said = with(&|files, _| {
        let manifest = String::from_utf8(files["source/kernel.toml"].clone()).unwrap();
        files.insert("source/kernel.toml".into(), manifest.replace("fatbin = true", "fatbin = false").into_bytes());
    });
    assert!(said.contains(forms), "{said}");
    assert!(with(&|_, variant| variant["fatbin"]["with_ptx"] = true.into()).contains(forms));
    let said = with(&|files, _| drop(files.insert(name.clone(), b"other".to_vec())));
    assert!(said.contains("is not in the artifact under the digest that `kernels.json` states"), "{said}");
    let said = with(&|files, _| drop(files.insert("binaries/more.fatbin".into(), b"other".to_vec())));
    assert!(said.contains("`binaries/more.fatbin`: no part of an artifact has this name"), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_rebuild_says_that_another_tool_packed_a_fatbin_of_the_same_images() {
    let lab = asking("");
    run(&lab, &["package"], 0);
    let path = lab.project.root().join(ARCHIVE);
    lab.project.write("cuda/bin/fatbinary", "a later release\n");
    let said = run(&lab, &["verify-artifact", path.to_str().unwrap(), "--allow-untrusted", "--rebuild"], 101);
    assert!(
        said.contains("Rebuilt 1 of 2 binaries") && said.contains("only what `fatbinary` writes around them differs"),
        "{said}"
    );
}

#[test]
fn a_fatbin_without_the_architecture_of_its_target_is_refused_with_the_other_reasons() {
    let lab = licensed().manifest("[targets.h]", "[targets.h]\nfatbin = true");
    lab.project.write("k.cu", &format!("#pragma fatbin sm_80\n#pragma sass k<4> LDG.E.128 2\n{SOURCE}"));
    lab.built(&[]);
    let said = run(&lab, &["package"], 101);
    assert!(
        said.contains(
            "p/k/h: its fatbin is refused: it has no machine code for sm_90a; it holds machine code for sm_80"
        ),
        "{said}"
    );
}

#[test]
fn without_the_tool_a_build_goes_on_and_packaging_names_the_step_and_what_is_missing() {
    let lab = licensed().manifest("[targets.h]", "[targets.h]\nfatbin = true");
    fs::remove_file(lab.project.root().join("cuda/bin/fatbinary")).unwrap();
    lab.built(&[]);
    let said = run(&lab, &["package"], 101);
    assert!(said.contains("its fatbin is not made, because `p/k/V=4/h/fatbin` is not possible here"), "{said}");
    assert!(said.contains("has no fatbinary, which cuda-fatbin needs"), "{said}");
    // `kforge fetch` adds nothing to a toolkit of this machine.
    assert!(said.contains("help: install `fatbinary`") && !said.contains("`kforge fetch`"), "{said}");
    assert!(run(&lab, &["fetch"], 101).contains("has no fatbinary, which cuda-fatbin needs"));
    // A package that asks for none needs no tool.
    let lab = lab.manifest("fatbin = true", "fatbin = false");
    run(&lab, &["package"], 0);
    run(&lab, &["fetch"], 0);
}

#[test]
#[ignore = "second tier: many builds"]
fn an_artifact_with_fatbins_is_reproduced() {
    let lab = asking("ptx = true");
    lab.built(&[]);
    let said = run(&lab, &["reproduce"], 0);
    assert!(said.contains("1 artifact: all bytes are equal"), "{said}");
}

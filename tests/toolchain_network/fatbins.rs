//! Fatbins that NVIDIA's `fatbinary` packs of what NVRTC compiles, read by kforge's own reader.

use std::path::Path;

use kforge::cuda::{FatbinaryError, fatbin};
use kforge::model::target::CAPABILITIES;
use kforge::record::fatbin::{FatbinFault, check, holds_ptx};
use kforge::record::params::CompileParams;
use kforge::toolchain::cuda::{Cuda, Group, Source};

use crate::toolchain::{install, locked, toolchains};
use crate::{ROW, made, params};

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn each_architecture_is_found_in_what_fatbinary_packs_with_exactly_the_binary_and_its_ptx() {
    let tool = &install(Group::Fatbin)["fatbinary"];
    for capability in CAPABILITIES {
        let suffixes: &[&str] = match capability {
            100.. => &["", "a", "f"],
            90 => &["", "a"],
            _ => &[""],
        };
        for suffix in suffixes {
            let arch = format!("sm_{capability}{suffix}");
            let compiled = made(&CompileParams { arch: arch.clone(), ptx: true, ..params(&["row<float, 64>"]) }, ROW);
            let (cubin, text) = (compiled.cubin.as_slice(), compiled.ptx.as_deref().unwrap());
            for ptx in [None, Some(text)] {
                let [packed, again] = [(); 2].map(|()| fatbin(&arch, cubin, ptx, tool).unwrap());
                assert_eq!(check(&packed, &arch, cubin, ptx), Ok(()), "{arch}");
                assert!(packed == again, "{arch}: the same bytes each time");
                assert_eq!(holds_ptx(&packed), ptx.is_some());
            }
            // The reader tells it from its likes.
            let packed = fatbin(&arch, cubin, Some(text), tool).unwrap();
            assert_eq!(check(&packed, &arch, &cubin[1..], Some(text)), Err(FatbinFault::OtherCode));
            let other = String::from_utf8_lossy(text).replacen("ret;", "exit;", 1);
            assert_eq!(check(&packed, &arch, cubin, Some(other.as_bytes())), Err(FatbinFault::OtherPtx));
            assert!(matches!(check(&packed, "sm_52", cubin, Some(text)), Err(FatbinFault::Architecture { .. })));
        }
    }
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn machine_code_of_another_architecture_is_not_packed() {
    let tool = &install(Group::Fatbin)["fatbinary"];
    let cubin = made(&params(&["row<float, 64>"]), ROW).cubin;
    let error = fatbin("sm_80", &cubin, None, tool).unwrap_err();
    assert!(matches!(error, FatbinaryError::Ended { .. }) && error.to_string().contains("arch"), "{error}");
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn fatbinary_comes_with_nvcc_or_by_itself() {
    let nvcc = install(Group::Nvcc)["nvcc"].parent().map(Path::to_path_buf);
    let cuda = Cuda::Wheels(locked().clone());
    let fatbinary = cuda.install(Group::Fatbin, &toolchains(), Source::Offline, &mut |_| {}).unwrap();
    let place = fatbinary.tools["fatbinary"].parent().unwrap().to_path_buf();
    let folders =
        std::fs::read_dir(toolchains()).unwrap().flatten().filter(|entry| entry.path().join("wheels.txt").is_file());
    let own = folders.filter(|entry| {
        let listing = std::fs::read_to_string(entry.path().join("wheels.txt")).unwrap();
        listing.lines().count() == 1 && listing.starts_with("nvidia-cuda-nvcc ")
    });
    assert!(nvcc.is_some_and(|nvcc| nvcc == place) || own.count() == 1, "{}", place.display());
}

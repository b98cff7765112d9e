//! Finds types that a source names and whose header it does not include. The emulator declares them before every source; the compilers of GPU targets do not, so
//! such a source passes on `cpu` and does not compile for a GPU. Pure: reads texts.

use super::known_headers::is_known;
use kforge_project::workspace::includes::scan;

/// A type that no included header declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unincluded {
    /// The first file that names it, as the tree names it.
    pub file: String,
    /// The type, as the source spells it.
    pub name: &'static str,
    /// The header that declares it.
    pub header: &'static str,
}

impl std::fmt::Display for Unincluded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Unincluded { file, name, header } = self;
        write!(f, "`{file}` names `{name}` without `#include <{header}>`: compilers of GPU targets need it")
    }
}

/// Each header, and names that only it declares. `half` alone is also a usual name of a variable.
const DECLARED: [(&str, &[&str]); 3] = [
    ("cuda_fp16.h", &["__half", "__half2", "half2", "__float2half", "__half2float", "__hadd2", "__hfma2"]),
    (
        "cuda_bf16.h",
        &["__nv_bfloat16", "__nv_bfloat162", "nv_bfloat16", "nv_bfloat162", "__float2bfloat16", "__bfloat162float"],
    ),
    ("cuda_fp8.h", &["__nv_fp8_e4m3", "__nv_fp8_e5m2", "__nv_fp8x2_e4m3", "__nv_fp8x4_e4m3"]),
];

/// The types that these files name and none of their headers declares: one for each header. Empty if a header that is not among the files may declare them.
pub fn unincluded<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Unincluded> {
    let scans: Vec<(&str, _)> = files.into_iter().map(|(name, text)| (name, scan(text))).collect();
    let is_file = |header: &str| scans.iter().any(|(name, _)| *name == header || name.ends_with(&format!("/{header}")));
    let includes = || scans.iter().flat_map(|(_, found)| found.quoted.iter().chain(&found.angled));
    let declares = |header: &String| DECLARED.iter().any(|(name, _)| name == header);
    let known = |header: &String| is_known(header) || declares(header) || is_file(header);
    if scans.iter().any(|(_, found)| found.computed) || !includes().all(known) {
        return vec![];
    }
    // The header of 8-bit floats includes the other two.
    let included = |header: &str| includes().any(|name| name == header || name == "cuda_fp8.h");
    let missing = DECLARED.iter().filter(|(header, _)| !included(header));
    let first = |(header, names): &(&'static str, &[&'static str])| {
        let named = |found: &[String]| names.iter().copied().find(|name| found.iter().any(|word| word == name));
        scans.iter().find_map(|(file, found)| {
            named(&found.identifiers).map(|name| Unincluded { file: (*file).to_string(), name, header })
        })
    };
    missing.filter_map(first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, &'static str, &'static str)> {
        unincluded(files.iter().copied()).into_iter().map(|u| (u.file, u.name, u.header)).collect()
    }

    #[test]
    fn a_narrow_type_without_its_header_is_found_once() {
        let text = "#include <cmath>\n__global__ void k(__half *x, __nv_bfloat16 *y, half2 z) {}";
        let both =
            [("k.cu".to_string(), "__half", "cuda_fp16.h"), ("k.cu".to_string(), "__nv_bfloat16", "cuda_bf16.h")];
        assert_eq!(found(&[("k.cu", text)]), both);
        assert_eq!(found(&[("a/k.cu", "#include \"t.h\"\n"), ("a/t.h", "struct T { __half x; };")])[0].0, "a/t.h");
    }

    #[test]
    fn headers_that_declare_it_or_may_declare_it_are_believed() {
        for include in ["<cuda_fp16.h>", "<cuda_fp8.h>", "<mma.h>", "<ATen/ATen.h>", "\"common.h\"", "HEADER"] {
            assert_eq!(found(&[("k.cu", &format!("#include {include}\n__half x;"))]), [], "{include}");
        }
        assert_eq!(found(&[("k.cu", "// __half\nint half = 2;")]), []);
    }
}

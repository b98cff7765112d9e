//! Finds the parts of the prelude (`kforge_cuda.h`) that a source can name, by the words of the source: every compilation parses the
//! prelude, and few sources need most of it.
//!
//! Leaving a part out saves time and changes nothing else, because the binary contains nothing that no source names. So including too
//! much costs only time. A source that pastes tokens or computes an include gets everything. A source that does not compile with a
//! part left out is compiled again with all parts (`build`).

use super::known_headers::is_read;
use kforge_project::workspace::includes::scan;

/// A part that can be left out.
struct Part {
    /// The macro that leaves it out.
    without: &'static str,
    /// Whether a word may refer to the part: an identifier in lower case, or the name of a header.
    named: fn(&str) -> bool,
}

const PARTS: [Part; 4] = [
    Part { without: "KF_WITHOUT_NARROW", named: names_narrow },
    // The standard library beyond what CUDA itself needs, with its feature-test macros; it must also precede other headers of the standard library.
    Part {
        without: "KF_WITHOUT_STD",
        named: |word| word == "std" || word.starts_with("__cpp_lib_") || word.starts_with("cuda/"),
    },
    // Packed integers: `__vadd2`, `__viaddmax_s32`, `__dp4a`.
    Part { without: "KF_WITHOUT_SIMD", named: |word| word.starts_with("__v") || word.starts_with("__dp") },
    // In addition to the functions, what our headers do with them; and the narrow floats also have atomic functions.
    Part {
        without: "KF_WITHOUT_ATOMIC",
        named: |word| {
            ["atomic", "pipeline", "barrier"].iter().any(|part| word.contains(part))
                || word.starts_with("cuda/")
                || names_narrow(word)
        },
    },
];

/// Whether a word may refer to 16- or 8-bit floats or tf32. Their functions with other names (`__hadd2`) first need a value of such a type.
fn names_narrow(word: &str) -> bool {
    ["half", "bf16", "bfloat", "fp16", "fp8", "tf32", "e4m3", "e5m2", "e8m0", "nv_sat", "nv_nosat", "cudaround", "mma"]
        .iter()
        .any(|part| word.contains(part))
}

/// The macros that leave out the parts that none of the `texts` names: sources with their headers, values of macros, entries, flags. `own` says whether the
/// package has a header of that name.
pub(super) fn left_out<'a>(texts: impl IntoIterator<Item = &'a str>, own: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut out: Vec<&Part> = PARTS.iter().collect();
    let ours = super::headers();
    for text in texts {
        let found = scan(text);
        let includes = || found.quoted.iter().chain(&found.angled);
        // Another header of the system may need anything, and must come after the standard library.
        let known = |name: &String| is_read(name) || ours.iter().any(|(our, _)| our == name) || own(name);
        if found.computed || found.pastes || !includes().all(known) {
            return vec![];
        }
        let words = found.identifiers.iter().map(|word| word.to_lowercase()).collect::<Vec<_>>();
        out.retain(|part| !words.iter().any(|word| (part.named)(word)) && !includes().any(|name| (part.named)(name)));
    }
    out.into_iter().map(|part| part.without).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str) -> Vec<&'static str> {
        left_out([text], |name| name == "tile.h")
    }

    const ALL: [&str; 4] = ["KF_WITHOUT_NARROW", "KF_WITHOUT_STD", "KF_WITHOUT_SIMD", "KF_WITHOUT_ATOMIC"];

    #[test]
    fn what_no_word_names_is_left_out() {
        let plain =
            "#include <cuda_runtime.h>\n#include <cmath>\n#include \"tile.h\"\n__global__ void k(float *x) { *x = 1; }";
        assert_eq!(without(plain), ALL);
        assert_eq!(without("// std::min of __half, atomically\nfloat x;"), ALL);
        let lacks = |text: &str, part: &str| assert!(!without(text).contains(&part), "{text}: {:?}", without(text));
        for text in [
            "__half x;",
            "#include <cuda_fp16.h>",
            "#include <mma.h>",
            "half2 x;",
            "__nv_bfloat16 x;",
            "x = CUDART_INF_FP16",
            "cudaRoundMode mode;",
        ] {
            lacks(text, "KF_WITHOUT_NARROW");
            lacks(text, "KF_WITHOUT_ATOMIC");
        }
        for text in [
            "using namespace std;",
            "x = ::std::min(a, b);",
            "#include <cuda/std/array>",
            "#include <cuda/latch>",
            "#if __cpp_lib_clamp\n",
        ] {
            lacks(text, "KF_WITHOUT_STD");
        }
        lacks("x = __vadd2(a, b);", "KF_WITHOUT_SIMD");
        lacks("x = __dp4a(a, b, c);", "KF_WITHOUT_SIMD");
        for text in
            ["atomicAdd(x, 1);", "#include <cuda/atomic>", "#include <cuda/latch>", "#include <cuda_pipeline.h>"]
        {
            lacks(text, "KF_WITHOUT_ATOMIC");
        }
        assert_eq!(without("x = __vadd2(a, b);").len(), 3);
    }

    #[test]
    fn one_of_several_texts_is_enough() {
        assert_eq!(left_out(["float x;", "k<__half>"], |_| false), ["KF_WITHOUT_STD", "KF_WITHOUT_SIMD"]);
    }

    #[test]
    fn a_text_that_does_not_say_what_it_names_gets_everything() {
        for text in ["#define T(a, b) a##b\n", "#include HEADER\n", "#include <vector>\n", "#include \"other.h\"\n"] {
            assert!(without(text).is_empty(), "{text}");
        }
    }
}

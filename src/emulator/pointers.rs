//! Decides by the words of a source whether an access of its kernels can lie at an address that does not fit its type. Only then does the plain build check
//! alignment: a check at every access keeps the compiler from unrolling and vectorizing the loops around it. Pure.
//!
//! Buffers and shared memory begin at multiples of sixteen bytes, and a pointer to a number of the buffer's own type moves by elements. So an access can only be
//! misaligned if a pointer changes its type, or if its type is wider than any element that the source does not name. Naming too much costs only time.

/// Words that change the type of a pointer, or that introduce a name that may do so.
const WORDS: [&str; 12] = [
    "typedef", "using", "decltype", "union", "asm", "double", "complex", "memcpy", "memmove", "aligned", "alignas",
    "align",
];

/// Whether one of the texts may access memory through a pointer of another type: sources with their headers, values of macros, entries, flags.
pub(super) fn may_misalign<'a>(texts: impl IntoIterator<Item = &'a str>) -> bool {
    texts.into_iter().any(|text| casts(text) || words(text).any(|word| suspicious(&word)))
}

/// Whether a `*` is followed by what ends a type: `(float4 *)`, `<int const *>`, `(P *const)`.
fn casts(text: &str) -> bool {
    text.match_indices('*').any(|(at, _)| {
        let mut rest = text[at + 1..].trim_start();
        while let Some(after) = ["const", "volatile", "__restrict__", "__restrict", "*", "&"]
            .iter()
            .find_map(|word| rest.strip_prefix(word))
        {
            rest = after.trim_start();
        }
        rest.starts_with([')', '>', ','])
    }) || text.contains("##")
        || text.contains("%:%:")
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(move |c| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_ascii_lowercase)
}

fn suspicious(word: &str) -> bool {
    let vector = || {
        let name = word.trim_end_matches("_16a").trim_end_matches("_32a");
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let kinds = ["char", "short", "int", "long", "longlong", "half", "float", "bfloat16", "bfloat162", "half2"];
        stem.len() < name.len() && kinds.iter().any(|kind| stem.ends_with(kind)) && !name.ends_with("_t")
    };
    // A `static_cast` to a pointer shows its `*`.
    word == "reinterpret_cast" || word == "bit_cast" || WORDS.iter().any(|w| word.trim_matches('_') == *w) || vector()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_keeps_the_types_of_its_pointers_is_not_checked() {
        for text in [
            "__global__ void k(const float *__restrict__ x, float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = a * x[i] * (2 * b); }",
            "template <class T> __global__ void k(const T *x, T *const y) { __shared__ T s[32]; s[0] = *x; }",
            "int64_t i = static_cast<int64_t>(j); uint32_t j;",
        ] {
            assert!(!may_misalign([text]), "{text}");
        }
    }

    #[test]
    fn whatever_may_change_the_type_of_a_pointer_is_checked() {
        for text in [
            "v = *reinterpret_cast<const T *>(x)",
            "v = *(const T*)x",
            "v = *(T * const) x",
            "load<int *>(x)",
            "static_cast<int *>(p)",
            "float4 v;",
            "make_uint2(1, 2)",
            "const __half2 *h",
            "double d",
            "using P = int;",
            "typedef T *P;",
            "union { int i; char c[4]; };",
            "#define P(a) a##4",
            "struct __align__(8) V { int a, b; };",
            "struct alignas(8) V { int a, b; };",
            "longlong4_32a v;",
        ] {
            assert!(may_misalign([text]), "{text}");
        }
        assert!(may_misalign(["float x;", "k<double>"]));
    }
}

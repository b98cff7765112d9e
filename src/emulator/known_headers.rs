//! Headers of C, C++ and CUDA that declare no 16- or 8-bit float, and which of them the prelude reads before every source. The only table of that kind:
//! [`super::prelude`] and [`super::unincluded`] ask it.

/// Each header by its name in `#include`, and whether the prelude (`kf_system.h`) always reads it.
const HEADERS: [(&str, bool); 41] = [
    ("algorithm", false),
    ("array", false),
    ("assert.h", true),
    ("cassert", true),
    ("cfloat", true),
    ("chrono", false),
    ("climits", true),
    ("cmath", true),
    ("cstdarg", true),
    ("cstddef", true),
    ("cstdint", true),
    ("cstdio", true),
    ("cstdlib", true),
    ("cstring", true),
    ("ctime", true),
    ("cuda.h", false),
    ("cuda_runtime.h", false),
    ("cuda_runtime_api.h", false),
    ("device_launch_parameters.h", false),
    ("float.h", true),
    ("functional", false),
    ("initializer_list", true),
    ("iostream", false),
    ("limits", false),
    ("limits.h", true),
    ("math.h", true),
    ("math_constants.h", false),
    ("memory", false),
    ("new", true),
    ("stdarg.h", true),
    ("stddef.h", true),
    ("stdint.h", true),
    ("stdio.h", true),
    ("stdlib.h", true),
    ("string", false),
    ("string.h", true),
    ("time.h", true),
    ("type_traits", true),
    ("utility", true),
    ("vector", false),
    ("vector_types.h", false),
];

/// Whether a header is one of these.
pub(super) fn is_known(name: &str) -> bool {
    HEADERS.iter().any(|(known, _)| *known == name)
}

/// Whether the prelude reads a header before every source.
pub(super) fn is_read(name: &str) -> bool {
    HEADERS.contains(&(name, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_prelude_reads_is_what_its_header_includes() {
        let text = include_str!("include/kf_system.h");
        let included = |name: &str| text.contains(&format!("#include_next <{name}>"));
        for (name, read) in HEADERS {
            // Headers of C come with those of C++ that have their names.
            let of_c = name.strip_suffix(".h").map(|plain| format!("c{plain}"));
            let there = included(of_c.as_deref().unwrap_or(name)) || name.ends_with("assert.h") || name == "cassert";
            // Those behind `KF_WITHOUT_STD` are not always read.
            let sometimes = ["algorithm", "array", "limits"].contains(&name);
            assert_eq!(read, there && !sometimes, "{name}");
        }
    }
}

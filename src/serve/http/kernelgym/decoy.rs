//! Decoys: candidates that cannot run a kernel of their own, whatever they return. Reads the source as text; runs nothing.
//!
//! | backend | a decoy |
//! |---|---|
//! | `triton` | has no function with `@triton.jit`, or launches none of them |
//! | `cuda` | has no `__global__` function in a text, or nothing that compiles one |
//!
//! A request without a backend may have either kind. Where the kernels that calls launch were recorded, the record decides. Comments do not count. That a source launches a kernel does not show that the result depends on it, so what is no decoy here may still be one.

use super::request::Backend;

/// What compiles CUDA C++ from Python.
const COMPILERS: [&str; 7] =
    ["load_inline", "cpp_extension", "RawKernel", "RawModule", "compile_kernel", "nvrtc", "load_cutlass"];

/// Whether a candidate is a decoy.
pub(super) fn is_decoy(source: &str, backend: Option<Backend>) -> bool {
    let all = [Backend::Cuda, Backend::Triton];
    let text = without_comments(source);
    all.into_iter().filter(|one| backend.is_none_or(|named| named == *one)).all(|one| lacks_kernel(&text, one))
}

fn lacks_kernel(text: &str, backend: Backend) -> bool {
    match backend {
        Backend::Triton => !jitted(text).iter().any(|name| is_launched(text, name)),
        Backend::Cuda => !(text.contains("__global__") && COMPILERS.iter().any(|name| text.contains(name))),
    }
}

/// The functions with `@triton.jit`, by name.
fn jitted(text: &str) -> Vec<&str> {
    let mut found = vec![];
    let mut is_jitted = false;
    for line in text.lines().map(str::trim) {
        if let Some(decorator) = line.strip_prefix('@') {
            let name = decorator.split('(').next().unwrap_or_default().trim();
            is_jitted |= matches!(name, "triton.jit" | "jit") || name.ends_with(".triton.jit");
        } else if let Some(rest) = line.strip_prefix("def ") {
            if is_jitted && let Some((name, _)) = rest.split_once('(') {
                found.push(name.trim());
            }
            is_jitted = false;
        }
    }
    found
}

/// Whether a function is launched: `name[grid](...)`, or handed to a call such as `torch.library.wrap_triton(name)`.
fn is_launched(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let starts = !text[..at].chars().next_back().is_some_and(is_word);
        let after = text[at + name.len()..].trim_start();
        let is_definition = text[..at].trim_end().ends_with("def");
        starts && !is_definition && after.starts_with(['[', ')', ',', '.'])
    })
}

/// The source without comments. Texts in quotes stay, because they hold CUDA C++.
fn without_comments(source: &str) -> String {
    let bytes = source.as_bytes();
    let (mut out, mut at, mut from) = (String::with_capacity(source.len()), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'#' => {
                out.push_str(&source[from..at]);
                at = source[at..].find('\n').map_or(bytes.len(), |end| at + end);
                from = at;
            }
            quote @ (b'"' | b'\'') => {
                let length = if bytes[at..].starts_with(&[quote; 3]) { 3 } else { 1 };
                let mark = &bytes[at..at + length];
                at += length;
                while at < bytes.len() && !bytes[at..].starts_with(mark) && (length == 3 || bytes[at] != b'\n') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    out.push_str(source.get(from..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_without_a_kernel_that_it_launches_is_a_decoy() {
        let launched = "import triton\n@triton.autotune(configs=[], key=[])\n@triton.jit\ndef add(x, n: tl.constexpr):\n    pass\n\nclass ModelNew:\n    def forward(self, x):\n        add[(1,)](x, 4)\n";
        assert!(!is_decoy(launched, Some(Backend::Triton)));
        assert!(
            is_decoy(&launched.replace("        add[", "        # add["), Some(Backend::Triton)),
            "it is not launched"
        );
        assert!(is_decoy(&launched.replace("@triton.jit\n", ""), Some(Backend::Triton)), "it is no kernel");
        assert!(!is_decoy(&launched.replace("add[(1,)](x, 4)", "wrap_triton(add)[(1,)](x)"), Some(Backend::Triton)));
        assert!(is_decoy("class ModelNew: pass  # @triton.jit def k k[1]", Some(Backend::Triton)));
        let inline =
            "src = '''\n__global__ void k(float *x) {} // it's\n'''\nk = load_inline(name='k', cuda_sources=src)\n";
        assert!(!is_decoy(inline, Some(Backend::Cuda)) && is_decoy(inline, Some(Backend::Triton)));
        assert!(!is_decoy(launched, None) && !is_decoy(inline, None) && is_decoy("class ModelNew: pass", None));
        assert!(is_decoy(&inline.replace("load_inline", "print"), Some(Backend::Cuda)));
        assert!(is_decoy("x = 1 # __global__ load_inline", Some(Backend::Cuda)));
        assert!(is_decoy("class ModelNew: pass\ns = 'unclosed", Some(Backend::Cuda)));
        assert!(is_decoy("# é\ns = '\\é", Some(Backend::Cuda)), "any text is read");
    }
}

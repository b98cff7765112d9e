//! Makes the launch bounds of a source known at run time: after the `{` of a function that is declared with `__launch_bounds__(N)`, calls `kf_bounded(N)`,
//! which reports a block with more threads. In the body, `N` may name whatever the declaration may: parameters of a template, macros. Pure; line numbers do
//! not change.
//!
//! Bounds that a macro of the source hides, so that they do not precede a body in the text, are not found.

use super::launches::code_of;

const BOUNDS: &str = "__launch_bounds__";

/// The text with a check in the body of every function that has launch bounds; none if there is no such function.
pub(super) fn with_bounds(text: &str) -> Option<String> {
    if !text.contains(BOUNDS) {
        return None;
    }
    let bytes = text.as_bytes();
    let code = code_of(bytes);
    let mut checks: Vec<(usize, String)> = text
        .match_indices(BOUNDS)
        .filter(|(at, _)| is_word(bytes, &code, *at))
        .filter_map(|(at, _)| check(bytes, &code, at))
        .collect();
    // A declaration may state the bounds twice: in each branch of a condition. All of them hold.
    checks.sort_by_key(|(at, _)| *at);
    if checks.is_empty() {
        return None;
    }
    let (mut out, mut from) = (String::with_capacity(text.len() + 64), 0);
    for (at, check) in checks {
        out += &text[from..at];
        out += &check;
        from = at;
    }
    Some(out + &text[from..])
}

fn is_word(bytes: &[u8], code: &[bool], at: usize) -> bool {
    let part = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    code[at] && !part(at.checked_sub(1).and_then(|b| bytes.get(b))) && !part(bytes.get(at + BOUNDS.len()))
}

/// Where the body of the function begins whose bounds are stated at `at`, and the call that checks them.
fn check(bytes: &[u8], code: &[bool], at: usize) -> Option<(usize, String)> {
    let end = end_of_directive(bytes, at).unwrap_or(bytes.len());
    let open = (at + BOUNDS.len()..end).find(|i| code[*i] && !bytes[*i].is_ascii_whitespace())?;
    let close = (bytes[open] == b'(').then(|| group(bytes, code, open, end)).flatten()?;
    let mut next = close + 1;
    while next < end {
        match bytes[next] {
            _ if !code[next] => {}
            b'(' => next = group(bytes, code, next, end)?,
            b';' | b')' | b'}' => return None,
            b'{' => {
                let argument = |i: usize| if code[i] && !bytes[i].is_ascii_whitespace() { bytes[i] } else { b' ' };
                let arguments: Vec<u8> = (open + 1..close).map(argument).filter(|b| *b != b'\\').collect();
                return Some((next + 1, format!(" kf_bounded({});", String::from_utf8_lossy(&arguments).trim())));
            }
            _ => {}
        }
        next += 1;
    }
    None
}

/// The position of the parenthesis that closes the one at `open`.
fn group(bytes: &[u8], code: &[bool], open: usize, end: usize) -> Option<usize> {
    let mut depth = 0;
    for at in (open..end).filter(|at| code[*at]) {
        match bytes[at] {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The end of the preprocessor directive that `at` is in, if it is in one: a macro's body ends with its line.
fn end_of_directive(bytes: &[u8], at: usize) -> Option<usize> {
    let continued = |newline: usize| bytes[..newline].trim_ascii_end().ends_with(b"\\") && bytes[newline - 1] != b'\n';
    let newlines = || (0..bytes.len()).filter(|i| bytes[*i] == b'\n' && (*i == 0 || !continued(*i)));
    let start = newlines().take_while(|i| *i < at).last().map_or(0, |i| i + 1);
    let is_directive = bytes[start..at].trim_ascii_start().starts_with(b"#");
    is_directive.then(|| newlines().find(|i| *i >= at).unwrap_or(bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        with_bounds(text).unwrap_or_else(|| panic!("no bounds in {text}"))
    }

    #[test]
    fn a_body_checks_the_bounds_of_its_function() {
        for (text, want) in [
            ("__global__ void __launch_bounds__(64) k(int *x) { }", "kf_bounded(64);"),
            ("template <int B> __global__ __launch_bounds__(B * 2, 1) void k(int *x)\n{ }", "kf_bounded(B * 2, 1);"),
            (
                "__launch_bounds__ ( // most\n  M(1,\n 2)) __global__ void k(void (*f)(int)) noexcept(true) {}",
                "M(1,  2));",
            ),
            (
                "#define K(n, B) __global__ void __launch_bounds__(B) n(int *x) \\\n  { x[0] = 1; }\nvoid f() {}",
                "kf_bounded(B);",
            ),
            ("__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(64, 2, 4) k() {}", "kf_bounded(64, 2, 4);"),
        ] {
            let out = of(text);
            assert!(out.contains(want), "{out}");
            assert!(out.find("kf_bounded").unwrap() > out.find('{').unwrap(), "{out}");
            assert_eq!(out.lines().count(), text.lines().count());
        }
        assert_eq!(of("#define A 1\n__launch_bounds__(3) void k() {}").matches("kf_bounded").count(), 1);
    }

    #[test]
    fn text_without_a_body_stays() {
        for text in [
            "__global__ void __launch_bounds__(64) k(int *x);\nvoid f() {}",
            "#define LB __launch_bounds__(64)\n__global__ void LB k() {}",
            "// __launch_bounds__(64)\nvoid f() {}",
            "int my__launch_bounds__ (int x) { return x; }",
            "void f() {}",
        ] {
            assert_eq!(with_bounds(text), None, "{text}");
        }
    }
}

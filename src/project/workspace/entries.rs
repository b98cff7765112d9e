//! The kernels that a source declares, from its text only; for messages when a named kernel does not exist. Knows the spelling of declarations. Evaluates no
//! conditions or macros, so it may list kernels that are compiled out, and miss kernels that macros generate.

use super::includes::without_comments;

/// The names of the functions declared `__global__`, in order, each once.
pub fn kernels(text: &str) -> Vec<String> {
    let code = without_comments(text);
    let mut out: Vec<String> = vec![];
    for declaration in code.split("__global__").skip(1) {
        if let Some(name) = name(declaration)
            && !out.iter().any(|n| n == name)
        {
            out.push(name.into());
        }
    }
    out
}

/// The identifier before the parameters: the first one before a parenthesis that is not an attribute such as `__launch_bounds__(256)`.
fn name(declaration: &str) -> Option<&str> {
    let mut rest = declaration;
    loop {
        let start = rest.find(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ';' | '{' | '}'))?;
        rest = &rest[start..];
        if rest.starts_with([';', '{', '}']) {
            return None;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let called = after.trim_start().starts_with('(');
        if called && !word.starts_with("__") && word != "alignas" {
            return Some(word);
        }
        rest = if called { past_parentheses(after) } else { after };
    }
}

/// The text after the parenthesized group at its start.
fn past_parentheses(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ')' && depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found_whatever_stands_around_the_name() {
        let text = "template <int B>\n__global__ void a(int n) {}\n// __global__ void no(int n)\n\
                    __global__ void __launch_bounds__(256, max(1, 2)) b (float *x);\nextern \"C\" __global__ void\nc(void) {}\n\
                    __global__ __launch_bounds__(B) void a(float x);\n#define K __global__ static\n";
        assert_eq!(kernels(text), ["a", "b", "c"]);
    }
}

//! The functions for a device that files in Python define: those of Triton, and those of CUDA C++ in texts that a program compiles. Reads files; knows neither
//! what is launched nor what names mean. What a program puts together from parts is not found.

use std::collections::BTreeSet;

/// What files define.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OwnFunctions {
    /// Functions below a decorator `jit`.
    triton: BTreeSet<String>,
    /// Functions in CUDA C++ that are `__global__`, and have a body.
    cuda: BTreeSet<String>,
    /// Namespaces in CUDA C++.
    namespaces: BTreeSet<String>,
}

impl OwnFunctions {
    /// Those of these files.
    pub(super) fn of<'t>(files: impl Iterator<Item = &'t String>) -> Self {
        let mut found = OwnFunctions::default();
        for file in files {
            let Parts { code, texts } = Parts::of(file);
            found.triton.extend(jitted(&code));
            texts.iter().for_each(|text| found.read_cuda(&tokens(text)));
        }
        found
    }

    /// Those of the kernel of a step, for the virtual device.
    ///
    /// # Errors
    /// It cannot be read.
    #[cfg(any(debug_assertions, feature = "virtual-device"))]
    pub(crate) fn of_task(task: &kforge_harness::task::Task) -> Result<Self, kforge_harness::message::Response> {
        Ok(Self::of(task.document::<crate::steps::interpreted::Importable>("binary")?.files.values()))
    }

    /// Whether they define a kernel with this name. `qualified` is the name with its namespaces; only one in CUDA C++ has parameters.
    pub(crate) fn define(&self, qualified: &str, has_parameters: bool) -> bool {
        let mut parts: Vec<&str> = qualified.split("::").collect();
        let base = parts.pop().unwrap_or_default();
        let is_own = |space: &&str| *space == "(anonymous namespace)" || self.namespaces.contains(*space);
        self.cuda.contains(base) && parts.iter().all(is_own)
            || parts.is_empty() && !has_parameters && self.triton.contains(base)
    }

    fn read_cuda(&mut self, tokens: &[String]) {
        for (at, token) in tokens.iter().enumerate() {
            match token.as_str() {
                "__global__" => self.cuda.extend(defined(&tokens[at + 1..]).map(str::to_string)),
                "namespace" => {
                    let mut names = tokens[at + 1..].iter().filter(|token| *token != ":");
                    let of: Vec<&String> = names.by_ref().take_while(|token| is_word(token)).collect();
                    let ends = tokens[at + 1..].iter().find(|token| *token != ":" && !is_word(token));
                    if ends.is_some_and(|token| token == "{") {
                        self.namespaces.extend(of.into_iter().cloned());
                    }
                }
                _ => {}
            }
        }
    }
}

/// A file in Python: its code without comments and texts, and the texts. Texts that Python joins are one.
struct Parts {
    code: String,
    texts: Vec<String>,
}

impl Parts {
    fn of(file: &str) -> Self {
        let (mut code, mut texts) = (String::new(), Vec::<String>::new());
        // The code's length after the last text, if nothing follows that text yet.
        let mut joins = None;
        let mut rest = file;
        while let Some(c) = rest.chars().next() {
            match c {
                '#' => rest = rest.find('\n').map_or("", |end| &rest[end..]),
                '"' | '\'' => {
                    let prefix = code.len() - code.trim_end_matches(|c: char| "rRbBfFuU".contains(c)).len();
                    if prefix <= 2 {
                        code.truncate(code.len() - prefix);
                    }
                    let (text, after) = text(rest, c);
                    match texts.last_mut() {
                        Some(last) if joins.is_some_and(|end: usize| code[end..].trim().is_empty()) => *last += &text,
                        _ => texts.push(text),
                    }
                    code += "''";
                    joins = Some(code.len());
                    rest = after;
                }
                c => {
                    code.push(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        Parts { code, texts }
    }
}

/// A text that begins with this quote, and what follows it. Escapes are ends of lines or spaces.
fn text(from: &str, quote: char) -> (String, &str) {
    let three: String = [quote; 3].iter().collect();
    let end = if from.starts_with(&three) { three } else { quote.to_string() };
    let (mut found, mut rest) = (String::new(), &from[end.len()..]);
    while let Some(c) = rest.chars().next() {
        if rest.starts_with(&end) {
            return (found, &rest[end.len()..]);
        }
        if end.len() == 1 && c == '\n' {
            break;
        }
        let mut step = c.len_utf8();
        if c == '\\' {
            let escaped = rest[step..].chars().next();
            step += escaped.map_or(0, char::len_utf8);
            // Where a line ends, so does a comment.
            found.push(if escaped == Some('n') { '\n' } else { ' ' });
        } else {
            found.push(c);
        }
        rest = &rest[step..];
    }
    (found, rest)
}

/// Words, and other characters one by one, without comments of C++.
fn tokens(text: &str) -> Vec<String> {
    let (mut found, mut rest) = (vec![], text);
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = rest[2..].find("*/").map_or("", |end| &rest[2 + end + 2..]);
        } else if in_word(c) {
            let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
            found.push(rest[..end].to_string());
            rest = &rest[end..];
        } else {
            found.extend((!c.is_whitespace()).then(|| c.to_string()));
            rest = &rest[c.len_utf8()..];
        }
    }
    found
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_word(token: &str) -> bool {
    token.starts_with(in_word)
}

/// The function that is defined after `__global__`.
fn defined(tokens: &[String]) -> Option<&str> {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let mut next = at + 1;
        if matches!(token.as_str(), ";" | "{" | "}") {
            return None;
        }
        // Arguments of a template are a part of a name or of a type.
        if is_word(token) && tokens.get(next).is_some_and(|token| token == "<") {
            next = closed(tokens, next, "<", ">");
        }
        if is_word(token) && tokens.get(next).is_some_and(|token| token == "(") {
            next = closed(tokens, next, "(", ")");
            // `__launch_bounds__(256)`, and types.
            if !token.starts_with("__") && !matches!(token.as_str(), "alignas" | "decltype") {
                return tokens.get(next).is_some_and(|token| token == "{").then_some(token.as_str());
            }
        }
        at = next;
    }
    None
}

/// The position after the bracket that closes the one at `at`.
fn closed(tokens: &[String], at: usize, opens: &str, closes: &str) -> usize {
    let (mut depth, mut at) = (0, at);
    while let Some(token) = tokens.get(at) {
        if opens == "<" && token == "(" {
            at = closed(tokens, at, "(", ")");
            continue;
        }
        depth += i32::from(token == opens) - i32::from(token == closes);
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

/// Functions below a decorator `jit`, as `@triton.jit` is.
fn jitted(code: &str) -> BTreeSet<String> {
    let (mut found, mut is_jitted, mut depth) = (BTreeSet::new(), false, 0i32);
    for line in code.lines() {
        let (begins, line) = (depth <= 0, line.trim());
        depth += line.matches(['(', '[', '{']).count() as i32 - line.matches([')', ']', '}']).count() as i32;
        if !begins || line.is_empty() {
            continue;
        }
        if let Some(decorator) = line.strip_prefix('@') {
            let path = decorator.split(|c| !in_word(c) && c != '.').next().unwrap_or_default();
            is_jitted |= path.rsplit('.').next() == Some("jit");
            continue;
        }
        if let (true, Some(rest)) = (is_jitted, line.strip_prefix("def ")) {
            found.extend(rest.split(|c| !in_word(c)).find(|word| !word.is_empty()).map(str::to_string));
        }
        is_jitted = false;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str) -> OwnFunctions {
        OwnFunctions::of([file.to_string()].iter())
    }

    fn cuda(file: &str) -> Vec<String> {
        of(file).cuda.into_iter().collect()
    }

    #[test]
    fn a_word_of_a_comment_or_a_text_is_no_function() {
        for file in [
            "# gemv2T_kernel_val\n",
            "# __global__ void gemv2T_kernel_val() {}\n",
            "NAME = 'gemv2T_kernel_val'\n",
            "SOURCE = '''// __global__ void gemv2T_kernel_val() {}\n/* __global__ void gemv2T_kernel_val() {} */'''\n",
            "SOURCE = '__global__ void gemv2T_kernel_val(int);'\n",
            "def gemv2T_kernel_val():\n    pass\n",
            "@property\ndef gemv2T_kernel_val():\n    pass\n",
            "# @triton.jit\ndef gemv2T_kernel_val():\n    pass\n",
            "@triton.jit\ndef f():\n    pass\n\n\ndef gemv2T_kernel_val():\n    pass\n",
        ] {
            let found = of(file);
            assert!(!found.define("gemv2T_kernel_val", false) && !found.define("gemv2T_kernel_val", true), "{file}");
        }
    }

    #[test]
    fn a_function_in_cuda_is_found_however_it_is_written() {
        for source in [
            "__global__ void f(float *x) { x[0] = 0; }",
            "extern \\\"C\\\" __global__ void f() {}",
            "// comment\\n__global__ void __launch_bounds__(256, (2)) f(float const *x) {}",
            "template <int N> __global__ __launch_bounds__(N) static void f(float (&x)[N]) {{ }}",
            "template <> __global__ void f<4>(float *x) {}",
            "template <int N> __global__ std::enable_if_t<(N > 1), void> f(float *x) // comment\n{}",
        ] {
            for file in [format!("S = \"\"\"{source}\"\"\"\n"), format!("S = rf'''{source}'''\n")] {
                assert_eq!(cuda(&file), ["f"], "{file}");
            }
        }
        let joined = "S = ('__global__ void f('  # the inputs\n     f'float *x) {{}}' )\nGLOB = 'src/*'\nT = '__global__ void g() {}'\n";
        assert_eq!(cuda(joined), ["f", "g"]);
    }

    #[test]
    fn a_function_of_triton_is_found_below_other_decorators() {
        let file = "@triton.autotune(\n    configs=[triton.Config({'B': 1})],\n    key=['n'],\n)\n@triton.jit  # fast\ndef f(x, n):\n    pass\n\n\
                    class A:\n    @jit(debug=True)\n    def g(x):\n        pass\n";
        let found = of(file);
        assert_eq!(found.triton.iter().collect::<Vec<_>>(), ["f", "g"]);
        assert!(found.define("f", false) && !found.define("f", true) && !found.define("other::f", false));
    }

    #[test]
    fn a_function_in_cuda_has_the_namespaces_of_the_files() {
        let found = of("S = '''namespace a::b { namespace { __global__ void f() {} } }\nusing namespace c;'''\n");
        for (name, is_own) in [("f", true), ("a::b::(anonymous namespace)::f", true), ("c::f", false), ("a::g", false)]
        {
            assert_eq!(found.define(name, true), is_own, "{name}");
        }
    }
}

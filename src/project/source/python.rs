//! The functions of a Python file with their parameters, for kernels in Triton. Knows names, defaults and whether an annotation says `constexpr`; evaluates
//! nothing, so decorators and values are text. Only functions at the top of the file count, because a launch names one by its name alone.

use std::collections::BTreeMap;

use kforge_types::model::triton::JitParam;

/// The functions at the top of a file, by name. Of functions with one name, the last one counts, as in Python.
pub fn functions(text: &str) -> BTreeMap<String, Vec<JitParam>> {
    let text = blanked(text);
    let mut found = BTreeMap::new();
    let mut at = 0;
    while at < text.len() {
        let line = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
        // Inside brackets that a line before it opened, a line begins no statement; `blanked` has joined such lines.
        if let Some(rest) = text[at..line].strip_prefix("def ")
            && let Some((name, after)) = rest.split_once('(')
            && let Some(end) = closing(after)
        {
            found.insert(name.trim().to_string(), params(&after[..end]));
        }
        at = line;
    }
    found
}

/// The text with comments and the contents of strings blanked and line breaks inside brackets and after backslashes replaced by spaces.
fn blanked(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at, mut depth) = (Vec::with_capacity(bytes.len()), 0, 0usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'#' => {
                while bytes.get(at).is_some_and(|b| *b != b'\n') {
                    at += 1;
                }
                continue;
            }
            b'"' | b'\'' => {
                let triple = bytes[at..].starts_with(&[byte; 3]);
                let quote: &[u8] = if triple { &[byte, byte, byte] } else { &[byte] };
                let from = at + quote.len();
                at = from;
                while at < bytes.len() && !bytes[at..].starts_with(quote) && (triple || bytes[at] != b'\n') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                let inner = &bytes[from.min(bytes.len())..at.min(bytes.len())];
                // What an annotation in quotes says still counts.
                let word = inner.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_'));
                out.push(b'"');
                if word && depth > 0 {
                    out.extend(inner);
                }
                out.push(b'"');
                // A string that does not end on its line is a mistake that Python will name.
                at += if bytes.get(at) == Some(&b'\n') { 0 } else { quote.len() };
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'\\' if bytes.get(at + 1) == Some(&b'\n') => {
                out.push(b' ');
                at += 2;
                continue;
            }
            b'\r' => {
                at += 1;
                continue;
            }
            b'\n' if depth > 0 => {
                out.push(b' ');
                at += 1;
                continue;
            }
            _ => {}
        }
        out.push(byte);
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where the bracket that is open at the start of a text closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The parameters between the brackets of a function.
fn params(list: &str) -> Vec<JitParam> {
    let (mut parts, mut from, mut depth) = (vec![], 0, 0usize);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[from..]);
    let param = |part: &str| {
        let (declared, default) = match top(part, b'=') {
            Some(at) => (&part[..at], true),
            None => (part, false),
        };
        let (name, annotation) = declared.split_once(':').unwrap_or((declared, ""));
        let annotation = annotation.trim().trim_matches('"');
        let constexpr = annotation.rsplit('.').next() == Some("constexpr");
        JitParam { name: name.trim().to_string(), constexpr, default }
    };
    let named = parts.into_iter().map(str::trim).filter(|part| !matches!(*part, "" | "/" | "*"));
    named.map(param).collect()
}

/// Where a byte stands outside of brackets.
fn top(text: &str, wanted: u8) -> Option<usize> {
    let mut depth = 0usize;
    text.bytes().position(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && byte == wanted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let param = |p: &JitParam| {
            format!("{}{}{}", p.name, if p.constexpr { "!" } else { "" }, if p.default { "=" } else { "" })
        };
        let function = |(name, params): (&String, &Vec<JitParam>)| {
            format!("{name}({})", params.iter().map(param).collect::<Vec<_>>().join(" "))
        };
        functions(text).iter().map(function).collect()
    }

    #[test]
    fn parameters_are_read_with_annotations_and_defaults() {
        let text = "import triton\n\n@triton.autotune(configs=[f(1, 2)], key=['n'])\n@triton.jit\ndef f(x, y,  # a, b: tl.constexpr\n      n: tl.int64,\n      BLOCK: tl.constexpr, ACT: \"tl.constexpr\" = 'def g(', *, Z: tl.constexpr = (1, 2)):\n    def inner(a): pass\n";
        assert_eq!(shown(text), ["f(x y n BLOCK! ACT!= Z!=)"]);
    }

    #[test]
    fn text_in_strings_and_comments_declares_nothing() {
        let text = "\"\"\"\ndef a(x): pass\n\"\"\"\n# def b(x)\nv = [\ndef_c, \n]\ns = 'def d('\nclass C:\n    def m(self): pass\ndef e(): pass\n";
        assert_eq!(shown(text), ["e()"]);
    }

    #[test]
    fn the_last_of_two_functions_counts_and_brackets_may_stay_open() {
        assert_eq!(shown("def f(a): pass\ndef f(a, b): pass\ndef g(a,\n"), ["f(a b)"]);
        assert_eq!(shown("def f(\\\n  a\\\n): pass\nx = 'it''s \\'\ndef h(q): pass\n"), ["f(a)", "h(q)"]);
    }
}

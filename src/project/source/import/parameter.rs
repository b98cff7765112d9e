//! Parameters of a kernel: their types in a manifest, and what the body does with the memory behind a pointer. Knows C++'s types and how elements are read and
//! written; follows pointers through local variables, not through calls.

use std::collections::{BTreeMap, BTreeSet};

use super::super::declarations::closing;
use super::super::macros::spelled;
use super::super::tokens::{Kind, Token, tokens};
use super::expression::split;

/// What a kernel does with the memory behind a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Written,
    /// Read before it is written, or in the same statement.
    Both,
    /// Added to by atomics.
    Atomic,
    /// Cannot be told.
    Unknown,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// The type of a value or of an element, without qualifiers, as the source spells it.
    pub(super) spelling: String,
    /// The dtype of a value or of an element; none if it has none.
    pub(super) dtype: Option<&'static str>,
    /// How many elements of that dtype the type has: 4 for `float4`.
    pub(super) lanes: i64,
    pub(super) pointer: bool,
    pub(super) constant: bool,
    pub(super) access: Access,
    /// Why the dtype is a guess.
    pub(super) doubt: Option<String>,
}

/// The dtype of a type of C++, and how many elements it has.
pub(in crate::source) fn dtype(spelling: &str) -> Option<(&'static str, i64)> {
    let last = spelling.rsplit("::").next().unwrap_or(spelling).trim();
    Some(match last {
        "float" => ("f32", 1),
        "double" => ("f64", 1),
        "half" | "__half" | "Half" => ("f16", 1),
        "__nv_bfloat16" | "nv_bfloat16" | "BFloat16" | "bfloat16" => ("bf16", 1),
        "__nv_fp8_e4m3" => ("f8e4m3", 1),
        "__nv_fp8_e5m2" => ("f8e5m2", 1),
        "int" | "int32_t" | "signed" | "signed int" => ("i32", 1),
        "unsigned" | "unsigned int" | "uint32_t" | "uint" => ("u32", 1),
        "int64_t" | "long" | "long int" | "long long" | "long long int" | "ptrdiff_t" => ("i64", 1),
        "uint64_t" | "size_t" | "unsigned long" | "unsigned long long" | "unsigned long int" => ("u64", 1),
        "int16_t" | "short" | "short int" => ("i16", 1),
        "uint16_t" | "unsigned short" | "ushort" => ("u16", 1),
        "int8_t" | "char" | "signed char" => ("i8", 1),
        "uint8_t" | "unsigned char" | "uchar" => ("u8", 1),
        "bool" => ("bool", 1),
        "half2" | "__half2" => ("f16", 2),
        "nv_bfloat162" | "__nv_bfloat162" => ("bf16", 2),
        _ => {
            let count = last.chars().last().and_then(|c| c.to_digit(10)).filter(|n| (2..=4).contains(n))?;
            let base = match &last[..last.len() - 1] {
                "float" => "f32",
                "double" => "f64",
                "int" => "i32",
                "uint" => "u32",
                "short" => "i16",
                "ushort" => "u16",
                "char" => "i8",
                "uchar" => "u8",
                _ => return None,
            };
            (base, i64::from(count))
        }
    })
}

/// The type at the end of aliases, and a text if one of them has several meanings.
pub(super) fn followed<'a>(spelling: &'a str, types: &'a BTreeMap<String, Vec<String>>) -> (&'a str, Option<String>) {
    let (mut at, mut doubt) = (spelling, None);
    for _ in 0..8 {
        let Some(all) = types.get(at) else { break };
        let Some(first) = all.first().filter(|first| *first != at) else { break };
        if all.len() > 1 {
            let all: Vec<String> = all.iter().map(|one| format!("`{one}`")).collect();
            doubt = Some(format!("`{at}` is {}", all.join(" or ")));
        }
        at = first;
    }
    (at, doubt)
}

/// The bytes of an element of a dtype.
pub(super) fn bytes(dtype: &str) -> i64 {
    match dtype {
        "f64" | "i64" | "u64" => 8,
        "f32" | "i32" | "u32" => 4,
        "f16" | "bf16" | "i16" | "u16" => 2,
        _ => 1,
    }
}

/// The parameters of a kernel whose body is `body`. `types` holds what names of types stand for: aliases, arguments of a template.
pub(super) fn parameters(text: &str, body: &[Token], types: &BTreeMap<String, Vec<String>>) -> Vec<Parameter> {
    let (all, _) = tokens(text);
    split(&all)
        .into_iter()
        .filter(|text| !text.iter().all(|t| t.is("void")))
        .map(|p| parameter(p, body, types))
        .collect()
}

fn parameter(text: &[Token], body: &[Token], types: &BTreeMap<String, Vec<String>>) -> Parameter {
    let end = text.iter().position(|t| t.is("=")).unwrap_or(text.len());
    let text = &text[..end];
    let array = text.iter().position(|t| t.is("["));
    let text = &text[..array.unwrap_or(text.len())];
    let named = text.iter().rposition(Token::is_word).unwrap_or(0);
    let name = text.get(named).map(|t| t.text.clone()).unwrap_or_default();
    let star = text.iter().position(|t| t.is("*"));
    let kept = |t: &&Token| {
        !["const", "volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__", "typename", "struct"]
            .iter()
            .any(|word| t.is(word))
    };
    let until = star.unwrap_or(named).min(named);
    let of_type: Vec<Token> = text[..until].iter().filter(kept).cloned().collect();
    let mut spelling = spelled(&of_type).replace(" ::", "::").replace(":: ", "::");
    let (end, doubt) = followed(&spelling, types);
    spelling = end.to_string();
    let pointer = star.is_some() || array.is_some();
    let several = text.iter().filter(|t| t.is("*")).count() > 1;
    let found = dtype(&spelling).filter(|_| !several);
    let constant = text[..star.unwrap_or(text.len())].iter().any(|t| t.is("const"));
    let access = match (pointer, constant) {
        (true, true) => Access::Read,
        (true, false) => access(&name, body),
        (false, _) => Access::Read,
    };
    Parameter {
        name,
        spelling,
        dtype: found.map(|f| f.0),
        lanes: found.map_or(1, |f| f.1),
        pointer,
        constant,
        access,
        doubt,
    }
}

/// Variables of a body that point into the same memory.
fn aliases(name: &str, body: &[Token]) -> BTreeSet<String> {
    let mut found = BTreeSet::from([name.to_string()]);
    for _ in 0..3 {
        for at in 2..body.len() {
            let declared =
                body[at].is("=") && body[at - 1].is_word() && (body[at - 2].is("*") || body[at - 2].is("auto"));
            let restricted = body[at].is("=") && body[at - 1].is_word() && body[at - 2].is("__restrict__");
            if !(declared || restricted) || body[at - 1].is(name) {
                continue;
            }
            let end = (at..body.len()).find(|i| body[*i].is(";")).unwrap_or(body.len());
            let value = &body[at + 1..end];
            // The value is a pointer if its pointer is not followed, or if the address of what follows is taken.
            let first = value.iter().position(|t| t.is_word() && found.contains(&t.text));
            let pointer = first.is_some_and(|first| {
                let element = value.get(first + 1).is_some_and(|t| t.is("["));
                let followed = first > 0 && value[first - 1].is("*") && (first < 2 || value[first - 2].is("("));
                !followed && (!element || value[..first].iter().any(|t| t.is("&")))
            });
            if pointer {
                found.insert(body[at - 1].text.clone());
            }
        }
    }
    found
}

/// What a body does with the memory behind a pointer.
pub(super) fn access(name: &str, body: &[Token]) -> Access {
    let names = aliases(name, body);
    // By position: a write takes place at the end of its statement.
    let mut found: Vec<(usize, Access)> = vec![];
    for at in 0..body.len() {
        if !body[at].is_word() || !names.contains(&body[at].text) {
            continue;
        }
        if at > 0 && (body[at - 1].is(".") || body[at - 1].is("->")) {
            continue;
        }
        if let Some(one) = at_use(body, at) {
            let end = if one == Access::Read {
                at
            } else {
                (at..body.len()).find(|i| body[*i].is(";")).unwrap_or(body.len())
            };
            found.push((end, one));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let any = |access: Access| found.iter().any(|(_, a)| *a == access);
    match found.first().map(|(_, first)| *first) {
        _ if any(Access::Unknown) => Access::Unknown,
        None => Access::Unknown,
        Some(_) if any(Access::Atomic) => Access::Atomic,
        Some(Access::Read) if any(Access::Written) || any(Access::Both) => Access::Both,
        Some(Access::Read) => Access::Read,
        Some(first) => first,
    }
}

/// What one use of a pointer does; none if it only moves or copies the pointer.
pub(super) fn at_use(body: &[Token], at: usize) -> Option<Access> {
    let (mut first, mut last) = (at, at);
    let mut element = false;
    loop {
        // What follows the expression.
        while body.get(last + 1).is_some_and(|t| t.is("[") || t.is(".") || t.is("->")) {
            if body[last + 1].is("[") {
                element = true;
                last = closing(body, last + 1)?;
            } else {
                element |= body[last + 1].is("->");
                last += 2;
            }
        }
        // What precedes it: `*`, `&`, a cast.
        let before = |n: usize| first.checked_sub(n).map(|i| &body[i]);
        if before(1).is_some_and(|t| t.is("*"))
            && before(2).is_none_or(|t| t.kind == Kind::Punctuation && !t.is(")") && !t.is("]") || t.is("return"))
        {
            element = true;
            first -= 1;
            continue;
        }
        if before(1).is_some_and(|t| t.is("&"))
            && before(2).is_none_or(|t| t.kind == Kind::Punctuation && !t.is(")") && !t.is("]"))
        {
            element = false;
            first -= 1;
            continue;
        }
        if before(1).is_some_and(|t| t.is(")")) && before(2).is_some_and(|t| t.is("*")) {
            // A cast in C's style: `(float4 *)`.
            first = opening(body, first - 1)?;
            continue;
        }
        let Some(open) = enclosing(body, first) else { break };
        // An offset in the same brackets: `*(x + i)`.
        let close = closing(body, open)?;
        let inside = body[last + 1..close].first();
        let offset = inside.is_none_or(|t| (t.is("+") || t.is("-")) && !body.get(last + 2).is_some_and(|t| t.is("=")));
        let alone = open + 1 == first && offset;
        if !body[open].is("(") || !alone {
            break;
        }
        let before = open.checked_sub(1).map(|i| &body[i]);
        if let Some(name) = before.filter(|t| t.is_word() && !is_word_of_statement(&t.text)) {
            return Some(if element { Access::Read } else { of_call(&name.text) });
        }
        if before.is_some_and(|t| t.is(">")) {
            let cast = (0..open).rev().take(24).any(|i| body[i].is("reinterpret_cast") || body[i].is("static_cast"));
            if !cast {
                return Some(Access::Unknown);
            }
            first = (0..open).rev().find(|i| body[*i].is("reinterpret_cast") || body[*i].is("static_cast"))?;
            last = close;
            continue;
        }
        first = open;
        last = close;
    }
    let next = body.get(last + 1);
    let after = body.get(last + 2);
    let is = |token: Option<&Token>, text: &str| token.is_some_and(|t| t.is(text));
    let assigned = is(next, "=") && !is(after, "=");
    let changed = ["+", "-", "*", "/", "|", "&", "^"].iter().any(|s| is(next, s)) && is(after, "=")
        || is(next, "+") && is(after, "+")
        || is(next, "-") && is(after, "-");
    if !element {
        // In the arguments of a call.
        let open = enclosing(body, first)?;
        let name = open.checked_sub(1).map(|i| &body[i]).filter(|t| t.is_word());
        return match name.filter(|_| body[open].is("(") && !assigned && !changed) {
            Some(name) if !is_word_of_statement(&name.text) => Some(of_call(&name.text)),
            _ => None,
        };
    }
    Some(match (assigned, changed) {
        (true, _) => Access::Written,
        (_, true) => Access::Both,
        _ => Access::Read,
    })
}

/// The bracket that encloses a position within its statement.
fn enclosing(body: &[Token], at: usize) -> Option<usize> {
    let mut depth = 0;
    for i in (0..at).rev() {
        match body[i].text.as_str() {
            _ if body[i].kind != Kind::Punctuation => {}
            ")" | "]" => depth += 1,
            "(" | "[" if depth == 0 => return Some(i),
            "(" | "[" => depth -= 1,
            ";" | "{" | "}" if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The position of the parenthesis that `close` closes.
fn opening(body: &[Token], close: usize) -> Option<usize> {
    let mut depth = 0;
    (0..=close).rev().find(|i| {
        depth += i32::from(body[*i].is(")")) - i32::from(body[*i].is("("));
        depth == 0
    })
}

fn is_word_of_statement(word: &str) -> bool {
    ["if", "while", "for", "return", "switch", "sizeof", "else"].contains(&word)
}

/// What a function does with a pointer that it is given.
fn of_call(name: &str) -> Access {
    match name {
        _ if name.starts_with("atomic") => Access::Atomic,
        _ if name.starts_with("__ldg") || name.starts_with("__ldc") || name.starts_with("__lda") => Access::Read,
        _ if name.starts_with("__stc") || name.starts_with("__stw") => Access::Written,
        _ => Access::Unknown,
    }
}

/// The widest vector by which a body accesses memory, in bytes; none if it accesses single elements only.
pub(super) fn vector_bytes(body: &[Token]) -> Option<i64> {
    let of = |spelling: &str| dtype(spelling).filter(|(_, lanes)| *lanes > 1).map(|(base, lanes)| lanes * bytes(base));
    body.windows(2).filter(|w| w[0].is_word() && w[1].is("*")).filter_map(|w| of(&w[0].text)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Access {
        access("y", &tokens(body).0)
    }

    #[test]
    fn what_a_body_does_with_a_pointer_is_found() {
        for (body, expected) in [
            ("{ y[i] = x[i]; }", Access::Written),
            ("{ *y = 1; }", Access::Written),
            ("{ *(y + i) = 1; }", Access::Written),
            ("{ float v = y[i]; }", Access::Read),
            ("{ z[y[i]] = 1; }", Access::Read),
            ("{ y[i] += 1; }", Access::Both),
            ("{ y[i] = max(y[i], 0); }", Access::Both),
            ("{ y[i] = 1; z = y[i]; }", Access::Written),
            ("{ z = y[i]; y[i] = 1; }", Access::Both),
            ("{ atomicAdd(y, v); }", Access::Atomic),
            ("{ atomicAdd(&y[i], v); }", Access::Atomic),
            ("{ (reinterpret_cast<float4 *>(&(y[i]))[0]) = v; }", Access::Written),
            ("{ v = (reinterpret_cast<float4 *>(&(y[i]))[0]); }", Access::Read),
            ("{ *reinterpret_cast<float4 *>(y + i) = v; }", Access::Written),
            ("{ ((float4 *)y)[i] = v; }", Access::Written),
            ("{ float *row = y + i * n; row[j] = 1; }", Access::Written),
            ("{ const float *row = y + i * n; s += row[j]; }", Access::Read),
            ("{ float4 *q = reinterpret_cast<float4 *>(y); q[i].x = 1; }", Access::Written),
            ("{ y += i * n; y[j] = 1; }", Access::Written),
            ("{ __stcs(y + i, v); }", Access::Written),
            ("{ v = __ldg(&y[i]); }", Access::Read),
            ("{ store(y, v); }", Access::Unknown),
            ("{ if (y[i] == 1) { z = 1; } }", Access::Read),
        ] {
            assert_eq!(of(body), expected, "{body}");
        }
    }

    #[test]
    fn types_have_dtypes() {
        let types = BTreeMap::from([("T".to_string(), vec!["half".to_string()])]);
        let found = parameters(
            "const float *__restrict__ x, T *y, const unsigned int n, float4 *v, unsigned long long k, S s, at::Half *h, int a[], float **p, const double scale = 1",
            &[],
            &types,
        );
        let seen: Vec<(String, Option<&str>, i64, bool)> =
            found.iter().map(|p| (p.name.clone(), p.dtype, p.lanes, p.pointer)).collect();
        let expected = [
            ("x", Some("f32"), 1, true),
            ("y", Some("f16"), 1, true),
            ("n", Some("u32"), 1, false),
            ("v", Some("f32"), 4, true),
            ("k", Some("u64"), 1, false),
            ("s", None, 1, false),
            ("h", Some("f16"), 1, true),
            ("a", Some("i32"), 1, true),
            ("p", None, 1, true),
            ("scale", Some("f64"), 1, false),
        ];
        assert_eq!(seen, expected.map(|(n, d, l, p)| (n.to_string(), d, l, p)));
    }
}

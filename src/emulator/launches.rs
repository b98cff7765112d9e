//! Rewrites `kernel<<<grid, block>>>(...)` in a source to C++ that a host compiler accepts: `kf_launch("...", grid, block)(...)`,
//! which reports when it is executed that it is not emulated. Host code that launches kernels is never run; a kernel that launches
//! others uses dynamic parallelism. Pure; line numbers do not change.

/// The text with every launch rewritten; none if it contains no launch.
pub(super) fn without_launches(text: &str) -> Option<String> {
    if !text.contains("<<<") {
        return None;
    }
    let bytes = text.as_bytes();
    let code = code_of(bytes);
    let mut out: Vec<u8> = Vec::with_capacity(text.len() + 64);
    let (mut at, mut any) = (0, false);
    while at < bytes.len() {
        if code[at] && bytes[at..].starts_with(b"<<<") {
            let closes = closing(bytes, &code, at + 3);
            let callee = callee_before(&out);
            if let (Some(close), Some(callee)) = (closes, callee) {
                let name = String::from_utf8_lossy(&out[callee..]).split_whitespace().collect::<String>();
                // Keeps the line breaks of the replaced text.
                let lines = out[callee..].iter().filter(|b| **b == b'\n').count();
                out.truncate(callee);
                out.extend(format!("kf_launch(\"kernel launch {name}<<<>>>\", ").bytes());
                out.extend(std::iter::repeat_n(b'\n', lines));
                out.extend(&bytes[at + 3..close]);
                out.push(b')');
                at = close + 3;
                any = true;
                continue;
            }
        }
        out.push(bytes[at]);
        at += 1;
    }
    any.then(|| String::from_utf8_lossy(&out).into_owned())
}

/// For each byte, whether it is code: not in a comment, string or character.
pub(super) fn code_of(bytes: &[u8]) -> Vec<bool> {
    let mut code = vec![true; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let end = match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'/')) => bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n),
            (b'/', Some(b'*')) => {
                bytes[at + 2..].windows(2).position(|w| w == b"*/").map_or(bytes.len(), |n| at + n + 4)
            }
            (quote @ (b'"' | b'\''), _) if quote == b'"' || at == 0 || !bytes[at - 1].is_ascii_alphanumeric() => {
                let mut end = at + 1;
                while end < bytes.len() && bytes[end] != quote && bytes[end] != b'\n' {
                    end += if bytes[end] == b'\\' { 2 } else { 1 };
                }
                end + 1
            }
            _ => {
                at += 1;
                continue;
            }
        };
        let end = end.min(bytes.len());
        code[at..end].fill(false);
        at = end;
    }
    code
}

/// The position of the `>>>` that closes a launch whose arguments begin at `from`.
fn closing(bytes: &[u8], code: &[bool], from: usize) -> Option<usize> {
    let mut depth = 0i32;
    for at in from..bytes.len() {
        match bytes[at] {
            _ if !code[at] => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'>' if depth == 0 && bytes[at..].starts_with(b">>>") => return Some(at),
            b';' => return None,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

/// The start of the kernel's name at the end of the text written so far: `ops::add<float, 4>`.
fn callee_before(out: &[u8]) -> Option<usize> {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut at = out.len();
    let skip = |mut at: usize| {
        while at > 0 && out[at - 1].is_ascii_whitespace() {
            at -= 1;
        }
        at
    };
    at = skip(at);
    if at > 0 && out[at - 1] == b'>' {
        let mut depth = 0i32;
        while at > 0 {
            at -= 1;
            match out[at] {
                b'>' | b')' => depth += 1,
                b'<' | b'(' => depth -= 1,
                b';' | b'{' | b'}' => return None,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        at = skip(at);
    }
    let end = at;
    loop {
        while at > 0 && is_word(out[at - 1]) {
            at -= 1;
        }
        if at >= 2 && &out[at - 2..at] == b"::" {
            at -= 2;
        } else {
            break;
        }
    }
    (at < end).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_becomes_a_call_that_names_it() {
        let of = |text: &str| without_launches(text).unwrap();
        assert_eq!(of("add<<<1, n>>>(x, y);"), "kf_launch(\"kernel launch add<<<>>>\", 1, n)(x, y);");
        assert_eq!(
            of("if (n) ops::add<float, 4> <<<dim3(1, f(n >> 3)), 32, 0, s>>> ();"),
            "if (n) kf_launch(\"kernel launch ops::add<float,4><<<>>>\", dim3(1, f(n >> 3)), 32, 0, s) ();"
        );
        assert_eq!(of("a<<<1, 2>>>(); b<<<3, 4>>>();").matches("kf_launch").count(), 2);
    }

    #[test]
    fn no_line_moves() {
        let text = "int a;\nadd<float,\n    4>\n<<<1,\n2>>>(x,\ny);\nint b;\n";
        let line = |text: &str, what: &str| text.lines().position(|l| l.contains(what));
        let out = without_launches(text).unwrap();
        assert_eq!(line(&out, "int b"), line(text, "int b"));
        assert_eq!(out.lines().count(), text.lines().count());
    }

    #[test]
    fn text_that_is_no_launch_stays() {
        for text in ["int a = 1 << 3;", "// add<<<1, 2>>>(x)\n", "f(\"<<<1>>>\");", "/* a<<<1,2>>>() */", "<<<1, 2>>>"]
        {
            assert_eq!(without_launches(text), None, "{text}");
        }
    }
}

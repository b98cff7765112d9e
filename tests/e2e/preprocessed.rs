//! Random macros that make a kernel and host code: after a compiler's preprocessor, the kernel that stays has the tokens that it has in the source as written.

use std::collections::BTreeMap;
use std::process::Command;

use kforge::base::testing::skipped;
use kforge::source::{Given, SourceTree, Sources};

/// How many sources are tried. 1,500 take a minute.
const TRIALS: usize = 60;

struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % count
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        let index = self.below(all.len());
        all[index]
    }

    /// Some of these, with or without spaces.
    fn body(&mut self, all: &[&str], most: usize) -> String {
        let parts: Vec<&str> = (0..self.below(most)).map(|_| self.of(all)).collect();
        parts.join(self.of(&[" ", " ", ""]))
    }

    /// Definitions of a macro: one, one of two under a condition, or one after another.
    fn defined(&mut self, head: &str, all: &[&str]) -> String {
        let (one, other) = (self.body(all, 4), self.body(all, 4));
        let name = head.split('(').next().unwrap();
        match self.below(6) {
            0 => format!("#ifdef X\n#define {head} {one}\n#else\n#define {head} {other}\n#endif\n"),
            1 => format!("#define {head} {one}\n#undef {name}\n#define {head} {other}\n"),
            _ => format!("#define {head} {one}\n"),
        }
    }

    fn source(&mut self) -> String {
        const ATOMS: [&str; 18] = [
            "1",
            "x",
            "A",
            "B",
            "C",
            "F(A)",
            "G(B, 2)",
            "F(F(1))",
            "+",
            "-",
            "(A, B)",
            "F",
            "(3)",
            ",",
            "H(A, B, 1)",
            "\"s\\n\"",
            "'c'",
            "MAKE",
        ];
        const ONE: [&str; 13] =
            ["a", "#a", "a##_k", "q##a", "a a", "F(a)", "A", "+a", "-a", "(a)", "1", "G(a, a)", "C"];
        const TWO: [&str; 7] = ["a", "#b", "a##b", "b", "F(a)", "b+a", "A"];
        const OWN: [&str; 21] = [
            "v",
            "n",
            "F(v)",
            "G(v, n)",
            "G(n, B)",
            "#v",
            "v##_z",
            "A",
            "B",
            "H(v, n)",
            "H(v, v, A)",
            "-v",
            "f(v)",
            "F(n)##_e",
            "C",
            "MAKE",
            "G(A,v)",
            "v",
            "x+v",
            "<v>",
            "MAKE(v, n)",
        ];
        const ARGUMENTS: [&str; 13] =
            ["1", "A", "F(2)", "(1,2)", "B B", "INT_MAX", "", "x", "C", "F", "-1", "G(1, A)", "A+x"];
        let mut text: String = ["A", "B", "C"].iter().map(|name| self.defined(name, &ATOMS)).collect();
        text += &self.defined("F(a)", &ONE);
        text += &self.defined("G(a, b)", &TWO);
        text += "#define H(a, ...) G(a, 1) a ## __VA_ARGS__ F((__VA_ARGS__))\n";
        let (kernel, host) = (self.body(&OWN, 6), self.body(&OWN, 4));
        text += &format!(
            "#define MAKE(n, v) __global__ void n##_kernel(float *x) {{ {kernel}; }} void run_##n(torch::Tensor t) {{ {host}; }}\n"
        );
        text + &format!("MAKE(add, {})\n", self.of(&ARGUMENTS))
    }
}

/// The tokens of a text after the preprocessor; none if it refuses the text.
fn preprocessed(text: &str, condition: bool) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("k.cu");
    std::fs::write(&file, text).unwrap();
    let given: &[&str] = if condition { &["-DX=1"] } else { &[] };
    let out =
        Command::new("g++").args(["-E", "-P", "-x", "c++", "-std=c++17"]).args(given).arg(&file).output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    out.status.success().then(|| without_spaces(&said))
}

/// A text without spaces, except those that keep tokens apart.
fn without_spaces(text: &str) -> String {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    for part in text.split_whitespace() {
        if let (Some(last), Some(first)) = (out.chars().last(), part.chars().next())
            && (word(last) && word(first) || last == first)
        {
            out.push(' ');
        }
        out += part;
    }
    out
}

#[test]
fn what_is_left_of_a_use_is_what_a_compiler_makes_of_it() {
    if Command::new("g++").arg("--version").output().is_err() {
        skipped("no g++ is installed");
        return;
    }
    let (mut random, mut split) = (Random(1), 0);
    for _ in 0..TRIALS {
        let text = random.source();
        let files = BTreeMap::from([("k.cu".to_string(), text.clone())]);
        let tree = SourceTree { files: &files, main: "k.cu", include: &[] };
        let out = Sources::read(tree).without_host_code(&["add_kernel".into()], Given::default());
        let Some(new) = out.files.get("k.cu").filter(|new| !new.lines().last().unwrap().starts_with("MAKE")) else {
            continue;
        };
        split += 1;
        for condition in [false, true] {
            let Some(written) = preprocessed(&text, condition) else { continue };
            let left = preprocessed(new, condition).unwrap_or_default();
            let same = left.contains("__global__") && written.contains(&left);
            assert!(same, "{text}\n{written}\n{left}");
        }
    }
    assert!(split > TRIALS / 4, "{split}");
}

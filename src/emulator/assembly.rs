//! Rewrites parts of the assembly of an emulated source before it is assembled. Knows the output of g++ and clang++; does not know how to run them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Blanks file, line and column in the data that bounds checks pass to their handler, because the handler derives its place from the return address. So neither
/// a comment nor a renamed file changes the binary.
pub(super) fn blank_lines(assembly: &str) -> String {
    let mut text = String::with_capacity(assembly.len());
    let names = names_of_files(assembly);
    // g++ numbers its strings. clang++ uses the label `.L.src` only for names of files.
    let named = |label: &str| names.contains(label) || label == ".L.src" || label.starts_with(".L.src.");
    let (mut left, mut is_name) = (0, false);
    for line in assembly.split_inclusive('\n') {
        // The string is dropped, because its length would shift what follows it.
        if let Some(label) = line.trim_end().strip_suffix(':') {
            is_name = named(label);
        } else if is_name && [".string", ".asciz"].iter().any(|d| line.trim_start().starts_with(d)) {
            is_name = false;
            continue;
        }
        // g++ labels this data. clang++ does not, but the data begins with the file.
        if line.starts_with(".Lubsan_data") || line.trim() == ".quad\t.L.src" {
            left = 2;
        }
        if line.trim().strip_prefix(".quad\t").is_some_and(named) {
            text.push_str("\t.quad\t0\n");
        } else if left > 0 && line.trim_start().starts_with(".long") {
            left -= 1;
            text.push_str("\t.long\t0\n");
        } else {
            text.push_str(line);
        }
    }
    text
}

/// The labels of strings that serve only as names of files in bounds checks.
fn names_of_files(assembly: &str) -> BTreeSet<&str> {
    let (mut names, mut others) = (BTreeSet::new(), BTreeSet::new());
    let mut is_place = false;
    for line in assembly.lines() {
        let label = |c: char| c == '.' || c == '_' || c == '$' || c.is_ascii_alphanumeric();
        match line.trim().strip_prefix(".quad").map(str::trim) {
            Some(name) if is_place => drop(names.insert(name)),
            _ if line.ends_with(':') => {}
            _ => others.extend(line.split(|c| !label(c)).filter(|word| word.starts_with(".L"))),
        }
        is_place = line.starts_with(".Lubsan_data") && line.ends_with(':');
    }
    names.difference(&others).copied().collect()
}

/// Unused bytes after each variable in shared memory.
const RED_ZONE: usize = 512;

/// For check builds: routes copies and fills through the stub, which reports what they touch, and separates shared variables, so that
/// an access beyond the end of one variable hits none.
pub(super) fn watched(assembly: &str) -> String {
    let mut text = String::with_capacity(assembly.len());
    let mut shared = false;
    for line in assembly.split_inclusive('\n') {
        let words = line.split('#').next().unwrap_or(line).trim();
        if words.starts_with(".section") || matches!(words, ".text" | ".data" | ".bss") {
            shared = words.contains(".tbss");
        }
        let call = (words.starts_with("call") || words.starts_with("jmp"))
            .then(|| ["memcpy", "memmove", "memset"].into_iter().find(|name| words.ends_with(&format!("\t{name}@PLT"))))
            .flatten();
        match call {
            Some(name) => text.push_str(&line.replace(&format!("{name}@PLT"), &format!("kf_{name}"))),
            None => text.push_str(line),
        }
        if shared && words.starts_with(".zero") {
            let _ = writeln!(text, "\t.zero\t{RED_ZONE}");
        }
    }
    text
}

/// Thread-local names that the assembly uses but does not define: `extern __shared__` arrays.
pub(super) fn declared_only(assembly: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let mut used = BTreeSet::new();
    let mut defined = BTreeSet::new();
    for line in assembly.lines() {
        if let Some((label, rest)) = line.split_once(':')
            && label.chars().all(is_name)
            && (rest.is_empty() || rest.trim_start().starts_with('#'))
        {
            defined.insert(label);
        }
        let relocations = ["@tlsgd", "@tlsld", "@dtpoff", "@gottpoff", "@tlsdesc", "@tpoff"];
        for relocation in
            relocations.into_iter().chain(["@TLSGD", "@TLSLD", "@DTPOFF", "@GOTTPOFF", "@TLSDESC", "@TPOFF"])
        {
            for (at, _) in line.match_indices(relocation) {
                let start = line[..at].rfind(|c| !is_name(c)).map_or(0, |i| i + 1);
                used.insert(&line[start..at]);
            }
        }
    }
    used.difference(&defined).filter(|n| !n.is_empty() && !n.starts_with(".L")).map(|n| (*n).to_owned()).collect()
}

/// The first name of `ours` that the assembly defines itself. Its calls would then reach that definition, and not the stub's.
pub(super) fn defined<'a>(assembly: &str, ours: &BTreeSet<&'a str>) -> Option<&'a str> {
    const DEFINE: [&str; 8] = [".set", ".equ", ".equiv", ".weakref", ".symver", ".comm", ".lcomm", ".local"];
    assembly.lines().find_map(|line| {
        let line = line.trim();
        let name = match line.split_once(char::is_whitespace) {
            Some((directive, rest)) if DEFINE.contains(&directive) => rest.split(',').next()?,
            _ => line.split_once(':')?.0,
        };
        ours.get(name.trim().trim_matches('"')).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_defines_a_name_of_the_stub_is_found_and_what_uses_it_is_not() {
        let ours = BTreeSet::from(["__tsan_read4", "kf_self"]);
        let uses = "\t.hidden\tkf_self\n\tcall\t__tsan_read4@PLT\n.L3:\n_Z7kf_selfv:\n\t.set\t.LTHUNK0,_Z1fv\n";
        assert_eq!(defined(uses, &ours), None);
        for define in [
            "__tsan_read4:",
            "\"__tsan_read4\":",
            "\t.set\t__tsan_read4,f",
            "\t.weakref\t__tsan_read4,f",
            "\t.local\t__tsan_read4",
        ] {
            assert_eq!(defined(&format!("{uses}{define}\n"), &ours), Some("__tsan_read4"), "{define}");
        }
    }

    #[test]
    fn names_of_dynamic_shared_memory_are_those_declared_only() {
        let assembly = "\tleaq\tsmem@tlsgd(%rip), %rdi\n\tleaq\t_ZZ1kE4tile@dtpoff(%rax), %rdi\n_ZZ1kE4tile:\n\t.zero 4\n\tleaq .LANCHOR0@tlsld(%rip)\n";
        assert_eq!(declared_only(assembly), ["smem"]);
    }

    #[test]
    fn check_builds_watch_copies_and_set_shared_variables_apart() {
        let assembly = "\tcall\tmemcpy@PLT\n\tjmp\tmemset@PLT\n\tcall\tmy_memcpy@PLT\n\t.section\t.tbss,\"awT\",@nobits\ntile:\n\t.zero\t4\n\t.bss\nall:\n\t.zero\t8\n";
        let want = "\tcall\tkf_memcpy\n\tjmp\tkf_memset\n\tcall\tmy_memcpy@PLT\n\t.section\t.tbss,\"awT\",@nobits\ntile:\n\t.zero\t4\n\t.zero\t512\n\t.bss\nall:\n\t.zero\t8\n";
        assert_eq!(watched(assembly), want);
    }

    #[test]
    fn names_of_files_in_bounds_checks_are_blanked_and_nothing_else() {
        let text = ".LC0:\n\t.string\t\"source/k.cu\"\n.LC1:\n";
        let name = "\t.string\t\"source/k.cu\"\n";
        let place = ".Lubsan_data0:\n\t.quad\t.LC1\n\t.long\t0\n\t.long\t0\n";
        let blank = place.replace(".LC1", "0");
        let code = "\tleaq\t.LC0(%rip), %rax\n";
        assert_eq!(blank_lines(&format!("{code}{text}{name}{place}")), format!("{code}{text}{blank}"));
        // A string that code also reads is kept.
        let shared = format!("\tleaq\t.LC1(%rip), %rax\n{text}{name}{place}");
        assert_eq!(blank_lines(&shared), shared);
        let clang =
            ".L.src:\n\t.asciz\t\"source/k.cu\"\n.L.str:\n\t.asciz\t\"source/k.cu\"\n\t.quad\t.L.src\n\t.long\t5\n";
        let want = ".L.src:\n.L.str:\n\t.asciz\t\"source/k.cu\"\n\t.quad\t0\n\t.long\t0\n";
        assert_eq!(blank_lines(clang), want);
    }

    #[test]
    fn lines_of_bounds_checks_are_blanked_and_nothing_else() {
        let assembly = ".Lubsan_data0:\n\t.quad\t.LC2\n\t.long\t10\n\t.long\t3\n\t.quad\t.Lubsan_type1\n\t.long\t7\n";
        assert_eq!(
            blank_lines(assembly),
            ".Lubsan_data0:\n\t.quad\t0\n\t.long\t0\n\t.long\t0\n\t.quad\t.Lubsan_type1\n\t.long\t7\n"
        );
    }
}

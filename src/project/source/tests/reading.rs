//! How sources are read: characters, attributes, conditions, and what only a hostile author writes.

use super::*;

/// The names of the declarations of a text that are functions of the device.
fn kernels(text: &str) -> Vec<String> {
    let files = files(&[("k.cu", text)]);
    let sources = Sources::read(SourceTree { files: &files, main: "k.cu", include: &[] });
    assert!(!sources.files[0].declarations.broken, "{text}");
    let kernels = sources.groups.iter().flat_map(|g| &g.parts).filter(|p| p.kernel);
    kernels.flat_map(|p| p.names.iter().cloned()).collect()
}

#[test]
fn texts_are_read_as_a_compiler_reads_them() {
    for text in [
        "\u{feff}#define A 1\n__global__ void k() { }",
        "\u{feff}__global__ void k() { }",
        "#define A \\\r\n  1\r\n__global__ void k() {\r\n}\r\n",
        "__glo\\\nbal__ void \\\nk() { }",
        "__glo\\  \r\nbal__ void k() { }",
        "// a comment \\\nthat goes on {\n__global__ void k() { }",
        "/\\\n/ a comment {\n__global__ void k() { }",
        "/\\\n* a comment { *\\\n/ __global__ void k() { }",
        "const char *s = R\"x(\\\n) { )\" )x\"; __global__ void k() { }",
        "const char *s = u8R\"({)\" \"\\\"{\" L\"{\"; __global__ void k() { }",
        "constexpr int n = 1'000'000, m = 0x1'Fu; __global__ void k() { }",
        "#define N 1'000 /* {\n{ */\n__global__ void k() { }",
        "#define C '\"'\n__global__ void k() { char c = '\"', d = '\\'', e = '{'; }",
        "#include <a//b.h>\n__global__ void k() { }",
        "__global__ void k() <% int x<:2:> = <%1, 2%>; %>",
        "%:define A {\n__global__ void k() { }",
        "__global__ void k() { for (auto x : f(y)) { g(x); } for (int i : {1, 2}) h(i); }",
        "[[deprecated(\"use (other)\")]] __global__ void k() { }",
        "__attribute__((global)) void k() { }",
        "template <class T> requires (sizeof(T) == 4) __global__ void k(T *x) { }",
        "template <class T> requires requires(T t) { t + 1; } __global__ void k(T *x) { }",
        "template <class T> __global__ void k(T *x) requires requires(T t) { { t + 1 } -> C; } && (sizeof(T) > 2) { }",
        "template <class T> __global__ void k(T *x) requires (sizeof(T) > 2) { if (x) { } }",
        "template <class T> concept C = requires(T t) { t.x; }; template <C T> __global__ void k(T *x) { }",
        "struct P { int x, y; }; const P p = { .x = 1, .y = {2} }; const P q{.x = 1}; __global__ void k() { }",
        "void f(int (*g)(int) = [](int x) { return x; }, int n = 3) { } __global__ void k() { }",
        "template <auto F = [](int x) { return x > 2; }> __global__ void k() { }",
        "void f() try { } catch (int) { } catch (...) { } __global__ void k() { }",
        "namespace [[deprecated(\"{\")]] a { namespace b __attribute__((visibility(\"hidden\"))) { __global__ void k() { } } }",
        "namespace a::inline b { inline namespace c { namespace { __global__ void k() { } } } }",
        "bool operator<=>(A a, A b) = delete; int operator\"\"_x(const char *); __global__ void k() { }",
        "int *p = &::a::b<::c>; __global__ void k() { }",
        "#ifdef A\n__global__\n#endif\nvoid k() { }",
        "#ifdef A\n#define BEGIN namespace a {\n#define END }\n#else\n#define BEGIN\n#define END\n#endif\nBEGIN __global__ void k() { } END",
        "#define OPEN(n) namespace n {\n#define CLOSE(n) }\nOPEN(a) __global__ void k() { } CLOSE(a)",
        "#define NEXT } namespace b {\nnamespace a { NEXT __global__ void k() { } }",
    ] {
        assert_eq!(kernels(text), ["k"], "{text}");
    }
}

#[test]
fn a_kernel_with_a_head_in_each_branch_has_the_names_of_all() {
    let text = "#ifdef A\n__global__ void a(int n) {\n#else\n__global__ void b(long n) {\n#endif\n}\nint main() { }\n";
    for entry in ["a", "b"] {
        let kept = left(text, entry);
        assert!(kept.contains("a(int n)") && kept.contains("b(long n)") && !kept.contains("main"), "{kept}");
    }
    assert!(left(text, "c").lines().all(|line| line.starts_with('#')));
}

#[test]
fn what_a_branch_begins_belongs_to_the_declaration_behind_the_section() {
    for text in [
        "#ifdef A\n__device__\n#else\n#endif\nvoid other() { }\n__global__ void k() { }\n",
        "#ifdef A\n__device__\n#endif\nvoid other() { }\n__global__ void k() { }\n",
    ] {
        assert_eq!(left(text, "k").replace("#else\n", ""), "#ifdef A\n#endif\n__global__ void k() { }", "{text}");
    }
    // Something else ends in another branch.
    let text = "#ifdef A\n__device__\n#elif B\nint b;\n#else\n#endif\nvoid other() { }\n__global__ void k() { }\n";
    assert!(left(text, "k").contains("__device__\n") && left(text, "k").contains("other"));
    // Brackets of a function that conditions open and close do not keep the file, also in a block that one opens.
    let text = "#ifdef __cplusplus\nextern \"C\" {\n#endif\nvoid other() {\n#ifdef A\n if (x) {\n#endif\n y();\n#ifdef A\n }\n#endif\n}\n__global__ void k() { }\n#ifdef __cplusplus\n}\n#endif\n";
    assert!(!left(text, "k").contains("y();"));
}

#[test]
fn what_conditions_make_of_brackets_is_no_mistake_and_keeps_the_file_whole() {
    for text in [
        // Two heads, one body, and no `#else`.
        "#ifdef A\n__global__ void k(int n) {\n#endif\n#ifndef A\n__global__ void k(long n) {\n#endif\n  x();\n}\nint main() { }\n",
        // The end of one declaration and the head of the next.
        "__global__ void k() {\n#ifdef A\n}\nvoid other() {\n#endif\n}\nint main() { }\n",
        "void other() {\n#ifdef A\n  x(); }\n__global__ void k() {\n#else\n  y(); }\n__global__ void k(int) {\n#endif\n}\nint main() { }\n",
        "#ifdef A\n}\n#endif\n__global__ void k() { }\nint main() { }\n",
        // A kernel between two functions with brackets of both branches.
        "void a() {\n#ifdef A\n if (x) {\n#endif\n#ifndef A\n if (y) {\n#endif\n }\n}\n__global__ void k() { }\nvoid b() {\n if (z) {\n#ifdef A\n }\n#endif\n#ifndef A\n }\n#endif\n}\n",
    ] {
        let files = files(&[("k.cu", text)]);
        let sources = Sources::read(SourceTree { files: &files, main: "k.cu", include: &[] });
        assert_eq!(sources.unfinished(), None, "{text}");
        let out = sources.without_host_code(&["k".into()], Given::default());
        assert_eq!(out.files.len(), 0, "{text}\n{:?}", out.files);
    }
}

#[test]
fn a_condition_that_opens_a_namespace_hides_no_open_brace() {
    let text = "#ifdef __cplusplus\nextern \"C\" {\n#endif\nvoid f() {\n#ifdef __cplusplus\n}\n#endif\n";
    let of = |text: &str| {
        let files = files(&[("k.cu", text)]);
        let sources = Sources::read(SourceTree { files: &files, main: "k.cu", include: &[] });
        sources.unfinished().map(|u| u.to_string())
    };
    assert_eq!(of(&text.replace("f() {", "f() { }")), None);
    let guarded = format!("#ifndef G\n#define G\n{}\n#endif\n", "int f() { }\n}\nint main() { }");
    for (text, expected) in [
        ("int a;\nvoid f() { }\n}\nint b;\n", "`k.cu` has a brace at line 3 that closes nothing"),
        ("int a;\nint b = 3);\n", "`k.cu` has a parenthesis at line 2 that closes nothing"),
        ("int a[2]];\n", "`k.cu` has a bracket at line 1 that closes nothing"),
        (&guarded, "`k.cu` has a brace at line 4 that closes nothing"),
    ] {
        assert_eq!(of(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
#[ignore = "second tier: reads sources of megabytes"]
fn deep_and_doubling_sources_are_read_in_a_moment() {
    let many = 20_000;
    let doubling: String = (1..=40).map(|n| format!("#define M{n}(x) M{}(x) M{}(x)\n", n - 1, n - 1)).collect();
    let chain: String = (1..=5_000).map(|n| format!("#define C{n} C{}\n", n - 1)).collect();
    for text in [
        format!("int x = {}1{};", "(".repeat(many), ")".repeat(many)),
        format!("int x = {}", "(".repeat(many)),
        format!("void f() {}{}", "{".repeat(many), "}".repeat(many)),
        format!("void f() {}", "{".repeat(many)),
        format!("{}{}", "namespace a { ".repeat(many), "}".repeat(many)),
        format!("{} int x;", "template < ".repeat(many)),
        format!("int x = {}", "1e5+".repeat(many)),
        format!("{}{}", "#if A\n".repeat(many), "#endif\n".repeat(many)),
        format!("{doubling}#define M0(x) void x() {{ }}\nM40(a)\nM40(b)\nvoid f() {{ M40(c) }}\n"),
        format!("{chain}C5000 int x;\nint y = C5000;\n"),
        format!("#define F(x) x\nF({}int x;{})\n", "F(".repeat(many), ")".repeat(many)),
        format!("int x = {}", "R\"(".repeat(many)),
        format!("int x = {};", "a<".repeat(many)),
    ] {
        let text = format!("{text}\n__global__ void k() {{ }}\n");
        let files = files(&[("k.cu", &text)]);
        let sources = Sources::read(SourceTree { files: &files, main: "k.cu", include: &[] });
        // A recursive reader would overflow the stack here, and one of quadratic time would take a minute.
        sources.without_host_code(&["k".into()], Given::default());
        assert!(sources.macros.spent.get() < 6_000_000, "{}", &text[..60]);
    }
}

#[test]
fn the_name_of_a_file_may_hold_anything() {
    let name = "a\nb.cu";
    let files = files(&[(name, "void f() {\n")]);
    let sources = Sources::read(SourceTree { files: &files, main: name, include: &[] });
    let unfinished = sources.unfinished().unwrap();
    assert_eq!(unfinished.as_error(), "a\\nb.cu:1:1: error: `a\\nb.cu` ends inside the brace that opens at line 1\n");
}

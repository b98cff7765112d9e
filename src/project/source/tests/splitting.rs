//! Where declarations begin and end.

use super::super::declarations::{At, Declarations, declarations};
use super::super::macros::{Macros, spelled};
use super::super::tokens::tokens;

fn macros(text: &str) -> Macros {
    let mut macros = Macros::default();
    for token in tokens(text).0 {
        if let Some(("define", rest)) = token.directive() {
            macros.define(rest);
        }
    }
    macros
}

fn of(text: &str) -> (Vec<String>, Declarations) {
    let all = tokens(text).0;
    let found = declarations(&all, &macros(text), At::Places(&None));
    (found.all.iter().map(|r| spelled(&all[r.from..r.to])).collect(), found)
}

#[test]
fn each_declaration_is_found_whole() {
    for text in [
        "struct A { int x; void f() {} } a, b;",
        "struct __align__(16) A { float x[4]; };",
        "template <class T, int N = (3 > 2)> struct V { T x[N]; };",
        "enum E : int { X, Y };",
        "typedef struct { int x; } T;",
        "struct A f(int x) { return {}; }",
        "A::A(int x) : a{x}, b(x), c<int>{1} { f(); }",
        "const int t[] = { 1, 2 };",
        "__constant__ float c[4]{1, 2};",
        "auto f = [](int x) { return x; };",
        "template <int B> __global__ void __launch_bounds__(B) k(float *x) { x[0] = 1; }",
        "extern \"C\" __global__ void k(float *x) { }",
        "bool operator==(A a, A b) { return true; }",
        "A &operator=(A a) { return a; }",
        "auto f(int x) -> decltype(x) { return x; }",
        "using X = int;",
        "static_assert(sizeof(int) == 4, \"x\");",
        "PYBIND11_MODULE(NAME, m) { m.def(\"f\", &f); }",
        "int x = 3, *y;",
        "template <> __global__ void k<float>(float *x) { }",
        "void f() try { } ",
    ] {
        let both = format!("{text}\nint last;");
        assert_eq!(of(&both).0, [spelled(&tokens(text).0), "int last;".into()], "{text}");
    }
}

#[test]
fn namespaces_are_entered() {
    let (all, found) =
        of("namespace a::b { namespace { int x; } } extern \"C\" { int y; } inline namespace v { int z; }");
    assert_eq!(all, ["int x;", "int y;", "int z;"]);
    assert_eq!(found.namespaces, ["a", "b", "v"]);
    assert!(!found.broken && found.opening.is_none());
}

#[test]
fn uses_of_macros_are_declarations_where_they_are_whole() {
    let text = "#define K(n) __global__ void n() { }\n#define DECLARE(n) __global__ void n\n#define OPEN namespace q {\n#define CLOSE }\n\
                K(a)\nK(b);\nDECLARE(c)(int *x) { }\nBIND(d, e)\nBIND(f, g)\nOPEN int h; CLOSE\nint i;";
    let expected = ["K(a)", "K(b)", "DECLARE(c)(int *x) { }", "BIND(d, e)", "BIND(f, g)", "int h;", "int i;"];
    let (all, found) = of(text);
    assert_eq!(all, expected);
    assert!(!found.broken && found.opening.is_none(), "{found:?}");
}

#[test]
fn words_of_a_header_that_is_not_here_are_apart() {
    let (all, found) = of("LIBRARY_BEGIN\nint a;\nLIBRARY_API\nvoid f() { }\nLIBRARY_END\n");
    assert_eq!(all, ["LIBRARY_BEGIN", "int a;", "LIBRARY_API", "void f() { }", "LIBRARY_END"]);
    assert!(!found.broken && found.opening.is_none(), "{found:?}");
}

#[test]
fn branches_of_conditions_count_once() {
    let text = "#if A\nvoid f(int x) {\n#else\nvoid f(float x) {\n#endif\n g(); }\nint a;\n#if 0\n}}} ' {\n#else\nint b;\n#endif\n\
                #ifdef __cplusplus\nextern \"C\" {\n#endif\nint c;\n#ifdef __cplusplus\n}\n#endif\nvoid h() {\n#ifdef B\n if (x) {\n#else\n {\n#endif\n } }\nint d;";
    let (all, found) = of(text);
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(all[0].ends_with("g(); }") && all[5] == "int d;", "{all:?}");
    assert!(!found.broken && found.opening.is_none(), "{found:?}");
}

#[test]
fn what_is_open_at_the_end_is_named() {
    let opening = |text: &str| of(text).1.opening.map(|o| (o.what, o.line));
    assert_eq!(opening("int a;\nvoid f() {\n if (x) {\n }\nvoid g() { }\n"), Some(("the brace", 2)));
    assert_eq!(opening("int a;\ntemplate <int B>\n"), Some(("the template", 2)));
    assert_eq!(opening("namespace a {\nint b;\n"), Some(("the namespace", 1)));
    assert_eq!(opening("#if A\nint b;\n"), Some(("the condition", 1)));
    assert_eq!(opening("int a\n"), Some(("the declaration", 1)));
    assert_eq!(opening("int a(int b,\n"), Some(("the parenthesis", 1)));
    assert_eq!(opening("int a;\n"), None);
}

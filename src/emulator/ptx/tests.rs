//! Tests of the parser and the translation of inline PTX, on texts. The instructions themselves are tested in `tests/emulator` and `tests/emulator_values`.

use super::statement::statements;
use super::template::{Item, Operand, Unread, parse};
use super::*;

/// The translation of one statement.
fn of(text: &str) -> String {
    with_ptx(text).unwrap_or_else(|| panic!("no PTX in {text}")).text
}

fn found(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let operands =
        |s: &statement::Statement| s.operands.iter().map(|o| (o.constraint.clone(), o.expression.clone())).collect();
    statements(text).iter().map(|s| (s.template.clone(), operands(s))).collect()
}

#[test]
fn statements_are_found_with_their_operands() {
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    for text in [
        r#"asm volatile("a %0;\n" "b;" : "=r"(x[f(1, 2)]), "+f" ( y ) : "l"(p) : "memory");"#,
        r#"__asm__ __volatile__("a %0;\n" /* between */ "b;" : "=r"(x[f(1, 2)]), "+f"(y) : "l"(p));"#,
        "__asm (\"a %0;\\n\"  // first\n \"b;\" \n: \"=r\"(x[f(1, // why\n 2)]), \"+f\"(y)\n :\n \"l\"(p) :);",
        "#define M(x) asm volatile(\"a %0;\\n\" \\\n  \"b;\" \\\n : \"=r\"(x[f(1, \\\n 2)]), \"+f\"(y) : \"l\"(p))\n",
        "asm(R\"x(a %0;\nb;)x\" : \"=r\"(x[f(1, 2)]), \"+f\"(y) : \"l\"(p));",
    ] {
        let all = found(text);
        assert_eq!(all.len(), 1, "{text}");
        assert_eq!(all[0].0, "a %0;\nb;", "{text}");
        let spaced = |(c, e): &(String, String)| (c.clone(), e.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(
            all[0].1.iter().map(spaced).collect::<Vec<_>>(),
            [pair("=r", "x[f(1, 2)]"), pair("+f", "y"), pair("l", "p")],
            "{text}"
        );
    }
    assert_eq!(
        found("asm(\"a;\" :: \"r\"(a ? b : c::d), \"n\"(')'), \"l\"(\")\"[0]) : \"memory\", \"cc\");")[0].1.len(),
        3
    );
}

#[test]
fn what_is_no_statement_stays() {
    for text in [
        "// asm(\"a;\")\n/* asm(\"b;\") */ const char *s = \"asm(c)\"; int asm_ = 1, my_asm(2); char q = '\"'; int n = 1'000'000;",
        "#define asm_(x) x\nvoid plasma(int);",
        "asm",
        "asm(",
        "asm(\"a\" : \"=r\"(x",
        "asm(\"a\" : \"=r\" x);",
        "asm volatile goto (\"a\" : : : : label);",
        "#define BEGIN asm volatile(\n",
        "asm(\"add.s32 %0, %0, 1;\"\n#if A\n : \"+r\"(x)\n#endif\n);",
        "__asm__(\"add %1, %0\" : \"+r\"(x) : \"r\"(y));",
        "__asm__(\"movl %1, %0\" : \"=r\"(x) : \"r\"(y));",
    ] {
        let there = with_ptx(text).map(|t| t.text);
        assert!(there.is_none() || there.as_deref() == Some(text), "{text}: {there:?}");
    }
}

#[test]
fn no_line_moves_and_macros_stay_macros() {
    for text in [
        "int a;\nasm volatile(\"add.s32 %0, %0, 1;\\n\"\n  \"add.s32 %0, %0, 2;\"\n : \"+r\"(x)\n);\nint b;\n",
        "#define M(x) \\\n  asm(\"add.s32 %0, %0, 1;\" \\\n : \"+r\"(x)); \\\n  f(x)\nint b;\n",
        "#define M(x) \\\n  asm(\"nothing.s32 %0, %0, 1;\" \\\n : \"+r\"(x))\nint b;\n",
    ] {
        let out = of(text);
        assert_eq!(out.lines().count(), text.lines().count(), "{out}");
        assert_eq!(out.lines().position(|l| l == "int b;"), text.lines().position(|l| l == "int b;"), "{out}");
        let continued = |t: &str| t.lines().filter(|l| l.ends_with('\\')).count();
        assert_eq!(continued(&out), continued(text), "{out}");
        assert!(!out.contains("asm("), "{out}");
    }
}

#[test]
fn templates_are_read() {
    let items = parse("{ .reg .pred p; .reg .b32 r<2>, $x; // c\n @!p ld.global.v2.f32 {%0, r1}, [%1+-16]; mov.b64 %2, 0d3FF0000000000000; shfl.sync.idx.b32 r0|p, %%laneid, 0x1f, -1, !p; }").unwrap();
    assert_eq!(items[1], Item::Registers { of: "pred".into(), names: vec!["p".into()] });
    assert_eq!(items[2], Item::Registers { of: "b32".into(), names: vec!["r0".into(), "r1".into(), "$x".into()] });
    let Item::Instruction(load) = &items[3] else { panic!() };
    assert_eq!((load.guard.clone(), load.operation.as_str()), (Some((true, "p".into())), "ld.global.v2.f32"));
    assert_eq!(load.operands[0], Operand::Vector(vec![Operand::Argument(0), Operand::Name("r1".into())]));
    assert_eq!(load.operands[1], Operand::Memory(vec![Operand::Argument(1), Operand::Integer(16u64.wrapping_neg())]));
    let Item::Instruction(moved) = &items[4] else { panic!() };
    assert_eq!(moved.operands[1], Operand::Double(1f64.to_bits()));
    let Item::Instruction(shuffled) = &items[5] else { panic!() };
    assert_eq!(
        shuffled.operands[0],
        Operand::Pair(Box::new(Operand::Name("r0".into())), Box::new(Operand::Name("p".into())))
    );
    assert_eq!(shuffled.operands[1], Operand::Name("%laneid".into()));
    assert_eq!(shuffled.operands[3], Operand::Integer(u64::MAX));
    let number = |text: &str| match &parse(&format!("a {text};")).unwrap()[0] {
        Item::Instruction(i) => i.operands[0].clone(),
        _ => panic!(),
    };
    assert_eq!(
        (number("0b101"), number("017"), number("0x1FU"), number("-2")),
        (Operand::Integer(5), Operand::Integer(15), Operand::Integer(31), Operand::Integer(2u64.wrapping_neg()))
    );
    assert_eq!(
        (number("0f3F800000"), number("1.5"), number("_")),
        (Operand::Single(0x3f80_0000), Operand::Double(1.5f64.to_bits()), Operand::Sink)
    );
}

#[test]
fn malformed_templates_are_refused() {
    for (text, why) in [
        (".pragma \"x\";", Some(Unread::Construct(".pragma".into()))),
        (".reg .v2 .f32 a;", None),
        (".reg .b32 r<99999999999>;", None),
        (".reg .b32 r<100000>;", None),
        ("add.s32 [", None),
        ("add.s32 {a, ;", None),
        ("add.s32 a b;", None),
        ("add.s32 %99999999999999999999, 1;", None),
        ("add.s32 a, 99999999999999999999999;", None),
        ("{ add.s32 a, b;", Some(Unread::Text)),
        ("}", Some(Unread::Text)),
        ("@ add.s32 a;", Some(Unread::Text)),
        ("é", Some(Unread::Text)),
        ("$1", Some(Unread::Text)),
    ] {
        match (parse(text), why) {
            (Err(found), Some(why)) => assert_eq!(found, why, "{text}"),
            (found, _) => assert!(found.is_err(), "{text}: {found:?}"),
        }
    }
}

/// Every text of a few tokens, and every cut of a long one: an answer, and no panic.
#[test]
fn no_text_makes_the_translation_fail() {
    let tokens = [
        "%",
        "%0",
        "%%r",
        "{",
        "}",
        "[",
        "]",
        "@",
        "!",
        "|",
        ";",
        ",",
        ".reg",
        ".b32",
        "add.s32",
        "ld.global.v4.f32",
        "a<",
        "1",
        "0x",
        "0f",
        "-",
        "\\",
        "\"",
        "é",
        "//",
        "/*",
        ":",
        "_",
    ];
    for a in tokens {
        for b in tokens {
            for c in tokens {
                let template = format!("{a} {b}{c}");
                let _ = parse(&template);
                let _ = with_ptx(&format!("asm volatile(\"{template}\" : \"=r\"(x) : \"l\"(p));"));
            }
        }
    }
    let long = "#define M(x) \\\n asm volatile(\"{ .reg .pred p; @!p ld.global.v2.f32 {%0, _}, [%1+4]; é }\" \\\n : \"=f\"(x) : \"l\"(R\"(q)\"), \"n\"('\\'') : \"memory\")\n";
    for end in (0..=long.len()).filter(|end| long.is_char_boundary(*end)) {
        let _ = with_ptx(&long[..end]);
        let _ = with_ptx(&long[end..]);
    }
}

#[test]
fn an_instruction_is_a_call_with_its_types() {
    for (text, call) in [
        (
            "add.rz.ftz.sat.f32 %0, %1, %1;",
            "kf_ptx_fadd<kf_rz, true, kf_clamp_sat, kf_t_f32>(kf_ptx_get<kf_t_f32>(kf_1), kf_ptx_get<kf_t_f32>(kf_1))",
        ),
        (
            "mad.wide.s32 %2, %3, 5, %2;",
            "kf_ptx_mul_wide<kf_t_s64>(kf_ptx_get<kf_t_s32>(kf_3), static_cast<kf_t_s32>(5ull))",
        ),
        ("@p bar.sync 0;", ""),
        (
            "{ .reg .pred p; setp.ne.b32 p, %3, 0; @p st.global.cs.v2.f32 [%2+8], {%1, %1}; }",
            "if (kf_r_p) { kf_ptx_store<kf_t_f32, 2>(kf_ptx_generic(static_cast<kf_t_u64>(kf_2) + static_cast<kf_t_u64>(8ull))",
        ),
        (
            "cp.async.ca.shared.global.L2::256B [%3], [%2], 8, %3;",
            "kf_ptx_copy(kf_ptx_shared(static_cast<kf_t_u64>(kf_3)), kf_ptx_generic(static_cast<kf_t_u64>(kf_2)), 8, ",
        ),
        ("red.release.gpu.global.add.u32 [%2], %3;", "kf_ptx_atom<true, false, 0, kf_t_u32>"),
        ("mov.u32 %3, %%tid.y;", "kf_ptx_tid(1)"),
    ] {
        let out = of(&format!("asm volatile(\"{text}\" : \"=f\"(x), \"+f\"(y), \"+l\"(p), \"+r\"(i));"));
        if call.is_empty() {
            assert!(out.contains("inline PTX: `bar.sync`"), "{out}");
        } else {
            assert!(out.contains(call), "{out}");
        }
    }
}

#[test]
fn labels_are_read_beside_instructions_and_apart_from_modifiers() {
    let label = |name: &str| Item::Label(name.into());
    let items = parse("A: B_%=:mbarrier.inval.shared::cta.b64 [%0]; $C :\n@p bra.uni A;").unwrap();
    assert_eq!((&items[0], &items[1], &items[3]), (&label("A"), &label("B__"), &label("$C")));
    let Item::Instruction(inval) = &items[2] else { panic!("{items:?}") };
    assert_eq!(inval.operation, "mbarrier.inval.shared::cta.b64");
    let Item::Instruction(branch) = &items[4] else { panic!("{items:?}") };
    assert_eq!((branch.operation.as_str(), &branch.operands), ("bra.uni", &vec![Operand::Name("A".into())]));
}

#[test]
fn a_branch_goes_to_a_label_of_its_scope_or_of_one_around_it() {
    let out = of("asm(\"{ A: { B: bra A; } { B: bra B; } bra A; }\");");
    assert!(out.contains("__label__ kf_l_A;") && out.matches("__label__ kf_l_B;").count() == 2, "{out}");
    assert!(out.contains("goto kf_l_A;") && out.contains("kf_l_B:;"), "{out}");
    for wrong in ["bra C;", "{ C: } bra C;", "{ { C: } } { bra C; }", "C: C: bra C;", "bra %0;"] {
        let out = of(&format!("asm(\"{wrong}\" :: \"r\"(x));"));
        assert!(out.contains("kf_not_emulated(\"inline PTX: `bra`"), "{wrong}: {out}");
    }
}

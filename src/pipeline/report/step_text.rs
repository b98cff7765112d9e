//! The results of a compile or an inspect step, as text. Knows the documents of these steps; judges nothing.

use std::fmt::Write;

use super::text::{facts, spills};
use kforge_foundation::base::count;
use kforge_types::record::Inspection;
use kforge_types::record::params::{CompileFacts, CompileParams, Compiler};

/// The result of a compilation: the compiler, and for each entry its symbol and, on a device, the spills in the compiler's log.
pub fn compiled(made: &CompileFacts, params: &CompileParams) -> String {
    let by = match params.compiler {
        Compiler::EmulatorPlain => "the host's C++ compiler, for the emulator",
        Compiler::EmulatorCheck => "the host's C++ compiler, for the emulator, with every access watched",
        Compiler::Torch => "Python, for PyTorch",
        _ => made.compiler.as_str(),
    };
    let mut out = format!("  for {} by {by}\n", params.arch);
    // A kernel's own launcher names its kernels itself.
    let named = params.host.is_none() && params.entries.len() == made.symbols.len();
    for (at, symbol) in made.symbols.iter().enumerate() {
        let name = if named { format!("{}: symbol {symbol}", params.entries[at]) } else { format!("symbol {symbol}") };
        let spilled = if params.arch == "cpu" {
            String::new()
        } else {
            let of_entry = params.entries.get(at).filter(|_| named).and_then(|entry| made.spills.get(entry));
            let (stores, loads) = of_entry.or_else(|| made.spills.get(symbol)).copied().unzip();
            format!(", {}", spills(stores, loads))
        };
        let _ = writeln!(out, "  {name}{spilled}");
    }
    out
}

/// The contents of a binary: for each function the text of [`facts`], its parameters, and its instructions if they were counted, most frequent first.
pub fn inspected(found: &Inspection) -> String {
    let mut out = format!("  holds code for {}\n", found.architectures.join(", "));
    // Spills of host code do not matter.
    let on_device = found.architectures.iter().any(|arch| arch != "cpu");
    for function in &found.functions {
        let _ = writeln!(out, "  {}: symbol {}", function.entry, function.symbol);
        if on_device {
            let _ = writeln!(out, "    {}", facts(function));
        } else if let Some(shared) = function.shared {
            let _ = writeln!(out, "    {shared} B shared");
        }
        if let Some(most) = function.max_threads {
            let _ = writeln!(out, "    launch bounds: at most {} a block", count(most, "thread"));
        }
        let sizes: Vec<String> = function.params.iter().map(|(_, size)| size.to_string()).collect();
        let bytes = function.params.iter().map(|(_, size)| u64::from(*size)).sum::<u64>();
        let listed = if sizes.is_empty() { String::new() } else { format!(" ({})", sizes.join(", ")) };
        let _ = writeln!(out, "    {} of {bytes} B{listed}", count(function.params.len(), "parameter"));
        if found.disassembled {
            let mut counts: Vec<(&String, &u64)> = function.opcodes.iter().collect();
            counts.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
            let listed: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
            let all = count(function.opcodes.values().sum::<u64>(), "instruction");
            let _ = writeln!(out, "    {all}: {}", listed.join(", "));
        }
    }
    if on_device && !found.disassembled {
        out += "  instructions were not counted: only an inspection for methods does that\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::FunctionFacts;

    fn params(arch: &str, compiler: Compiler, host: Option<&str>) -> CompileParams {
        CompileParams {
            compiler,
            arch: arch.into(),
            main: "k.cu".into(),
            entries: vec!["k<1>".into(), "k<2>".into()],
            defines: [].into(),
            std: "c++17".into(),
            include: vec![],
            flags: vec![],
            candidate: false,
            lined: false,
            ptx: false,
            host: host.map(String::from),
            triton: vec![],
        }
    }

    #[test]
    fn a_compilation_is_told_by_compiler_symbols_and_spills() {
        let made = CompileFacts {
            compiler: "nvrtc".into(),
            symbols: vec!["_Z1kILi1E".into(), "_Z1kILi2E".into()],
            spills: [("_Z1kILi1E".to_string(), (0, 0)), ("_Z1kILi2E".to_string(), (8, 16))].into(),
            triton: vec![],
        };
        assert_eq!(
            compiled(&made, &params("sm_90a", Compiler::Auto, None)),
            "  for sm_90a by nvrtc\n  k<1>: symbol _Z1kILi1E, no spills\n  k<2>: symbol _Z1kILi2E, spills 8 B stored, 16 B loaded\n"
        );
        let hosted = CompileFacts { compiler: "nvcc".into(), spills: [].into(), ..made.clone() };
        assert_eq!(
            compiled(&hosted, &params("sm_90a", Compiler::Nvcc, Some("run"))),
            "  for sm_90a by nvcc\n  symbol _Z1kILi1E, spills unknown\n  symbol _Z1kILi2E, spills unknown\n"
        );
        let emulated = compiled(&made, &params("cpu", Compiler::EmulatorCheck, None));
        assert!(
            emulated.starts_with("  for cpu by the host's C++ compiler, for the emulator, with every"),
            "{emulated}"
        );
        assert!(!emulated.contains("spills"), "{emulated}");
    }

    #[test]
    fn an_inspection_is_told_function_by_function() {
        let function = FunctionFacts {
            entry: "k<1>".into(),
            symbol: "_Z1k".into(),
            registers: Some(40),
            spill_stores: Some(0),
            spill_loads: Some(0),
            stack: Some(0),
            shared: Some(1024),
            params: vec![(0, 8), (8, 8), (16, 4)],
            max_threads: Some(256),
            opcodes: [("IMAD".to_string(), 2), ("LDG.E.128".to_string(), 4), ("EXIT".to_string(), 2)].into(),
        };
        let mut found = Inspection {
            architectures: vec!["sm_90a".into()],
            functions: vec![function],
            disassembled: true,
            refused: vec![],
        };
        assert_eq!(
            inspected(&found),
            "  holds code for sm_90a\n  k<1>: symbol _Z1k\n    40 registers, no spills, 1024 B shared, 0 B stack\n    \
             launch bounds: at most 256 threads a block\n    3 parameters of 20 B (8, 8, 4)\n    8 instructions: 4 LDG.E.128, 2 EXIT, 2 IMAD\n"
        );
        found.disassembled = false;
        let told = inspected(&found);
        assert!(
            told.ends_with("  instructions were not counted: only an inspection for methods does that\n"),
            "{told}"
        );
        assert!(!told.contains("8 instructions"), "{told}");
        let one = &mut found.functions[0];
        (one.params, one.max_threads, one.opcodes) = (vec![(0, 8)], Some(1), [("EXIT".to_string(), 1)].into());
        found.disassembled = true;
        let told = inspected(&found);
        let single =
            "    launch bounds: at most 1 thread a block\n    1 parameter of 8 B (8)\n    1 instruction: 1 EXIT\n";
        assert!(told.ends_with(single), "{told}");
        found.disassembled = false;
        found.architectures = vec!["cpu".into()];
        let told = inspected(&found);
        assert!(
            !told.contains("spills") && !told.contains("instructions") && told.contains("    1024 B shared\n"),
            "{told}"
        );
    }
}

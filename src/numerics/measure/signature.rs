//! Matching: whether machine code shows a method, by patterns over opcodes, compared with the variant without the method. Knows
//! opcodes and counts; does not disassemble.

use regex::Regex;

use kforge_types::model::method::SassPatterns;
use kforge_types::record::params::{Matched, Shown};
use kforge_types::record::{FunctionFacts, Inspection};

/// Looks for a signature in the binary with the method, compared with the binary without it. If there is no signature, `signature` is the reason. Patterns are
/// anchored only at the start of an opcode: `LDG` also finds `LDGSTS`. They match whole modifiers only if they say so.
pub fn matched(signature: Result<&SassPatterns, &str>, on: &Inspection, off: &Inspection) -> Matched {
    let unknown = |why: &str| Matched { shown: Shown::Unknown(why.into()), counts: vec![] };
    let signature = match signature {
        Ok(signature) => signature,
        Err(why) => return unknown(why),
    };
    if !on.disassembled || !off.disassembled {
        return unknown("the machine code was not disassembled");
    }
    let mut counts = Vec::new();
    let mut count = |pattern: &String| -> Option<(u64, u64)> {
        let regex = Regex::new(&format!("^(?:{pattern})")).ok()?;
        let (with, without) = (occurrences(&regex, &on.functions), occurrences(&regex, &off.functions));
        counts.push((pattern.clone(), with, without));
        Some((with, without))
    };
    let mut shown = true;
    let mut bad = None;
    let mut look = |pattern: &String, holds: &dyn Fn(u64, u64) -> bool| match count(pattern) {
        Some((with, without)) => holds(with, without),
        None => {
            bad = Some(format!("`{pattern}` is not a regular expression"));
            false
        }
    };
    let more = |with: u64, without: u64| with > without;
    if !signature.any.is_empty() {
        // Every pattern is counted, so that a report can show all of them.
        let found: Vec<bool> = signature.any.iter().map(|p| look(p, &more)).collect();
        shown &= found.contains(&true);
    }
    for pattern in &signature.all {
        shown &= look(pattern, &more);
    }
    for pattern in &signature.forbid {
        shown &= look(pattern, &|with, _| with == 0);
    }
    for (pattern, least) in &signature.count {
        shown &= look(pattern, &|with, _| with >= *least);
    }
    for pattern in &signature.fewer {
        shown &= look(pattern, &|with, without| with < without);
    }
    match bad {
        Some(why) => Matched { shown: Shown::Unknown(why), counts },
        None => Matched { shown: if shown { Shown::Shown } else { Shown::NotShown }, counts },
    }
}

fn occurrences(regex: &Regex, functions: &[FunctionFacts]) -> u64 {
    functions.iter().flat_map(|f| &f.opcodes).filter(|(opcode, _)| regex.is_match(opcode)).map(|(_, n)| n).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspection(opcodes: &[(&str, u64)]) -> Inspection {
        let opcodes = opcodes.iter().map(|(o, n)| (o.to_string(), *n)).collect();
        Inspection {
            functions: vec![FunctionFacts { opcodes, ..FunctionFacts::default() }],
            disassembled: true,
            ..Inspection::default()
        }
    }

    fn any(pattern: &str) -> SassPatterns {
        SassPatterns { any: vec![pattern.into()], ..SassPatterns::default() }
    }

    #[test]
    fn a_method_is_shown_only_if_its_absence_shows_less() {
        let (on, off) = (inspection(&[("LDG.E.128", 4), ("FFMA", 9)]), inspection(&[("LDG.E", 16), ("FFMA", 9)]));
        assert_eq!(matched(Ok(&any(r"LDG\.E\.128")), &on, &off).shown, Shown::Shown);
        assert_eq!(matched(Ok(&any("FFMA")), &on, &off).shown, Shown::NotShown);
        assert_eq!(matched(Ok(&any(r"LDG\.E\.128")), &on, &off).counts, [(r"LDG\.E\.128".to_string(), 4, 0)]);
    }

    #[test]
    fn patterns_are_anchored() {
        assert_eq!(matched(Ok(&any("DG")), &inspection(&[("LDG.E", 4)]), &inspection(&[])).shown, Shown::NotShown);
    }

    #[test]
    fn forbidden_and_counted_patterns_hold() {
        let signature = SassPatterns {
            forbid: vec!["STL".into()],
            count: [("HMMA".to_string(), 8)].into(),
            ..SassPatterns::default()
        };
        let off = inspection(&[]);
        assert_eq!(matched(Ok(&signature), &inspection(&[("HMMA.16816.F32", 8)]), &off).shown, Shown::Shown);
        assert_eq!(matched(Ok(&signature), &inspection(&[("HMMA.16816.F32", 7)]), &off).shown, Shown::NotShown);
        assert_eq!(
            matched(Ok(&signature), &inspection(&[("HMMA.16816.F32", 8), ("STL", 1)]), &off).shown,
            Shown::NotShown
        );
    }

    #[test]
    fn what_the_method_removes_must_become_less() {
        let signature = SassPatterns { fewer: vec![r"BAR\.SYNC".into()], ..SassPatterns::default() };
        let (one, two) = (inspection(&[("BAR.SYNC.DEFER_BLOCKING", 1)]), inspection(&[("BAR.SYNC.DEFER_BLOCKING", 2)]));
        assert_eq!(matched(Ok(&signature), &one, &two).shown, Shown::Shown);
        assert_eq!(matched(Ok(&signature), &two, &two).shown, Shown::NotShown);
    }

    #[test]
    fn without_signature_or_disassembly_it_is_unknown() {
        let mut on = inspection(&[("HMMA", 1)]);
        assert!(matches!(matched(Err("why"), &on, &on.clone()).shown, Shown::Unknown(why) if why == "why"));
        on.disassembled = false;
        assert!(matches!(matched(Ok(&any("HMMA")), &on, &inspection(&[])).shown, Shown::Unknown(_)));
    }
}

//! What happens to a source that the host's compiler rejects as it is written: its host code is left out, or its entries report what is not emulated, or the
//! error is worded. Knows the order of these attempts; compiles nothing itself.
//!
//! | attempt | the result |
//! |---|---|
//! | before all others: the source without kernels that nothing needs | what was left out is listed |
//! | the file ends inside a brace, a template or a comment | one error with the line at which that opens |
//! | the source without what no entry reaches, and empty headers for those that are absent; not for a candidate of a round, whose author is to mend it | what was left out is listed |
//! | that needs a name that only an absent header can declare | unknown: every entry reports the name |
//! | it names what CUDA has and the emulator lacks (`foreign`) | unknown: every entry reports the name |
//! | an entry means several kernels | an error that lists them |
//! | none of these | the compiler's error; that about the source as it is written, if it includes everything |

use std::collections::BTreeSet;
use std::path::Path;

use super::compile::{Asm, CompileFailed, Compiled, EmulatorCompile, Unit, as_given, compile_as};
use super::foreign::{Foreign, foreign, is_toolkit, undeclared};
use kforge_harness::trees::{self, Replaced};
use kforge_project::source::{
    AbsentHeader, Given, Need, Place, Reduced, SourceTree, Sources, is_standard, without_other_kernels,
};
use kforge_types::model::generate::GENERATED;

/// The source without kernels that nothing needs; none if it has no such kernel, or if a round tries it.
pub(super) fn alone(what: &EmulatorCompile<'_>) -> Result<Option<Reduced>, CompileFailed> {
    if what.candidate || what.main.starts_with(&format!("{GENERATED}/")) {
        return Ok(None);
    }
    let files = trees::texts(what.source).map_err(|e| CompileFailed::from(format!("cannot read the sources: {e}")))?;
    let tree = SourceTree { files: &files, main: what.main, include: what.include };
    Ok(without_other_kernels(tree, what.entries, given(what)))
}

/// The macros and the flags.
fn given<'a>(what: &EmulatorCompile<'a>) -> Given<'a> {
    Given::new(what.defines, what.flags)
}

/// Compiles a source that was refused as it is written.
pub(super) fn again(what: &EmulatorCompile<'_>, out: &Path, refused: CompileFailed) -> Result<Compiled, CompileFailed> {
    let files = trees::texts(what.source).map_err(|e| CompileFailed::from(format!("cannot read the sources: {e}")))?;
    let tree = SourceTree { files: &files, main: what.main, include: what.include };
    let sources = Sources::read_given(tree, given(what));
    if let Some(unfinished) = sources.unfinished() {
        return Err(unfinished.as_error().into());
    }
    if what.candidate {
        return unknown_or(what, out, &sources, refused);
    }
    let mut reduced = sources.without_host_code(what.entries, given(what));
    // Why host code could not be left out is also said.
    let because = |mut refused: CompileFailed| {
        refused.log += &reduced.why_whole();
        refused
    };
    if reduced.files.is_empty() && !reduced.absent.iter().any(is_absent) {
        return unknown_or(what, out, &sources, refused).map_err(because);
    }
    match as_given(what, out, &reduced.replaced()) {
        Ok(mut compiled) => {
            let read: BTreeSet<String> = compiled.stand_ins.drain(..).collect();
            reduced.retain_absent(|header| !header.stands || read.contains(&header.name));
            compiled.left_out = Some(reduced.listed(what.main));
            Ok(compiled)
        }
        Err(second) if !second.text => Err(second),
        Err(second) => {
            reduced.retain_absent(is_absent);
            let errors: Vec<_> =
                undeclared(&second.log).into_iter().map(|(name, (file, line))| (name, Place { file, line })).collect();
            if let Some(need) = sources.need(what.entries, &errors, &reduced.absent) {
                let mut compiled = unknown(what, out, &unemulated(&need), &said(&need))?;
                compiled.log += &reduced.why_whole();
                return Ok(compiled);
            }
            // What was left out cannot be the reason: the source as it is written says more.
            let why = reduced.why_whole();
            let said = if reduced.absent.is_empty() { refused } else { second };
            unknown_or(what, out, &sources, said).map_err(|mut refused| {
                refused.log += &why;
                refused
            })
        }
    }
}

/// The headers of a need, if all of them are CUDA's: CUDA compiles the source.
fn of_toolkit(need: &Need) -> Option<String> {
    let all = need.headers.iter().all(|header| is_toolkit(&header.name));
    all.then(|| need.headers.iter().map(|header| header.name.as_str()).collect::<Vec<_>>().join(" or "))
}

/// What the entries of a source report that needs a name of an absent header.
fn unemulated(need: &Need) -> Foreign {
    let what = match of_toolkit(need) {
        Some(header) => format!("{} of {header}", need.name),
        None => format!("{}, which a missing header declares,", need.name),
    };
    Foreign { what, place: (need.place.file.clone(), need.place.line) }
}

/// The same as a sentence.
fn said(need: &Need) -> String {
    match of_toolkit(need) {
        Some(header) => {
            format!(
                "kernel `{}` needs `{}` ({}) of `{header}`, which is not emulated",
                need.entry, need.name, need.place
            )
        }
        None => need.to_string(),
    }
}

/// Whether the emulator and the system lack a header.
fn is_absent(header: &AbsentHeader) -> bool {
    !is_standard(&header.name) && !super::headers().iter().any(|(name, _)| *name == header.name)
}

/// Entries that report what a refusal names, if that belongs to CUDA; else the refusal.
fn unknown_or(
    what: &EmulatorCompile<'_>,
    out: &Path,
    sources: &Sources<'_>,
    refused: CompileFailed,
) -> Result<Compiled, CompileFailed> {
    if let Some(missing) = foreign(&refused.log) {
        let (file, line) = &missing.place;
        let entries = what.entries.iter().map(|entry| format!("`{entry}`")).collect::<Vec<_>>().join(", ");
        let why = format!("{entries} needs `{}` at {file}:{line}, which is not emulated", missing.what);
        return unknown(what, out, &missing, &why);
    }
    // The entries' lines are those of the unit around the source.
    let entry = refused.log.lines().find_map(|line| line.strip_prefix("entries:")?.split(':').next()?.parse().ok());
    let entry = entry.and_then(|line: usize| what.entries.get(line.checked_sub(1)?));
    if let Some(several) = entry.and_then(|entry| sources.ambiguous(entry)) {
        return Err(several.into());
    }
    Err(refused)
}

/// Entries that report what is missing.
fn unknown(what: &EmulatorCompile<'_>, out: &Path, missing: &Foreign, why: &str) -> Result<Compiled, CompileFailed> {
    let replaced = Replaced::new();
    let mut compiled =
        compile_as(what, out, &Unit { asm: Asm::Translated, replaced: &replaced, unknown: Some(missing) })?;
    compiled.log += &format!("{why}, so it is unknown on `cpu`\n");
    Ok(compiled)
}

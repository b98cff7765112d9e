//! `kforge candidates`: what the workspace remembers of candidates, searched; the source of one. Plans nothing, runs nothing and asks nobody.

use std::path::Path;

use globset::Glob;

use super::count;
use crate::cli::args::{CandidatesArgs, MessageFormat};
use crate::cli::exit::Exit;
use crate::cli::session::candidates::source;
use crate::cli::session::{Context, Opened};
use kforge_foundation::base::Diagnostic;
use kforge_pipeline::report::candidates::{Remembered, text};
use kforge_types::record::FORMAT_VERSION;
use kforge_types::record::candidate::{Became, Candidate};

/// Runs the command.
pub fn run(context: &Context, args: &CandidatesArgs) -> Result<Exit, Exit> {
    let opened = context.open()?;
    let all = context.remembered(&opened)?;
    if all.is_empty() {
        context.console.error("no candidate is remembered in this workspace");
        context.console.err("help: `kforge build` remembers champions, and `kforge optimize` what its rounds try\n");
        return Err(Exit::NothingSelected);
    }
    if let Some(id) = &args.source {
        return print(context, &opened, &all, id);
    }
    let found = search(context, args, &all)?;
    let shown: Vec<Remembered> = found.into_iter().map(|c| remembered(&opened, c)).collect();
    match args.message_format {
        MessageFormat::Human => context.console.out(&text(&shown)),
        MessageFormat::Json => {
            for one in &shown {
                let line = serde_json::to_string(one).map_err(|e| context.fail(&e.to_string()))?;
                context.console.out(&format!("{line}\n"));
            }
        }
    }
    let rest = match all.len() - shown.len() {
        0 => String::new(),
        n => format!(", of {}", n + shown.len()),
    };
    context.console.status("Found", &format!("{}{rest}", count(shown.len() as u64, "candidate")));
    Ok(Exit::Done)
}

fn remembered(opened: &Opened, candidate: &Candidate) -> Remembered {
    let shown = |path: &Path| path.strip_prefix(&opened.workspace.root).unwrap_or(path).display().to_string();
    Remembered {
        format_version: FORMAT_VERSION,
        id: candidate.id(),
        candidate: candidate.clone(),
        place: source(opened, candidate).map(|found| shown(&found.place)),
    }
}

/// Those that all filters take, in the order in which they were tried.
fn search<'c>(context: &Context, args: &CandidatesArgs, all: &'c [Candidate]) -> Result<Vec<&'c Candidate>, Exit> {
    type Of = fn(&Candidate) -> &str;
    let filters: [(&str, &[String], Of); 4] = [
        ("package", &args.package, |c| &c.package),
        ("kernel", &args.kernel, |c| &c.kernel),
        ("operator", &args.operator, |c| &c.operator),
        ("target", &args.target, |c| &c.target),
    ];
    let mut found: Vec<&Candidate> = all.iter().collect();
    for (what, words, of) in filters {
        for word in words {
            if !all.iter().any(|c| takes(word, of(c))) {
                let known: std::collections::BTreeSet<&str> = all.iter().map(of).collect();
                let listed: Vec<String> = known.iter().take(12).map(|name| format!("`{name}`")).collect();
                let message = format!("no {what} of a candidate that is remembered matches `{word}`");
                let error = Diagnostic::error("select.nothing", message);
                context.console.diagnostic(
                    &error.expected(format!("one of {}", listed.join(", "))).suggest(word, known.iter().copied()),
                );
                return Err(Exit::NothingSelected);
            }
        }
        found.retain(|c| words.is_empty() || words.iter().any(|word| takes(word, of(c))));
    }
    let patterns: Vec<_> = args.pattern.iter().map(|pattern| pattern.pattern()).collect();
    found.retain(|c| patterns.is_empty() || c.pattern.is_some_and(|pattern| patterns.contains(&pattern)));
    found.retain(|c| args.level.is_empty() || c.level.is_some_and(|level| args.level.contains(&level)));
    found.retain(|c| !args.right || c.became == Became::Right);
    if found.is_empty() {
        context
            .console
            .error(&format!("none of the {} that are remembered is such a one", count(all.len() as u64, "candidate")));
        return Err(Exit::NothingSelected);
    }
    Ok(found)
}

/// Whether a word, a name or a glob, takes a name.
fn takes(word: &str, name: &str) -> bool {
    word == name || Glob::new(word).is_ok_and(|glob| glob.compile_matcher().is_match(name))
}

/// Prints the source of the candidate whose id begins so.
fn print(context: &Context, opened: &Opened, all: &[Candidate], id: &str) -> Result<Exit, Exit> {
    let named: Vec<&Candidate> = all.iter().filter(|c| c.id().starts_with(id)).collect();
    let candidate = match named.as_slice() {
        [one] => one,
        [] => {
            context
                .console
                .error(&format!("no candidate is called `{id}`: expected an id as `kforge candidates` lists them"));
            return Err(Exit::NothingSelected);
        }
        several => {
            let n = several.len();
            context.console.error(&format!("{n} candidates have ids that begin with `{id}`: expected more of one"));
            return Err(Exit::NothingSelected);
        }
    };
    match source(opened, candidate) {
        Some(found) => {
            let end = if found.text.ends_with('\n') { "" } else { "\n" };
            context.console.source(&format!("{}{end}", found.text));
            Ok(Exit::Done)
        }
        None if candidate.source.is_none() => {
            context.console.error(&format!("candidate `{id}` has no source: the answer held none"));
            Err(Exit::NothingSelected)
        }
        None => {
            context.console.error(&format!("kforge no longer has the source of candidate `{id}`: it was edited since"));
            Err(Exit::NothingSelected)
        }
    }
}

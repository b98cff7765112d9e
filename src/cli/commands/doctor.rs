//! `kforge doctor`: which tools this machine has and what they enable; which are missing, what does not work without them, and how to install them. A missing tool
//! is a valid answer, so the command succeeds. A server that does not do what the settings ask it for is a failure.

use anstyle::{AnsiColor, Style};

use super::CommandResult;
use crate::cli::args::DoctorArgs;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_ops::doctor::{Finding, Presence, diagnose};
use kforge_ops::remote_server::{NoServer, Server, Trial};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const OPEN: Style = AnsiColor::Yellow.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// Runs the command.
pub fn run(context: &Context, args: &DoctorArgs) -> CommandResult {
    if args.remote {
        context.interrupts()?;
        let (text, is_usable) = match context.session.remote_server() {
            Err(NoServer::Interrupted) => return Ok(Exit::Interrupted),
            Ok(server) => (described(&server), server.is_usable()),
            Err(why) => (format!("{OPEN}   missing{OPEN:#} {why}\n{}", to_fix(why.remedy())), false),
        };
        context.console.out_fitted(&text);
        return Ok(if is_usable { Exit::Done } else { Exit::NotBuilt });
    }
    let diagnosis = diagnose(&context.session);
    for (at, finding) in diagnosis.findings.iter().enumerate() {
        context.console.out_fitted(&text(finding));
        // The first finding is the home folder, which is needed without a workspace, too.
        if at == 0 && !diagnosis.has_workspace {
            context.console.out(&format!("{DIM}no workspace is open, so no toolchain is needed{DIM:#}\n"));
        }
    }
    let text = match diagnosis.findings.iter().filter(|finding| finding.found.is_missing()).count() {
        0 => "nothing is missing".to_string(),
        1 => "one tool is missing; everything that does not need it works".into(),
        n => format!("{n} tools are missing; everything that does not need them works"),
    };
    context.console.out(&format!("{text}\n"));
    Ok(Exit::Done)
}

/// A finding as text: the tool, then its consequence, then what to do.
fn text(finding: &Finding) -> String {
    let Finding { what, found, gives, cost, mend } = finding;
    let dim = |text: &str| match text {
        "" => String::new(),
        text => format!("           {DIM}{text}{DIM:#}\n"),
    };
    match found {
        Presence::Found(found) => format!("{GOOD}     found{GOOD:#} {what}: {found}\n{}", dim(gives)),
        Presence::NotNeeded(why) => format!("{DIM}not needed{DIM:#} {what}: {why}\n{}", dim(gives)),
        Presence::Missing(why) => {
            let mend = if mend.is_empty() { String::new() } else { format!("to fix it: {mend}") };
            format!("{OPEN}   missing{OPEN:#} {what}: {why}\n{}{}", dim(cost), dim(&mend))
        }
    }
}

/// A line with a remedy.
fn to_fix(remedy: &str) -> String {
    format!("           {DIM}to fix it: {remedy}{DIM:#}\n")
}

/// What a server can do, a line for each.
fn described(server: &Server) -> String {
    let (announced, used) = &server.functions;
    let yes = |is: bool, yes: &str, no: &str| if is { yes.to_string() } else { no.to_string() };
    let range = |(least, most): &(i32, i32)| format!("{least} to {most}");
    let priorities = match server.priorities.is_empty() {
        true => "none".to_string(),
        false => server.priorities.iter().map(range).collect::<Vec<_>>().join(", "),
    };
    let properties = server.properties.iter().map(|(name, value)| format!("{name}={value}"));
    let properties = properties.collect::<Vec<_>>().join(", ");
    let names = server.properties.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(", ");
    let mut lines = vec![
        ("server", server.url.clone()),
        ("digests", format!("{}; kforge uses {used}", announced.join(", "))),
        ("batches", format!("{} bytes", server.batch)),
        ("contents", server.largest.map_or("no limit announced".to_string(), |most| format!("up to {most} bytes"))),
        ("compression", yes(server.has_zstd, "zstd", "none")),
        ("results", yes(server.stores_results, "stored and read", "read; the server announces that it stores none")),
        ("execution", yes(server.executes, "yes", "no: steps run on this machine")),
    ];
    if let Some(trial) = &server.trial {
        let trial = match trial {
            Trial::Executed(took) => format!("a worker executed it in {} ms", took.as_millis()),
            Trial::NotExecuted { why, .. } => format!("not executed: {why}"),
        };
        let kept =
            server.kept.iter().map(|tool| format!("steps of `{}`: its path names your home directory", tool.display()));
        lines.extend(kept.map(|kept| ("stay here", kept)));
        lines.extend([
            ("priorities", priorities),
            ("properties", yes(properties.is_empty(), "none", &properties)),
            ("to register", yes(names.is_empty(), "nothing", &format!("{names} (the operator registers these names)"))),
            ("trial step", trial),
        ]);
    }
    let lines = lines.into_iter().map(|(name, what)| format!("{GOOD}{name:>12}{GOOD:#} {what}\n"));
    lines.chain(server.remedies().into_iter().map(to_fix)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_there_and_gives_or_what_is_not_and_what_to_do() {
        let line = |found| {
            let (gives, cost, mend) = ("it works", "it does not", "install it".into());
            anstream::adapter::strip_str(&text(&Finding { what: "tool", found, gives, cost, mend })).to_string()
        };
        assert_eq!(line(Presence::Found("1.0".into())), "     found tool: 1.0\n           it works\n");
        let missing = "   missing tool: not on PATH\n           it does not\n           to fix it: install it\n";
        assert_eq!(line(Presence::Missing("not on PATH".into())), missing);
        let not_needed = "not needed tool: nothing here uses it\n           it works\n";
        assert_eq!(line(Presence::NotNeeded("nothing here uses it".into())), not_needed);
    }
}

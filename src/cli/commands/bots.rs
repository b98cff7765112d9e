//! `kforge worker --bots URL`: executes steps for a server that speaks the Remote Workers API.

use super::CommandResult;
use crate::cli::args::WorkerArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use kforge_ops::bots::{BotsError, BotsRequest, BotsSaid};

/// Runs the command until a signal ends it.
pub fn run(context: &Context, args: &WorkerArgs) -> CommandResult {
    context.interrupts()?;
    let asked = BotsRequest {
        url: args.bots.clone(),
        instance: args.instance.clone(),
        name: args.name.clone(),
        without_device: args.no_device,
    };
    let console = context.console.clone();
    let say = move |said: BotsSaid| {
        let (verb, text) = line(&said);
        console.status(verb, &text);
    };
    match context.session.serve_bots(&asked, Box::new(say)) {
        Ok(()) => {
            context.console.status("Ended", "the worker takes no more steps");
            Ok(Exit::Done)
        }
        Err(BotsError::Other(error)) => Err(Failure::from(*error)),
        Err(error) => {
            let exit = context.fail(&error);
            Err(Failure::from(match error {
                BotsError::Url { .. } => Exit::Usage,
                BotsError::Busy(_) => Exit::Busy,
                _ => exit,
            }))
        }
    }
}

/// What happened as a line: its verb, and its text.
fn line(said: &BotsSaid) -> (&'static str, String) {
    match said {
        BotsSaid::Serves { url, name, properties } => {
            let properties: Vec<String> = properties.iter().map(|(name, value)| format!("{name}={value}")).collect();
            ("Serving", format!("{url} as {name}: {}", properties.join(", ")))
        }
        BotsSaid::Lacks { what, why } => ("Lacking", format!("{what}: {why}")),
        BotsSaid::Registered => ("Registered", "the server may send steps".into()),
        BotsSaid::Gone(why) => ("Waiting", format!("for the server: {why}")),
        // Servers choose these names.
        BotsSaid::Began(lease) => ("Executing", format!("lease {}", lease.escape_debug())),
        BotsSaid::Ended { lease, code, took } => {
            let took = took.as_secs_f64();
            ("Executed", format!("lease {} in {took:.2} s, exit code {code}", lease.escape_debug()))
        }
        BotsSaid::NoResult { lease, why } => ("No result", format!("of lease {}: {why}", lease.escape_debug())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_server_chose_is_shown_without_controlling_the_terminal() {
        let lease = "a\u{1b}[2J\nb".to_string();
        let all = [
            BotsSaid::Began(lease.clone()),
            BotsSaid::Ended { lease: lease.clone(), code: 0, took: std::time::Duration::ZERO },
            BotsSaid::NoResult { lease, why: "x".into() },
        ];
        for said in all {
            let text = line(&said).1;
            assert!(text.contains("lease a\\u{1b}[2J\\nb") && !text.contains(char::is_control), "{text:?}");
        }
    }
}

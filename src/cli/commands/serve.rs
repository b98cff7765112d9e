//! `kforge serve`: evaluates kernels that others send over HTTP.

use super::CommandResult;
use crate::cli::args::ServeArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use kforge_foundation::base::count;
use kforge_serve::http::{HttpConfig, ListenError, Server};
use kforge_serve::service::{Config, Service, StartError};

/// Runs the command until a signal ends it.
pub fn run(context: &Context, args: &ServeArgs) -> CommandResult {
    let ends = context.interrupts()?;
    let cwd = &context.session.cwd;
    let server = Server::bind(HttpConfig {
        listen: args.listen,
        tokens: args.tokens.as_ref().map(|path| cwd.join(path)),
        allow_unauthenticated: args.allow_unauthenticated,
        most_body: args.body_limit,
        body_time: args.body_timeout,
        most_connections: args.connections,
        flashinfer_trace: args.flashinfer_trace.as_ref().map(|path| cwd.join(path)),
        drain: args.drain_timeout,
    });
    let server = server.map_err(|error| not_listening(context, &error))?;
    let folder = args.state.as_ref().map_or_else(|| context.session.settings.home.join("serve"), |path| cwd.join(path));
    let config = Config {
        folder: folder.clone(),
        evaluations: args.evaluations,
        jobs: args.jobs,
        queue: args.queue,
        client_limit: args.client_limit,
        queue_bytes: args.queue_size as u64,
        most_steps: args.steps,
        attempts: args.attempts,
        timeout: args.timeout,
        retain: args.retain,
        keep: args.keep,
        journal_bytes: args.journal_size as u64,
    };
    let started = Service::start(context.session.again(), config);
    let (service, replayed) = started.map_err(|error| not_started(context, error))?;
    if replayed.damaged > 0 {
        let rows = count(replayed.damaged, "damaged row");
        context.console.warn(&format!("ignoring {rows} of `{}`", folder.join("journal").display()));
    }
    if replayed.continuing > 0 {
        context.console.status("Continuing", &count(replayed.continuing, "evaluation"));
    }
    context.console.status("Listening", &format!("on http://{}", server.address()));
    server.run(&service, &ends).map_err(|error| not_listening(context, &error))?;
    context.console.status(
        "Ended",
        &match service.health().queued {
            0 => "nothing is left to evaluate".to_string(),
            left => format!("{} left for the next start", count(left, "evaluation")),
        },
    );
    Ok(Exit::Done)
}

fn not_listening(context: &Context, error: &ListenError) -> Failure {
    let exit = context.fail(error);
    Failure::from(if matches!(error, ListenError::Open(_)) { Exit::Usage } else { exit })
}

fn not_started(context: &Context, error: StartError) -> Failure {
    match error {
        StartError::Build(error) => Failure::from(*error),
        StartError::Busy(_) => {
            context.fail(&error);
            Failure::from(Exit::Busy)
        }
        error => Failure::from(context.fail(&error)),
    }
}

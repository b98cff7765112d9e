//! `kforge serve`: evaluates kernels that others send over HTTP.

use super::CommandResult;
use crate::cli::args::ServeArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use kforge_foundation::base::count;
use kforge_serve::http::{HttpConfig, ListenError, Says, Server};
use kforge_serve::service::{Config, Ending, Service, StartError};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Runs the command until a signal ends it.
pub fn run(context: &Context, args: &ServeArgs) -> CommandResult {
    let ending = ending(context)?;
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
    let console = context.console.clone();
    let says: Says = Box::new(move |running| {
        let runs = if running == 1 { "runs" } else { "run" };
        let text =
            format!("{} still {runs}; a second signal ends the server at once", count(running as u64, "evaluation"));
        console.status("Draining", &text);
    });
    server.run(&service, &ending, says).map_err(|error| not_listening(context, &error))?;
    let left = match service.health().queued {
        0 => "nothing is left to evaluate".to_string(),
        left => format!("{} left for the next start", count(left, "evaluation")),
    };
    if ending.is_at_once() {
        context.console.status("Ended", &format!("at once: {left}"));
        return Ok(Exit::Interrupted);
    }
    context.console.status("Ended", &left);
    Ok(Exit::Done)
}

/// Asks for the end of the server at each signal. The third one ends this process, whatever it does.
fn ending(context: &Context) -> Result<Ending, Failure> {
    let ending = Ending::default();
    let asks = ending.clone();
    let listen = || -> std::io::Result<()> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let listening = move || {
            for _ in signals.forever() {
                if !asks.ask() {
                    signal_hook::low_level::exit(Exit::Interrupted as i32);
                }
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(listening)?;
        Ok(())
    };
    listen().map_err(|error| context.fail(&format!("cannot listen for signals: {error}")))?;
    Ok(ending)
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

//! Arguments of `serve`.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kforge_foundation::config::keys::{parse_size, parse_span};

/// `kforge serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7377", value_parser = address)]
    pub listen: SocketAddr,
    /// Folder of the journal and of workspaces [default: `serve` in the home]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// File of the clients' tokens, one `NAME TOKEN` a line
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// Listen on addresses that other machines reach, without tokens
    #[arg(long, conflicts_with = "tokens")]
    pub allow_unauthenticated: bool,
    /// Dataset in FlashInfer-Trace's form, offered as flashinfer-bench serve does it
    #[arg(hide_short_help = true, long, value_name = "DIR")]
    pub flashinfer_trace: Option<PathBuf>,
    /// Time that one evaluation may take
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = span)]
    pub timeout: Duration,
    /// How long tasks and their results are kept after they ended
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = span)]
    pub retain: Duration,
    /// Time that running evaluations get to end when the server is to end
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = any_span)]
    pub drain_timeout: Duration,
    /// Evaluations that run at once [default: from the processors and devices]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Limits")]
    pub evaluations: Option<u32>,
    /// Steps that run on processors at once [default: the setting build.jobs]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Limits")]
    pub jobs: Option<u32>,
    /// Unfinished tasks of all clients
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 10_000, value_parser = number, help_heading = "Limits")]
    pub queue: usize,
    /// Unfinished tasks of one client
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 4096, value_parser = number, help_heading = "Limits")]
    pub client_limit: usize,
    /// Size of the requests that wait or run; half of it for one client
    #[arg(hide_short_help = true, long, value_name = "SIZE", default_value = "1GiB", value_parser = size, help_heading = "Limits")]
    pub queue_size: usize,
    /// Variants times shapes of one request
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 4096, value_parser = number, help_heading = "Limits")]
    pub steps: usize,
    /// Runs of an evaluation that may end with a killed server or worker; then it is given up
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    pub attempts: u32,
    /// Ended tasks of one client that are kept
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 100_000, value_parser = number, help_heading = "Limits")]
    pub keep: usize,
    /// Size from which on the journal is written again to remove what is not needed
    #[arg(hide_short_help = true, long, value_name = "SIZE", default_value = "64MiB", value_parser = size, help_heading = "Limits")]
    pub journal_size: usize,
    /// Size of a request's body
    #[arg(hide_short_help = true, long, value_name = "SIZE", default_value = "16MiB", value_parser = size, help_heading = "Limits")]
    pub body_limit: usize,
    /// Time in which a request's body must arrive
    #[arg(hide_short_help = true, long, value_name = "TIME", default_value = "30s", value_parser = span, help_heading = "Limits")]
    pub body_timeout: Duration,
    /// Connections at once
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 4096, value_parser = connections, help_heading = "Limits")]
    pub connections: usize,
}

fn any_span(text: &str) -> Result<Duration, String> {
    parse_span(text).map(Duration::from_secs).ok_or_else(|| "expected a number with `s`, `m`, `h` or `d`".to_string())
}

fn span(text: &str) -> Result<Duration, String> {
    any_span(text).and_then(|span| if span.is_zero() { Err("expected more than 0".into()) } else { Ok(span) })
}

fn size(text: &str) -> Result<usize, String> {
    let size = parse_size(text).and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0);
    size.ok_or_else(|| "expected a size such as `16MiB`".to_string())
}

fn connections(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1_000_000).contains(number));
    number.ok_or_else(|| "expected 1 to 1000000".to_string())
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "expected a number from 1 on".to_string())
}

/// `HOST:PORT`. A host is an address, or a name that the system knows.
fn address(text: &str) -> Result<SocketAddr, String> {
    address_by(text, |host, port| (host, port).to_socket_addrs().map(Iterator::collect))
}

/// The same. `resolve` gives the addresses of a name.
fn address_by(
    text: &str,
    resolve: impl FnOnce(&str, u16) -> std::io::Result<Vec<SocketAddr>>,
) -> Result<SocketAddr, String> {
    const EXPECTED: &str = "expected `HOST:PORT`, such as `127.0.0.1:7377` or `[::1]:7377`";
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return Err(format!("the port is missing: {EXPECTED}"));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(format!("the port is missing: {EXPECTED}"));
    };
    let Ok(port) = port.parse::<u16>() else {
        return Err(format!("`{port}` is not a port, which is a number up to 65535: {EXPECTED}"));
    };
    if host.is_empty() {
        return Err(format!("the host is missing: {EXPECTED}"));
    }
    let found = resolve(host, port).map_err(|why| format!("the host `{host}` is unknown: {why}"))?;
    // Clients try 127.0.0.1 for `localhost`, whatever comes first here.
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| format!("the host `{host}` has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_known_host_and_a_port() {
        let resolve = |host: &str, port| match host {
            "two" => Ok(["::1", "127.0.0.2"].map(|ip| SocketAddr::new(ip.parse().unwrap(), port)).to_vec()),
            "six" => Ok(vec![SocketAddr::new("::2".parse().unwrap(), port)]),
            "none" => Ok(vec![]),
            _ => Err(std::io::Error::other("nobody knows it")),
        };
        let by = |text| address_by(text, resolve);
        for (text, expected) in [
            ("127.0.0.1:7377", "127.0.0.1:7377"),
            ("[::1]:0", "[::1]:0"),
            ("two:80", "127.0.0.2:80"),
            ("six:80", "[::2]:80"),
        ] {
            assert_eq!(by(text).unwrap().to_string(), expected, "{text}");
        }
        // The system knows this one without asking others.
        assert_eq!(address("localhost:80").unwrap().to_string(), "127.0.0.1:80");
        for (text, said) in [
            ("127.0.0.1", "the port is missing"),
            ("::1", "the port is missing"),
            ("[::1]", "the port is missing"),
            ("localhost", "the port is missing"),
            ("7377", "the port is missing"),
            ("127.0.0.1:x", "`x` is not a port"),
            ("127.0.0.1:70000", "`70000` is not a port"),
            (":7377", "the host is missing"),
            ("unknown:1", "the host `unknown` is unknown: nobody knows it"),
            ("none:1", "the host `none` has no address"),
        ] {
            let found = by(text).unwrap_err();
            assert!(found.starts_with(said), "{text}: {found}");
        }
    }
}

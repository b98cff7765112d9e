//! The table of settings: names, kinds, defaults and descriptions. Configuration files, `KFORGE_*` variables, `--config`, checks and `kforge config` use this
//! table.

use super::ServerUrl;

/// What kind of value a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Integer,
    /// True or false.
    Bool,
    /// Text.
    Text,
    /// A path. A relative path in a file is relative to the folder that holds `.kforge`.
    Path,
    /// A size in bytes, with an optional `KiB`, `MiB`, `GiB` or `TiB`.
    Size,
    /// A time span: a number and `s`, `m`, `h` or `d`.
    Span,
}

/// A setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The name: `build.jobs`.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// The default value; empty if there is none.
    pub default: &'static str,
    /// What the setting does.
    pub about: &'static str,
    /// Whether only the user can set it: a configuration file of a repository cannot, because the setting protects the user from the repository.
    pub is_users: bool,
}

const fn key(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { name, kind, default, about, is_users: false }
}

/// A setting that only the user can set.
const fn users(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, default: "", about, is_users: true }
}

/// A setting that only the user can set, with a default.
const fn users_with(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { name, kind, default, about, is_users: true }
}

/// Every setting, sorted by name. The variable of `build.jobs` is `KFORGE_BUILD_JOBS`.
pub const KEYS: &[Key] = &[
    users(
        "agents.keys",
        Kind::Text,
        "which variables with a key may be sent to which hosts: `VARIABLE=HOST`, separated by commas; not from a repository's configuration",
    ),
    key("build.compiler-memory-limit", Kind::Size, "8GiB", "memory that the compilers of one step may use"),
    key(
        "build.jobs",
        Kind::Integer,
        "",
        "how many steps run at once; a negative number is subtracted from the number of cores; by default the number of cores",
    ),
    key("build.keep-going", Kind::Bool, "false", "after a failure, finish the steps that do not depend on it"),
    key(
        "build.memory",
        Kind::Size,
        "",
        "total memory that running steps may be expected to need; by default seven eighths of the available memory",
    ),
    key("build.memory-limit", Kind::Size, "8GiB", "memory that one process of a candidate may use"),
    key(
        "build.target-dir",
        Kind::Path,
        "",
        "folder for outputs; by default `target` beside the workspace's kernel.toml",
    ),
    key("build.time-limit", Kind::Span, "120s", "time limit for one run of a candidate or of your own reference"),
    key("cache.auto-gc", Kind::Bool, "true", "garbage-collect the shared cache once a day, after a build"),
    key("cache.max-age", Kind::Span, "30d", "results that were not used for longer than this are collected"),
    key(
        "cache.max-size",
        Kind::Size,
        "20GiB",
        "maximum size of the shared cache; beyond it, the least recently used entries are removed",
    ),
    key(
        "cache.scratch-size",
        Kind::Size,
        "4GiB",
        "maximum size of the expected outputs that are kept to avoid computing them again",
    ),
    key(
        "emulator.max-work",
        Kind::Integer,
        "20000000000",
        "number of scalar operations above which a bench shape is unknown on `cpu`",
    ),
    users(
        "evidence.trust",
        Kind::Path,
        "file of the keys that may sign evidence and artifacts, in OpenSSH's format `allowed_signers`; not from a repository's configuration",
    ),
    key("net.offline", Kind::Bool, "false", "never use the network"),
    key(
        "oracle.max-work",
        Kind::Integer,
        "2000000000000",
        "number of scalar operations above which expected values are not computed and a shape is unknown on every target",
    ),
    users(
        "remote.client-certificate",
        Kind::Path,
        "certificate of this client in PEM, for remote caches that ask for one; not from a repository's configuration",
    ),
    users(
        "remote.client-key",
        Kind::Path,
        "key of `remote.client-certificate` in PEM; not from a repository's configuration",
    ),
    users(
        "remote.credential-helper",
        Kind::Path,
        "program that gives headers for the remote cache, as credential helpers of Bazel do; not from a repository's configuration",
    ),
    users(
        "remote.devices",
        Kind::Text,
        "devices of the workers of `remote.execute`: `ARCH=PRODUCT` for each device, such as `sm_90=NVIDIA H200`, separated by commas; not from a repository's configuration",
    ),
    users_with(
        "remote.execute",
        Kind::Bool,
        "false",
        "execute steps on the workers of the server `remote.url`: those that need no device, and those for `remote.devices`; not from a repository's configuration",
    ),
    users_with(
        "remote.holdout",
        Kind::Bool,
        "false",
        "also read, store and execute remotely what is for holdout shapes, which everybody who may read the remote cache can then see; not from a repository's configuration",
    ),
    users(
        "remote.instance-name",
        Kind::Text,
        "instance at the remote cache, for servers that have several; not from a repository's configuration",
    ),
    users(
        "remote.jobs",
        Kind::Integer,
        "how many steps run at once if steps are executed remotely; by default as many as without; not from a repository's configuration",
    ),
    users_with(
        "remote.mode",
        Kind::Text,
        "read",
        "off, read or read-write: whether results are read from the remote cache and stored there; not from a repository's configuration",
    ),
    users(
        "remote.program",
        Kind::Text,
        "path of this kforge on the workers of `remote.execute`; by default the program is sent with the steps; not from a repository's configuration",
    ),
    users_with(
        "remote.properties",
        Kind::Text,
        "OSFamily=linux,ISA=x86-64",
        "platform properties of the workers of `remote.execute`: `NAME=VALUE`, separated by commas; {toolchain}, {runtime} and {processor} in a value stand for digests, {gpu} and {gpu-arch} for the device; not from a repository's configuration",
    ),
    users_with(
        "remote.queue-limit",
        Kind::Span,
        "60s",
        "how long a step waits for a worker of `remote.execute`; then it runs here, or is unknown if this machine lacks its device; not from a repository's configuration",
    ),
    users_with(
        "remote.recheck",
        Kind::Text,
        "0",
        "per cent of the remote cache's results that are computed again here and compared: `1` or `0.5`; not from a repository's configuration",
    ),
    users_with(
        "remote.timeout",
        Kind::Span,
        "10s",
        "how long the remote cache may take to answer a request; not from a repository's configuration",
    ),
    users(
        "remote.tls-ca",
        Kind::Path,
        "certificates in PEM of the authorities that the remote cache's certificate may come from, instead of the system's; not from a repository's configuration",
    ),
    users(
        "remote.token-file",
        Kind::Path,
        "file with a bearer token for the remote cache; not from a repository's configuration",
    ),
    users(
        "remote.url",
        Kind::Text,
        "remote cache of results: `grpcs://HOST:PORT`, a server of the Remote Execution API; not from a repository's configuration",
    ),
    users(
        "remote.worker-key",
        Kind::Path,
        "private key in OpenSSH's format with which `kforge worker --bots` signs what its device shows; not from a repository's configuration",
    ),
    key(
        "sandbox.required",
        Kind::Bool,
        "true",
        "refuse to run a compiler or a kernel if the system cannot confine it (Landlock, seccomp)",
    ),
    key("term.color", Kind::Text, "auto", "auto, always or never"),
    key("term.progress", Kind::Text, "auto", "auto, always or never"),
    key("term.quiet", Kind::Bool, "false", "print errors only"),
    key(
        "toolchain.compute-sanitizer",
        Kind::Path,
        "",
        "path of NVIDIA's Compute Sanitizer; by default compute-sanitizer on PATH, then in a CUDA toolkit in /usr/local",
    ),
    key("toolchain.cxx", Kind::Path, "", "path of the host's C++ compiler; by default g++, c++ or clang++ on PATH"),
    key(
        "toolchain.ncu",
        Kind::Path,
        "",
        "path of NVIDIA's Nsight Compute; by default ncu on PATH, then in a CUDA toolkit in /usr/local, then in /opt/nvidia",
    ),
    key("toolchain.python", Kind::Path, "", "path of the Python interpreter; by default python3 on PATH"),
];

/// The setting of that name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.name == name)
}

impl Key {
    /// The environment variable that sets this setting.
    pub fn variable(&self) -> String {
        format!("KFORGE_{}", self.name.replace(['.', '-'], "_").to_ascii_uppercase())
    }

    /// Why `text` is not a valid value of this setting. None if the value is valid.
    pub fn refuse(&self, text: &str) -> Option<String> {
        let fine = match self.kind {
            Kind::Integer if self.name == "remote.jobs" => text.parse::<u32>().is_ok_and(|jobs| jobs > 0),
            Kind::Integer => text.parse::<i64>().is_ok(),
            Kind::Bool => matches!(text, "true" | "false"),
            Kind::Size => parse_size(text).is_some(),
            Kind::Span => parse_span(text).is_some(),
            Kind::Path => !text.is_empty(),
            Kind::Text => match self.name {
                "term.color" | "term.progress" => matches!(text, "auto" | "always" | "never"),
                "remote.devices" => devices(text).is_some(),
                "remote.mode" => matches!(text, "off" | "read" | "read-write"),
                "remote.properties" => properties(text).is_some(),
                "remote.recheck" => parse_percent(text).is_some(),
                "remote.url" => text.parse::<ServerUrl>().is_ok(),
                "agents.keys" => text.split(',').all(|pair| pair.trim().split_once('=').is_some_and(is_permission)),
                _ => true,
            },
        };
        let expected = match self.kind {
            Kind::Integer if self.name == "remote.jobs" => "a whole number above zero",
            Kind::Integer => "a whole number",
            Kind::Bool => "`true` or `false`",
            Kind::Size => "a size such as `20GiB`",
            Kind::Span => "a time span such as `30d`",
            Kind::Path => "a path",
            Kind::Text if self.name == "agents.keys" => "`VARIABLE=HOST`, separated by commas",
            Kind::Text if self.name == "remote.devices" => {
                "`ARCH=PRODUCT` for each device, such as `sm_90=NVIDIA H200`, separated by commas"
            }
            Kind::Text if self.name == "remote.mode" => "`off`, `read` or `read-write`",
            Kind::Text if self.name == "remote.properties" => "`NAME=VALUE`, separated by commas",
            Kind::Text if self.name == "remote.recheck" => "a part in per cent such as `1` or `0.5`",
            Kind::Text if self.name == "remote.url" => "`grpcs://HOST:PORT`, or `grpc://HOST:PORT` without encryption",
            Kind::Text => "`auto`, `always` or `never`",
        };
        (!fine).then(|| format!("`{text}` is not a valid value of `{}`: expected {expected}", self.name))
    }
}

/// Whether a variable and a host are named.
fn is_permission((variable, host): (&str, &str)) -> bool {
    let plain = |text: &str| !text.is_empty() && !text.contains(['=', '/', '@']) && !text.contains(char::is_whitespace);
    plain(variable) && plain(host)
}

/// The platform properties in a text such as `OSFamily=linux,ISA=x86-64`, sorted.
pub fn properties(text: &str) -> Option<Vec<(String, String)>> {
    let mut all = pairs(text)?;
    all.sort();
    Some(all)
}

/// The pairs `NAME=VALUE` in a text, separated by commas, as they stand there.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let all: Vec<(String, String)> = pairs
        .map(|pair| pair.split_once('=').map(|(name, value)| (name.trim().to_string(), value.trim().to_string())))
        .collect::<Option<_>>()?;
    all.iter().all(|(name, value)| !name.is_empty() && !value.is_empty()).then_some(all)
}

/// The architectures and products in a text such as `sm_90=NVIDIA H200,sm_80=NVIDIA A100`, in their order.
pub fn devices(text: &str) -> Option<Vec<(String, String)>> {
    let all = pairs(text)?;
    let is_arch = |arch: &str| {
        let digits = arch.strip_prefix("sm_").unwrap_or_default();
        (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    all.iter().all(|(arch, _)| is_arch(arch)).then_some(all)
}

/// The hundredths of a per cent in a text such as `1` or `0.5`.
pub fn parse_percent(text: &str) -> Option<u32> {
    let text = text.trim_end_matches('%');
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) || part.len() > 2 {
        return None;
    }
    let hundredths = whole.parse::<u32>().ok()?.checked_mul(100)? + format!("{part:0<2}").parse::<u32>().ok()?;
    (hundredths <= 10_000).then_some(hundredths)
}

/// The number of bytes in a size such as `20GiB`, `512 MiB` or `1000`.
pub fn parse_size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

/// The number of seconds in a time span such as `30d`, `12h` or `90s`.
pub fn parse_span(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match text[digits..].trim() {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_and_names_are_sorted() {
        assert!(KEYS.is_sorted_by_key(|k| k.name));
        // A repository decides neither who gets its sources nor whose results count.
        assert!(KEYS.iter().filter(|k| k.name.starts_with("remote.")).all(|k| k.is_users));
        for key in KEYS.iter().filter(|k| !k.default.is_empty()) {
            assert_eq!(key.refuse(key.default), None);
        }
    }

    #[test]
    fn keys_of_agents_are_bound_to_hosts() {
        let keys = find("agents.keys").unwrap();
        for text in ["A=host", "A=host, B=host:8000", "A=[::1]"] {
            assert_eq!(keys.refuse(text), None, "{text}");
        }
        for text in ["", "A", "A=", "=host", "A=https://host", "A=host,", "A=a b", "A=b=c"] {
            assert!(keys.refuse(text).is_some_and(|why| why.contains("VARIABLE=HOST")), "{text}");
        }
    }

    #[test]
    fn properties_are_sorted_pairs_and_percentages_have_two_digits() {
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(properties("b=2, a=1=x,"), Some(vec![pair("a", "1=x"), pair("b", "2")]));
        assert_eq!(
            (properties(""), properties("a"), properties("a="), properties("=1")),
            (Some(vec![]), None, None, None)
        );
        let texts = ["1", "0.5", "12.25%", "100", "100.01", "-1", "", ".5", "1.234"];
        let read = [Some(100), Some(50), Some(1225), Some(10_000), None, None, None, None, None];
        assert_eq!(texts.map(parse_percent), read);
    }

    #[test]
    fn a_device_has_an_architecture_and_may_be_there_twice() {
        let h200 = || ("sm_90".to_string(), "NVIDIA H200".to_string());
        assert_eq!(devices("sm_90=NVIDIA H200, sm_90=NVIDIA H200"), Some(vec![h200(), h200()]));
        let gh200 = || ("sm_90".to_string(), "NVIDIA GH200".to_string());
        assert_eq!(
            devices("sm_90=NVIDIA H200,sm_90=NVIDIA GH200"),
            Some(vec![h200(), gh200()]),
            "the first that fits is asked"
        );
        assert_eq!(devices(""), Some(vec![]));
        let refused = ["sm_90a=NVIDIA H200", "NVIDIA H200", "sm_90=", "sm_9=x", "cpu=x", "sm_=x"];
        assert!(refused.iter().all(|text| find("remote.devices").unwrap().refuse(text).is_some()));
    }

    #[test]
    fn only_jobs_of_this_machine_can_be_counted_from_its_cores() {
        let refused = |name: &str, text: &str| find(name).unwrap().refuse(text).is_some();
        assert!(!refused("build.jobs", "-2") && !refused("remote.jobs", "64"));
        assert!(["-2", "0", "many", "99999999999"].iter().all(|text| refused("remote.jobs", text)));
    }

    #[test]
    fn sizes_and_spans_have_units() {
        assert_eq!((parse_size("2GiB"), parse_size("3 MiB"), parse_size("7")), (Some(2 << 30), Some(3 << 20), Some(7)));
        assert_eq!((parse_span("30d"), parse_span("90s"), parse_span("2h")), (Some(2_592_000), Some(90), Some(7200)));
        assert_eq!(
            (parse_size("2GB"), parse_size("GiB"), parse_span("-1s"), parse_size("99999999999999TiB")),
            (None, None, None, None)
        );
    }
}

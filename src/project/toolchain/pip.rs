//! Package indexes, accessed through the user's own pip or uv, so that the user's mirrors, proxies, certificates and credentials work. Knows how to resolve
//! requirements to wheels and how to download locked wheels, but not what the wheels are for.
//!
//! pip's report states hashes but no sizes. A `HEAD` request queries the sizes. If an index returns none (credentials, a mirror without lengths), kforge
//! downloads the wheel to measure its size.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::Error;
use super::pip_failure::PipFailure;
use super::run::{ask, on_path};
use crate::workspace::lockfile::{LockedWheel, WheelDigest};
use kforge_foundation::process::when_not_busy;

/// Environment variables that kforge passes to pip and uv: search paths, connections, caches. Only these and variables that begin with `PIP_` or `UV_` are
/// passed.
const PASSED: [&str; 25] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "NETRC",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "TMPDIR",
];

/// Reads URLs (JSON) and prints their sizes, null where unknown. Uses the certificates and proxies that pip would use.
const SIZES: &str = r#"
import json, os, ssl, sys, urllib.parse, urllib.request
bundle = os.environ.get("PIP_CERT") or os.environ.get("REQUESTS_CA_BUNDLE") or None
def size(url):
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme == "file":
            return os.path.getsize(urllib.request.url2pathname(parts.path))
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=15, context=ssl.create_default_context(cafile=bundle)) as answer:
            return int(answer.headers["Content-Length"])
    except Exception:
        return None
print(json.dumps([size(url) for url in json.load(sys.stdin)]))
"#;

/// Reads resolved projects with their requirements (JSON), and a version of Python other than the one that runs pip. pip evaluates the conditions of requirements
/// (`setuptools; python_version >= "3.12"`) for the Python that runs it. Prints the requirements that are missing for the other version, and the projects that
/// it does not need.
const OTHER_PYTHON: &str = r#"
import json, sys
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name
asked = json.load(sys.stdin)
there = {"python_version": asked["python"], "python_full_version": asked["python"] + ".0"}
resolved = {canonicalize_name(name): [Requirement(text) for text in requires] for name, requires in asked["resolved"]}
extras, missing, todo = {}, set(), [Requirement(text) for text in asked["requirements"]]
while todo:
    wanted = todo.pop()
    name = canonicalize_name(wanted.name)
    if name not in resolved:
        wanted.marker = None
        missing.add(str(wanted))
        continue
    if name in extras and wanted.extras <= extras[name]:
        continue
    extras[name] = extras.get(name, {""}) | wanted.extras
    for needed in resolved[name]:
        if needed.marker is None or any(needed.marker.evaluate({**there, "extra": extra}) for extra in extras[name]):
            todo.append(needed)
print(json.dumps({"missing": sorted(missing), "superfluous": sorted(set(resolved) - set(extras))}))
"#;

/// A Python that has pip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pip {
    program: PathBuf,
    /// The arguments between the program and Python's own arguments.
    prefix: Vec<String>,
    environment: BTreeMap<String, String>,
    /// The output of `--version`.
    pub version: String,
}

/// pip's report of what it would install.
#[derive(Deserialize)]
struct Report {
    install: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
    download_info: DownloadInfo,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
    #[serde(default)]
    requires_dist: Vec<String>,
}

/// What differs between the Python that runs pip and another one.
#[derive(Deserialize)]
struct OtherPython {
    missing: Vec<String>,
    superfluous: BTreeSet<String>,
}

#[derive(Deserialize)]
struct DownloadInfo {
    url: String,
    archive_info: Option<ArchiveInfo>,
}

#[derive(Deserialize)]
struct ArchiveInfo {
    hash: Option<String>,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
}

impl Pip {
    /// Finds pip: that of `python` if it is given, else that of `python3` or `python` in the folders of `PATH`, else one run by `uv`. `environment` is the
    /// whole environment of this process; only the variables for package indexes are passed on.
    ///
    /// # Errors
    /// Neither pip nor uv was found.
    pub fn find(python: Option<&Path>, environment: &BTreeMap<String, String>) -> Result<Self, Error> {
        let path_var = environment.get("PATH").map_or("", String::as_str);
        let passed = passed_on(environment);
        let pythons = python.map(Path::to_path_buf).into_iter();
        let found = pythons.chain(["python3", "python"].into_iter().filter_map(|name| on_path(name, path_var)));
        let uv =
            on_path("uv", path_var).map(|uv| (uv, vec!["run", "--no-project", "--quiet", "--with", "pip", "python"]));
        for (program, prefix) in found.map(|p| (p, vec![])).chain(uv) {
            let prefix: Vec<String> = prefix.into_iter().map(String::from).collect();
            let mut pip = Pip { program, prefix, environment: passed.clone(), version: String::new() };
            let said = pip.ask(&["-m", "pip", "--version"], "");
            if let Ok(said) = said.as_ref().map(|s| s.out.trim())
                && let Some(version) = said.strip_prefix("pip ").and_then(|rest| rest.split_whitespace().next())
            {
                pip.version = version.to_string();
                return Ok(pip);
            }
        }
        Err(Error::NoPip)
    }

    fn ask(&self, args: &[&str], stdin: &str) -> Result<super::run::ToolOutput, Error> {
        let args: Vec<&str> = self.prefix.iter().map(String::as_str).chain(args.iter().copied()).collect();
        let said = ask(&self.program, &args, &self.environment, stdin)?;
        if said.success { Ok(said) } else { Err(PipFailure::of(&said.err).into()) }
    }

    /// Resolves each requirement (`nvidia-cuda-nvrtc==13.0.*`) to the wheel that pip would install today on this machine, without dependencies.
    ///
    /// # Errors
    /// No index has a matching wheel, or no index can be reached. The error quotes pip.
    pub fn resolve(&self, requirements: &[String]) -> Result<Vec<LockedWheel>, Error> {
        self.resolved(requirements, None)
    }

    /// Resolves a requirement to the wheel that pip would install today for another version of Python (`3.13`), without dependencies.
    ///
    /// # Errors
    /// Those of [`Pip::resolve`].
    pub fn resolve_for(&self, requirement: &str, python: &str) -> Result<Vec<LockedWheel>, Error> {
        self.resolved(&[requirement.to_string()], Some(python))
    }

    fn resolved(&self, requirements: &[String], python: Option<&str>) -> Result<Vec<LockedWheel>, Error> {
        let cannot = |why: Error| Error::Resolve { requirements: requirements.to_vec(), why: Box::new(why) };
        // pip asks for a folder where it would install for another Python. It makes none in a dry run.
        let other = python.into_iter().flat_map(|python| ["--python-version", python, "--target", "unused"]);
        let args: Vec<&str> = ["--no-deps"].into_iter().chain(other).collect();
        self.report(requirements, &args).and_then(|items| self.wheels(&items)).map_err(cannot)
    }

    /// Resolves a requirement, with everything that it requires, to the wheels that pip would install today for a version of Python (`3.13`).
    ///
    /// # Errors
    /// Those of [`Pip::resolve`].
    pub fn resolve_closure_for(&self, requirement: &str, python: &str) -> Result<Vec<LockedWheel>, Error> {
        let requirements = [requirement.to_string()];
        let cannot = |why: Error| Error::Resolve { requirements: requirements.to_vec(), why: Box::new(why) };
        self.closure_for(&requirements, python).map_err(cannot)
    }

    fn closure_for(&self, requirements: &[String], python: &str) -> Result<Vec<LockedWheel>, Error> {
        let other = ["--python-version", python, "--target", "unused"];
        let mut items = self.report(requirements, &other)?;
        let superfluous = loop {
            let resolved: Vec<(&str, &[String])> =
                items.iter().map(|i| (i.metadata.name.as_str(), &i.metadata.requires_dist[..])).collect();
            let question = json!({ "python": python, "requirements": requirements, "resolved": resolved });
            let answer = self.ask(&["-c", OTHER_PYTHON], &question.to_string())?;
            let answer: OtherPython = serde_json::from_str(answer.out.trim())
                .map_err(|source| Error::NoReport { version: self.version.clone(), source })?;
            if answer.missing.is_empty() {
                break answer.superfluous;
            }
            // What is resolved stays as it is.
            let mut file = tempfile::NamedTempFile::new().map_err(Error::Temporary)?;
            for Item { metadata, .. } in &items {
                writeln!(file, "{}=={}", metadata.name, metadata.version).map_err(Error::Temporary)?;
            }
            let constraints = file.path().to_string_lossy().into_owned();
            let args = [&["--constraint", &constraints][..], &other].concat();
            let known: BTreeSet<String> = items.iter().map(|item| normalised(&item.metadata.name)).collect();
            let added = self.report(&answer.missing, &args)?.into_iter();
            let added: Vec<Item> = added.filter(|item| !known.contains(&normalised(&item.metadata.name))).collect();
            if added.is_empty() {
                return Err(Error::NothingAdded(answer.missing));
            }
            items.extend(added);
        };
        items.retain(|item| !superfluous.contains(&normalised(&item.metadata.name)));
        self.wheels(&items)
    }

    /// What pip would install.
    fn report(&self, requirements: &[String], more: &[&str]) -> Result<Vec<Item>, Error> {
        let mut args: Vec<&str> =
            "-m pip install --dry-run --ignore-installed --only-binary=:all: --quiet --no-input --report -"
                .split(' ')
                .collect();
        args.extend(more);
        args.extend(requirements.iter().map(String::as_str));
        let said = self.ask(&args, "")?;
        let report: Report = serde_json::from_str(&said.out)
            .map_err(|source| Error::NoReport { version: self.version.clone(), source })?;
        Ok(report.install)
    }

    /// The wheels with their digests and sizes.
    fn wheels(&self, items: &[Item]) -> Result<Vec<LockedWheel>, Error> {
        let urls: Vec<&str> = items.iter().map(|i| i.download_info.url.as_str()).collect();
        let question = serde_json::to_string(&urls).map_err(Error::Sizes)?;
        let answer = self.ask(&["-c", SIZES], &question)?;
        let sizes: Vec<Option<u64>> = serde_json::from_str(answer.out.trim()).map_err(Error::Sizes)?;
        items.iter().zip(sizes).map(|(item, size)| self.locked(item, size)).collect()
    }

    fn locked(&self, item: &Item, size: Option<u64>) -> Result<LockedWheel, Error> {
        let name = normalised(&item.metadata.name);
        let archive = item.download_info.archive_info.as_ref();
        let sha256 = archive
            .and_then(|a| {
                a.hashes.get("sha256").map(String::as_str).or_else(|| a.hash.as_deref()?.strip_prefix("sha256="))
            })
            .ok_or_else(|| Error::NoHash(name.clone()))?;
        let url = item.download_info.url.split(['#', '?']).next().unwrap_or_default();
        let file = url.rsplit('/').next().unwrap_or_default().replace("%2B", "+").replace("%2b", "+");
        if !file.ends_with(".whl") {
            return Err(Error::NotWheel(file));
        }
        let digest = WheelDigest { sha256: sha256.to_string(), size: size.unwrap_or(0) };
        let mut wheel = LockedWheel { name, version: item.metadata.version.clone(), file, digest };
        if size.is_none() {
            let dir = tempfile::tempdir().map_err(Error::Temporary)?;
            self.download(std::slice::from_ref(&wheel), dir.path(), &mut |_| {})?;
            let measured = std::fs::metadata(dir.path().join(&wheel.file));
            wheel.digest.size =
                measured.map_err(|source| Error::NotDownloaded { file: wheel.file.clone(), source })?.len();
        }
        Ok(wheel)
    }

    /// Downloads exactly these wheels into the folder `into`; pip refuses a file with another hash. Calls `tick` a few times a second with the number of bytes
    /// downloaded so far.
    ///
    /// # Errors
    /// A wheel cannot be downloaded. The error quotes pip.
    pub fn download(&self, wheels: &[LockedWheel], into: &Path, tick: &mut dyn FnMut(u64)) -> Result<(), Error> {
        let io = |source| Error::DownloadInto { folder: into.to_owned(), source };
        let scratch = tempfile::Builder::new().prefix(".pip-").tempdir_in(into).map_err(io)?;
        let mut requirements = String::new();
        for wheel in wheels {
            requirements += &format!("{}=={} --hash=sha256:{}\n", wheel.name, wheel.version, wheel.digest.sha256);
        }
        let list = scratch.path().join("requirements.txt");
        std::fs::write(&list, requirements).map_err(io)?;
        let errors = scratch.path().join("errors.txt");
        let mut command = Command::new(&self.program);
        command
            .args(&self.prefix)
            .args("-m pip download --no-deps --only-binary=:all: --require-hashes --quiet --no-input".split(' '))
            .arg("--dest")
            .arg(into)
            .arg("--requirement")
            .arg(&list)
            .env_clear()
            .envs(&self.environment)
            // Makes partial downloads countable, and keeps them on the file system of their final place.
            .env("TMPDIR", scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&errors).map_err(io)?);
        let started = when_not_busy(|| command.spawn());
        let mut child = started.map_err(|source| Error::Run { program: self.program.clone(), source })?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(io)? {
                break status;
            }
            tick(bytes_below(into));
            std::thread::sleep(Duration::from_millis(100));
        };
        tick(bytes_below(into));
        if status.success() {
            return Ok(());
        }
        let said = std::fs::read(&errors).map_err(io)?;
        Err(Error::Download { wheels: wheels.to_vec(), why: PipFailure::of(&String::from_utf8_lossy(&said)) })
    }
}

/// Names and versions of wheels, for messages: `nvidia-cuda-nvrtc 13.0.88, nvidia-cuda-crt 13.0.88`.
pub(super) fn named(wheels: &[LockedWheel]) -> String {
    wheels.iter().map(|w| format!("{} {}", w.name, w.version)).collect::<Vec<_>>().join(", ")
}

/// The environment variables that concern package indexes. If only uv has an index configured, pip uses that index too.
fn passed_on(environment: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let concerns = |name: &str| PASSED.contains(&name) || name.starts_with("PIP_") || name.starts_with("UV_");
    let mut passed: BTreeMap<String, String> =
        environment.iter().filter(|(k, _)| concerns(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
    for (from, to) in [("UV_INDEX_URL", "PIP_INDEX_URL"), ("UV_DEFAULT_INDEX", "PIP_INDEX_URL")] {
        if let Some(value) = environment.get(from) {
            passed.entry(to.to_string()).or_insert_with(|| value.clone());
        }
    }
    passed.insert("PIP_DISABLE_PIP_VERSION_CHECK".into(), "1".into());
    passed
}

/// A project's name as indexes compare it: lower case, runs of `-`, `_` and `.` as one `-`.
fn normalised(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

fn bytes_below(folder: &Path) -> u64 {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter_map(|e| e.metadata().ok());
    files.filter(std::fs::Metadata::is_file).map(|m| m.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_concerns_indexes_reaches_pip() {
        let all = [
            ("PIP_INDEX_URL", "a"),
            ("https_proxy", "b"),
            ("SSL_CERT_FILE", "c"),
            ("AWS_SECRET", "d"),
            ("PYTHONPATH", "e"),
        ];
        let all = all.map(|(k, v)| (k.to_string(), v.to_string())).into();
        let passed = passed_on(&all);
        assert_eq!(passed.len(), 4, "{passed:?}");
        assert!(!passed.contains_key("AWS_SECRET") && !passed.contains_key("PYTHONPATH"));
    }

    #[test]
    fn the_index_of_uv_stands_in_where_pip_has_none() {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        assert_eq!(passed_on(&map(&[("UV_DEFAULT_INDEX", "u")]))["PIP_INDEX_URL"], "u");
        assert_eq!(passed_on(&map(&[("UV_DEFAULT_INDEX", "u"), ("PIP_INDEX_URL", "p")]))["PIP_INDEX_URL"], "p");
    }

    #[test]
    fn neither_pip_nor_uv_says_what_to_do() {
        let error = Pip::find(None, &[("PATH".to_string(), "/nowhere".to_string())].into()).unwrap_err().to_string();
        assert!(error.contains("uv") && error.contains("toolchain.cuda"), "{error}");
    }

    #[test]
    fn names_are_compared_as_indexes_do() {
        assert_eq!(normalised("NVIDIA_cuda..nvrtc"), "nvidia-cuda-nvrtc");
    }
}

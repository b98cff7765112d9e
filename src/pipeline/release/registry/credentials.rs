//! Logins as Docker keeps them: `config.json` in `$DOCKER_CONFIG` or `~/.docker`, and the programs `docker-credential-NAME` that it names. Knows the file and
//! the protocol of the programs; sends nothing, and writes nothing anywhere.
//!
//! | decision | because |
//! |---|---|
//! | a login is looked up only when a registry demands one | public artifacts need none, and a helper may ask the user for a password |
//! | only the entry of exactly that host counts | a login for one registry must not go to another |
//! | a login has neither `Debug` nor `Display`, and errors about the file state a line and no text | no message can contain it by mistake |
//! | a helper that gives nothing is no error by itself | it says that there is no login in the same way as that it failed; the refusal of the registry names it |

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use kforge_foundation::config::Environment;
use kforge_foundation::process::{Command, End, run};
use kforge_project::toolchain::on_path;

/// How long a helper may take. It may ask the user.
const LIMIT: Duration = Duration::from_secs(120);

/// The most bytes of `config.json`.
const LARGEST: u64 = 4 << 20;

/// The key under which Docker keeps the login of its own registry, and the names of that registry.
const DOCKER: (&str, [&str; 3]) =
    ("https://index.docker.io/v1/", ["docker.io", "index.docker.io", "registry-1.docker.io"]);

/// The name with which a helper marks an identity token.
const TOKEN: &str = "<token>";

/// The fewest characters of a text that is removed from messages. A shorter one occurs in words.
const SHORTEST: usize = 4;

/// A login.
#[derive(Clone)]
pub enum Login {
    /// A name and a password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A token that is exchanged for others.
    Identity(Secret),
}

/// A text that nothing prints.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A secret.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The text, for a header or a form.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text without this secret.
    pub(super) fn clean(&self, text: String) -> String {
        if self.0.len() >= SHORTEST { text.replace(&self.0, "[login]") } else { text }
    }
}

impl Login {
    /// The header that sends a name and a password; none for a token.
    pub(super) fn basic(&self) -> Option<Secret> {
        let Login::Password { user, password } = self else { return None };
        Some(Secret(format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.0)))))
    }

    /// The texts that no message may contain.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        match self {
            Login::Password { user, password } => {
                vec![password.clone(), Secret(STANDARD.encode(format!("{user}:{}", password.0)))]
            }
            Login::Identity(token) => vec![token.clone()],
        }
    }
}

/// What was found for a host.
#[derive(Default)]
pub struct Found {
    /// The login and where it is kept, in words.
    pub login: Option<(Login, String)>,
    /// The helper that gave none, and how it ended.
    pub silent: Option<(String, String)>,
}

/// Why logins cannot be looked up.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("cannot read the logins in `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not one of Docker's.
    #[error("`{}` is not a configuration of Docker: its error is in line {line}, column {column}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line of the first error.
        line: usize,
        /// The column of the first error.
        column: usize,
    },
    /// An entry holds no login.
    #[error("the login of `{host}` in `{}` is not base64 of `NAME:PASSWORD`", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// The host.
        host: String,
    },
    /// The name of a helper is none.
    #[error("`{}` names a program for logins that is none: expected letters, digits, `-`, `_` and `.`", .0.display())]
    HelperName(PathBuf),
    /// A helper does not exist.
    #[error("`{}` keeps its logins in `{helper}`, which is not on PATH", path.display())]
    NoHelper {
        /// The file.
        path: PathBuf,
        /// The program.
        helper: String,
    },
    /// A helper cannot be started.
    #[error("cannot start `{helper}`: {source}")]
    NotStarted {
        /// The program.
        helper: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A helper gave something else.
    #[error("`{0}` gave no login in the form of Docker's helpers")]
    Answer(String),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// The part of `config.json` that is about logins. No text of it is in an error.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    auths: BTreeMap<String, Entry>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

/// What a helper prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// The logins of a user.
pub struct Credentials {
    environment: Environment,
}

impl Credentials {
    /// The logins that this environment leads to.
    pub fn new(environment: Environment) -> Credentials {
        Credentials { environment }
    }

    /// The file, whether or not it exists; none without a home.
    fn file(&self) -> Option<PathBuf> {
        let folder = self.environment.get("DOCKER_CONFIG").map(PathBuf::from);
        Some(folder.or_else(|| Some(self.environment.home()?.join(".docker")))?.join("config.json"))
    }

    /// The login for a host.
    ///
    /// # Errors
    /// The file or a helper cannot be used.
    pub fn of(&self, host: &str, interrupted: &AtomicBool) -> Result<Found, CredentialsError> {
        let Some(path) = self.file() else { return Ok(Found::default()) };
        let Some(config) = read(&path)? else { return Ok(Found::default()) };
        let names = names(host);
        let helper = names.iter().find_map(|name| config.cred_helpers.get(name)).or(Some(&config.creds_store));
        let mut silent = None;
        if let Some(helper) = helper.filter(|helper| !helper.is_empty()) {
            match self.ask(&path, helper, names.first().map_or(host, String::as_str), interrupted)? {
                Ok(login) => return Ok(Found { login: Some((login, format!("`{}`", program(helper)))), silent: None }),
                Err(end) => silent = Some((program(helper), end)),
            }
        }
        let entry = config.auths.iter().find(|(key, _)| names.iter().any(|name| name == *key || *name == host_of(key)));
        let login = entry.map(|(_, entry)| login_of(entry)).transpose();
        let login = login.map_err(|NotLogin| CredentialsError::Entry { path: path.clone(), host: host.into() })?;
        Ok(Found { login: login.flatten().map(|login| (login, format!("`{}`", path.display()))), silent })
    }

    /// Asks a helper. The inner error is how a helper ended that gave nothing.
    fn ask(
        &self,
        path: &std::path::Path,
        helper: &str,
        host: &str,
        interrupted: &AtomicBool,
    ) -> Result<Result<Login, String>, CredentialsError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !helper.chars().all(is_name) {
            return Err(CredentialsError::HelperName(path.into()));
        }
        let helper = program(helper);
        let found = on_path(&helper, self.environment.path());
        let found = found.ok_or_else(|| CredentialsError::NoHelper { path: path.into(), helper: helper.clone() })?;
        let command = Command::new(found).arg("get").stdin(host);
        let command = self.environment.all().iter().fold(command, |command, (name, value)| command.env(name, value));
        let finished = run(&command, Some(LIMIT), interrupted)
            .map_err(|source| CredentialsError::NotStarted { helper: helper.clone(), source })?;
        match finished.end {
            End::Interrupted => return Err(CredentialsError::Interrupted),
            End::Exited(0) => {}
            end => return Ok(Err(end.to_string())),
        }
        let answer = finished.stdout.whole().and_then(|bytes| serde_json::from_slice::<Answer>(&bytes).ok());
        let Answer { username, secret } = answer.ok_or(CredentialsError::Answer(helper))?;
        Ok(Ok(match username == TOKEN {
            true => Login::Identity(Secret(secret)),
            false => Login::Password { user: username, password: Secret(secret) },
        }))
    }
}

/// The program of a helper.
fn program(helper: &str) -> String {
    format!("docker-credential-{helper}")
}

/// The configuration in a file; none if it does not exist.
fn read(path: &std::path::Path) -> Result<Option<Config>, CredentialsError> {
    let unreadable = |source| CredentialsError::Read { path: path.into(), source };
    let bytes = match std::fs::metadata(path) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Ok(found) if found.len() > LARGEST => {
            return Err(CredentialsError::Malformed { path: path.into(), line: 1, column: 1 });
        }
        found => found.and_then(|_| std::fs::read(path)).map_err(unreadable)?,
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|e| CredentialsError::Malformed {
        path: path.into(),
        line: e.line(),
        column: e.column(),
    })
}

/// The names under which the login of a host may be kept.
fn names(host: &str) -> Vec<String> {
    match DOCKER.1.contains(&host) {
        true => std::iter::once(DOCKER.0).chain(DOCKER.1).map(String::from).collect(),
        false => vec![host.into()],
    }
}

/// The host in a key of `auths`, which may be an address.
fn host_of(key: &str) -> &str {
    let rest = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    rest.split('/').next().unwrap_or(rest)
}

/// An entry holds something that is no login.
struct NotLogin;

/// The login of an entry; none if it holds nothing, as it does beside a helper.
fn login_of(entry: &Entry) -> Result<Option<Login>, NotLogin> {
    if !entry.identitytoken.is_empty() {
        return Ok(Some(Login::Identity(Secret(entry.identitytoken.clone()))));
    }
    if entry.auth.is_empty() {
        let has_both = !entry.username.is_empty() && !entry.password.is_empty();
        let login = || Login::Password { user: entry.username.clone(), password: Secret(entry.password.clone()) };
        return Ok(has_both.then(login));
    }
    let decoded = STANDARD.decode(&entry.auth).map_err(|_| NotLogin)?;
    let decoded = String::from_utf8(decoded).map_err(|_| NotLogin)?;
    let (user, password) = decoded.split_once(':').ok_or(NotLogin)?;
    // Docker ends some passwords with a zero byte.
    let password = password.trim_end_matches('\0').to_string();
    Ok(Some(Login::Password { user: user.into(), password: Secret(password) }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Keeps {
        folder: tempfile::TempDir,
        found: Result<Found, CredentialsError>,
    }

    /// What is found for a host with this file, and with these helpers on `PATH`.
    fn keeps(config: &str, helpers: &[(&str, &str)], host: &str) -> Keeps {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        for (name, script) in helpers {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let place = folder.path().display().to_string();
        let path = format!("{place}:/usr/bin:/bin");
        let environment = Environment::of([("DOCKER_CONFIG".into(), place), ("PATH".into(), path)]);
        let found = Credentials::new(environment).of(host, &AtomicBool::new(false));
        Keeps { folder, found }
    }

    fn text(found: &Found) -> String {
        match &found.login {
            Some((Login::Password { user, password }, _)) => format!("{user}:{}", password.0),
            Some((Login::Identity(token), _)) => format!("token {}", token.0),
            None => "none".into(),
        }
    }

    #[test]
    fn a_login_is_that_of_exactly_the_host() {
        let encoded = STANDARD.encode("me:s3cret:x");
        let config = format!(
            r#"{{"auths": {{
                "a.b": {{"auth": "{encoded}"}}, "https://c.d/v1/": {{"username": "you", "password": "pw"}},
                "e.f:5000": {{"identitytoken": "tok", "auth": "{encoded}"}}, "g.h": {{}},
                "https://index.docker.io/v1/": {{"auth": "{encoded}"}}
            }}, "credHelpers": {{"x.y": "none"}}, "other": [1]}}"#
        );
        for (host, expected) in [
            ("a.b", "me:s3cret:x"),
            ("c.d", "you:pw"),
            ("e.f:5000", "token tok"),
            ("e.f", "none"),
            ("b", "none"),
            ("a.b:443", "none"),
            ("g.h", "none"),
            ("docker.io", "me:s3cret:x"),
        ] {
            assert_eq!(text(&keeps(&config, &[], host).found.unwrap()), expected, "{host}");
        }
        let none = Credentials::new(Environment::of([("DOCKER_CONFIG".into(), "/nonexistent".into())]));
        assert_eq!(text(&none.of("a.b", &AtomicBool::new(false)).unwrap()), "none");
    }

    #[test]
    fn helpers_are_asked_on_standard_input_and_come_before_the_file() {
        let config = format!(
            r#"{{"credHelpers": {{"a.b": "mine"}}, "credsStore": "all", "auths": {{"e.f": {{"auth": "{}"}}}}}}"#,
            STANDARD.encode("file:pw")
        );
        let mine = r#"test "$1" = get || exit 9; read host; echo "{\"ServerURL\":\"$host\",\"Username\":\"at $host\",\"Secret\":\"s\"}""#;
        let all = r#"read host; test "$host" = c.d || { echo "credentials not found in native keychain"; exit 1; }
            echo '{"Username": "<token>", "Secret": "t"}'"#;
        let helpers = [("docker-credential-mine", mine), ("docker-credential-all", all)];
        let of = |host: &str| keeps(&config, &helpers, host).found.unwrap();
        assert_eq!(text(&of("a.b")), "at a.b:s");
        assert_eq!(text(&of("c.d")), "token t");
        assert_eq!(text(&of("e.f")), "file:pw");
        let nothing = of("g.h");
        assert_eq!(text(&nothing), "none");
        let (helper, end) = nothing.silent.unwrap();
        assert!(helper == "docker-credential-all" && end.contains('1'), "{helper}: {end}");
    }

    #[test]
    fn no_error_holds_a_text_of_the_file_or_of_a_helper() {
        for (config, helpers) in [
            (r#"{"auths": {"a.b": {"auth": 77777}}}"#, vec![]),
            (r#"{"auths": {"a.b": "s3cret"}}"#, vec![]),
            (r#"{"auths": {"a.b": {"auth": "s3cret!"}}}"#, vec![]),
            (r#"{"auths": {"a.b": {"auth": "czNjcmV0"}}}"#, vec![]),
            (r#"{"credsStore": "../s3cret"}"#, vec![]),
            (r#"{"credsStore": "gone"}"#, vec![]),
            (r#"{"credsStore": "odd"}"#, vec![("docker-credential-odd", "echo s3cret")]),
            (r#"{"credsStore": "odd"}"#, vec![("docker-credential-odd", "echo '{\"Secret\": \"s3cret\"}'")]),
        ] {
            let keeps = keeps(config, &helpers, "a.b");
            let why = keeps.found.err().unwrap_or_else(|| panic!("{config}"));
            let said = format!("{why} {why:?}");
            assert!(!said.contains("s3cret") && !said.contains("77777") && !said.contains("czNj"), "{said}");
            drop(keeps.folder);
        }
    }
}

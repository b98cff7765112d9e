//! The effective settings and their origins: flags, then variables, then files from the working directory upward, then `$KFORGE_HOME/config.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Environment;
use super::keys::{KEYS, Key, Kind, find, parse_size, parse_span};
use crate::base::{Diagnostic, SourceFile, Witness};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The default of the table of settings.
    Default,
    /// A configuration file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// The command line.
    Flag,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Variable(name) => write!(f, "environment variable {name}"),
            Origin::Flag => f.write_str("command line"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The value as text; empty if there is none.
    pub text: String,
    /// Where it came from.
    pub origin: Origin,
}

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<&'static str, Value>,
    /// Command aliases: name to words.
    pub alias: BTreeMap<String, Vec<String>>,
    /// The folder of caches, toolchains and evidence.
    pub home: PathBuf,
    /// The file with this machine's key; none if no variable names a place. Deliberately no setting of a file: a settings file may lie in the repository that
    /// is judged, and with it a key that others know.
    pub machine_key: Option<PathBuf>,
    /// The files that kforge looked for.
    pub witness: Witness,
}

impl Settings {
    /// Reads the settings for `cwd`. `flags` are the `KEY=VALUE` texts of `--config`. Unknown keys in files are warnings; invalid values are errors.
    pub fn load(cwd: &Path, environment: &Environment, flags: &[String]) -> (Self, Vec<Diagnostic>) {
        let home = match (environment.get("KFORGE_HOME"), environment.home()) {
            (Some(path), _) => cwd.join(path),
            (None, Some(home)) => home.join(".kforge"),
            (None, None) => cwd.join(".kforge-home"),
        };
        let values = KEYS.iter().map(|k| (k.name, Value { text: k.default.into(), origin: Origin::Default })).collect();
        let machine_key = machine_key(cwd, environment);
        let witness = Witness::default();
        let mut settings = Settings { values, alias: BTreeMap::new(), home: home.clone(), machine_key, witness };
        let mut diagnostics = Vec::new();
        let mut files: Vec<PathBuf> = cwd.ancestors().map(|d| d.join(".kforge/config.toml")).collect();
        let of_user = home.join("config.toml");
        files.push(of_user.clone());
        files.dedup();
        // Read the farthest file first, so that nearer files take precedence.
        for file in files.iter().rev() {
            settings.read_file(file, is_same(file, &of_user), &mut diagnostics);
        }
        for key in KEYS {
            if let Some(text) = environment.get(&key.variable()) {
                settings.set(key, text, Origin::Variable(key.variable()), cwd, &mut diagnostics);
            }
        }
        for flag in flags {
            match flag.split_once('=').map(|(k, v)| (find(k.trim()), k.trim(), v.trim())) {
                Some((Some(key), _, value)) => {
                    settings.set(key, value.trim_matches('"'), Origin::Flag, cwd, &mut diagnostics)
                }
                Some((None, name, _)) => diagnostics.push(
                    Diagnostic::error("config.unknown-key", format!("unknown setting `{name}`"))
                        .suggest(name, KEYS.iter().map(|k| k.name)),
                ),
                None => {
                    diagnostics.push(Diagnostic::error("config.flag", format!("`--config {flag}` is not `KEY=VALUE`")))
                }
            }
        }
        (settings, diagnostics)
    }

    /// The settings of variables only; a value that is invalid counts as not stated. Reads no file.
    pub fn of_variables(environment: &Environment) -> Self {
        let values = KEYS.iter().map(|k| (k.name, Value { text: k.default.into(), origin: Origin::Default })).collect();
        let (home, witness) = (PathBuf::new(), Witness::default());
        let mut settings = Settings { values, alias: BTreeMap::new(), home, machine_key: None, witness };
        for key in KEYS {
            if let Some(text) = environment.get(&key.variable()) {
                settings.set(key, text, Origin::Variable(key.variable()), Path::new(""), &mut Vec::new());
            }
        }
        settings
    }

    fn set(&mut self, key: &'static Key, text: &str, origin: Origin, base: &Path, diagnostics: &mut Vec<Diagnostic>) {
        if let Some(why) = key.refuse(text) {
            diagnostics.push(Diagnostic::error("config.value", why).note(format!("from {origin}")));
            return;
        }
        let text = if key.kind == Kind::Path { base.join(text).display().to_string() } else { text.to_string() };
        self.values.insert(key.name, Value { text, origin });
    }

    fn read_file(&mut self, path: &Path, is_users: bool, diagnostics: &mut Vec<Diagnostic>) {
        let read = std::fs::read_to_string(path);
        self.witness.saw(path, read.is_ok());
        let text = match read {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                return;
            }
            Err(error) => {
                diagnostics
                    .push(Diagnostic::error("config.unreadable", format!("cannot read `{}`: {error}", path.display())));
                return;
            }
        };
        let file = Arc::new(SourceFile { name: path.display().to_string(), text });
        let table = match file.text.parse::<toml::Table>() {
            Ok(table) => table,
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                diagnostics.push(Diagnostic::error("config.syntax", error.message().to_string()).at(&file, span, ""));
                return;
            }
        };
        // Relative paths are relative to the folder that holds `.kforge`, or to the folder of the file.
        let folder = path.parent().unwrap_or(path);
        let base = if folder.ends_with(".kforge") { folder.parent().unwrap_or(folder) } else { folder };
        for (section, value) in &table {
            let Some(entries) = value.as_table() else {
                diagnostics.push(unknown(&file, section));
                continue;
            };
            for (name, value) in entries {
                if section == "alias" {
                    match alias_words(value) {
                        Some(words) if !is_users && words.iter().any(|word| is_about_trust(word)) => {
                            let message = format!(
                                "alias `{name}` says whom to trust, which the configuration of a repository cannot: only you can"
                            );
                            let hint = format!(
                                "remove it there; you can have it in `{}`",
                                self.home.join("config.toml").display()
                            );
                            let error = Diagnostic::error("config.not-yours", message);
                            diagnostics.push(error.note(format!("in {}", file.name)).hint(&hint));
                        }
                        Some(words) => drop(self.alias.insert(name.clone(), words)),
                        None => diagnostics.push(
                            Diagnostic::error(
                                "config.alias",
                                format!("alias `{name}` is neither a string nor a list of strings"),
                            )
                            .note(format!("in {}", file.name)),
                        ),
                    }
                    continue;
                }
                let full = format!("{section}.{name}");
                match (find(&full), plain(value)) {
                    (Some(key), _) if key.is_users && !is_users => diagnostics.push(not_users(key, &file, &self.home)),
                    (Some(key), Some(text)) => {
                        self.set(key, &text, Origin::File(path.to_path_buf()), base, diagnostics)
                    }
                    (Some(key), None) => diagnostics.push(
                        Diagnostic::error("config.value", format!("`{}` takes a single value", key.name))
                            .note(format!("in {}", file.name)),
                    ),
                    (None, _) => diagnostics.push(unknown(&file, &full)),
                }
            }
        }
    }

    /// The value of a setting as text, and its origin.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Every setting with its value, sorted by name.
    pub fn all(&self) -> impl Iterator<Item = (&'static Key, &Value)> {
        KEYS.iter().filter_map(|k| Some((k, self.values.get(k.name)?)))
    }

    fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", |v| v.text.as_str())
    }

    /// Whether a setting is `true`.
    pub fn flag(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// A setting as a path, if it is set.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.text(name)).filter(|t| !t.is_empty()).map(PathBuf::from)
    }

    /// A setting as a number: a size in bytes, a span in seconds or a whole number; 0 if it is not set.
    pub fn number(&self, name: &str) -> u64 {
        let text = self.text(name);
        match find(name).map(|k| k.kind) {
            Some(Kind::Size) => parse_size(text).unwrap_or(0),
            Some(Kind::Span) => parse_span(text).unwrap_or(0),
            _ => text.parse().unwrap_or(0),
        }
    }

    /// A setting as text, if it is set.
    pub fn word(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|t| !t.is_empty())
    }

    /// How many steps run at once, given the number of cores of this machine.
    pub fn jobs(&self, cores: usize) -> usize {
        match self.text("build.jobs").parse::<i64>() {
            Ok(n) if n > 0 => n as usize,
            Ok(n) if n < 0 => cores.saturating_sub(n.unsigned_abs() as usize).max(1),
            _ => cores.max(1),
        }
    }
}

/// The place of the machine key: the file that `KFORGE_MACHINE_KEY` names, else a file in the folder for state that belongs to this machine and this user.
fn machine_key(cwd: &Path, environment: &Environment) -> Option<PathBuf> {
    if let Some(path) = environment.get("KFORGE_MACHINE_KEY") {
        return Some(cwd.join(path));
    }
    // The specification of these folders says that a relative path is ignored.
    let state = environment.get("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(environment.home()?.join(".local/state")))?;
    Some(state.join("kforge/machine-key"))
}

/// Whether two paths are one file, however they are spelled.
fn is_same(a: &Path, b: &Path) -> bool {
    a == b || a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b)
}

/// A file that is not the user's sets what only the user can set.
fn not_users(key: &Key, file: &Arc<SourceFile>, home: &Path) -> Diagnostic {
    let message = format!("`{}` cannot be set by the configuration of a repository", key.name);
    let elsewhere = format!(
        "remove it there; you can set it in `{}`, by {}, or with `--config {}=...`",
        home.join("config.toml").display(),
        key.variable(),
        key.name
    );
    Diagnostic::error("config.not-yours", message).note(format!("in {}", file.name)).hint(&elsewhere)
}

fn unknown(file: &Arc<SourceFile>, name: &str) -> Diagnostic {
    Diagnostic::warning("config.unknown-key", format!("unknown setting `{name}`"))
        .note(format!("in {}", file.name))
        .suggest(name, KEYS.iter().map(|k| k.name))
}

fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(s) => Some(s.clone()),
        toml::Value::Integer(i) => Some(i.to_string()),
        toml::Value::Boolean(b) => Some(b.to_string()),
        _ => None,
    }
}

/// Whether a word of an alias decides whom to trust: an option, or the setting in one.
fn is_about_trust(word: &str) -> bool {
    ["--trust", "--allow-untrusted"].iter().any(|option| word.starts_with(option)) || word.contains("evidence.trust")
}

fn alias_words(value: &toml::Value) -> Option<Vec<String>> {
    match value {
        toml::Value::String(s) => Some(s.split_whitespace().map(String::from).collect()),
        toml::Value::Array(items) => items.iter().map(|i| i.as_str().map(String::from)).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(
        files: &[(&str, &str)],
        vars: &[(&str, &str)],
        flags: &[&str],
    ) -> (Settings, Vec<Diagnostic>, tempfile::TempDir) {
        let dir = crate::base::testing::tree(files);
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        let mut all = vec![("KFORGE_HOME".to_string(), dir.path().join("home").display().to_string())];
        all.extend(vars.iter().map(|(k, v)| (k.to_string(), v.to_string())));
        let flags: Vec<String> = flags.iter().map(|f| f.to_string()).collect();
        let (settings, diagnostics) = Settings::load(&dir.path().join("a/b"), &Environment::of(all), &flags);
        (settings, diagnostics, dir)
    }

    #[test]
    fn nearer_wins_and_says_where_it_came_from() {
        let files = [
            ("home/config.toml", "[build]\njobs = 1\n"),
            (".kforge/config.toml", "[build]\njobs = 2\n"),
            ("a/b/.kforge/config.toml", "[build]\njobs = 3\n"),
        ];
        let jobs = |vars: &[(&str, &str)], flags: &[&str]| {
            let (s, d, _dir) = load(&files, vars, flags);
            assert!(d.is_empty(), "{d:?}");
            (s.jobs(16), s.get("build.jobs").unwrap().origin.to_string())
        };
        assert_eq!(jobs(&[], &[]).0, 3);
        assert_eq!(jobs(&[("KFORGE_BUILD_JOBS", "4")], &[]), (4, "environment variable KFORGE_BUILD_JOBS".into()));
        assert_eq!(jobs(&[("KFORGE_BUILD_JOBS", "4")], &["build.jobs=-2"]), (14, "command line".into()));
        let (s, _, _dir) = load(&files[..1], &[], &[]);
        assert_eq!(s.jobs(16), 1);
    }

    #[test]
    fn the_machine_key_lies_where_variables_say_and_no_file_says() {
        let place = |vars: &[(&str, &str)]| {
            let vars = vars.iter().map(|(k, v)| (k.to_string(), v.to_string()));
            Settings::load(Path::new("/here"), &Environment::of(vars), &[]).0.machine_key
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(place(&[]), None);
        assert_eq!(place(&[("HOME", "/u")]), path("/u/.local/state/kforge/machine-key"));
        assert_eq!(place(&[("HOME", "/u"), ("XDG_STATE_HOME", "/s")]), path("/s/kforge/machine-key"));
        assert_eq!(place(&[("HOME", "/u"), ("XDG_STATE_HOME", "s")]), path("/u/.local/state/kforge/machine-key"));
        assert_eq!(place(&[("HOME", "/u"), ("KFORGE_MACHINE_KEY", "/k")]), path("/k"));
        assert_eq!(place(&[("KFORGE_MACHINE_KEY", "k")]), path("/here/k"));
        for (name, text) in [("machine", "[machine]\nkey = \"k\"\n"), ("top", "machine-key = \"k\"\n")] {
            let (s, d, _dir) = load(&[(".kforge/config.toml", text)], &[("HOME", "/u")], &[]);
            assert_eq!(s.machine_key, path("/u/.local/state/kforge/machine-key"), "{name}");
            assert_eq!(d[0].code, "config.unknown-key", "{name}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let (_, d, _dir) = load(
            &[(".kforge/config.toml", "[build]\njobz = 1\n[net]\noffline = \"maybe\"\n")],
            &[],
            &["term.colour=never", "x"],
        );
        let codes: Vec<_> = d.iter().map(|d| d.code).collect();
        assert_eq!(codes, ["config.unknown-key", "config.value", "config.unknown-key", "config.flag"]);
        assert_eq!(d[0].hints, ["did you mean `build.jobs`?"]);
        assert_eq!(d[2].hints, ["did you mean `term.color`?"]);
        let (_, d, _dir) = load(&[(".kforge/config.toml", "[build\n")], &[], &[]);
        assert_eq!(d[0].code, "config.syntax");
    }

    #[test]
    fn what_protects_the_user_is_not_set_by_a_repository() {
        let trust = "[evidence]\ntrust = \"keys\"\n";
        let (s, d, dir) = load(&[("home/config.toml", trust)], &[], &[]);
        assert!(d.is_empty(), "{d:?}");
        assert_eq!(s.path("evidence.trust").unwrap(), dir.path().join("home/keys"));
        for place in [".kforge/config.toml", "a/.kforge/config.toml", "a/b/.kforge/config.toml"] {
            let (s, d, _dir) = load(&[(place, trust)], &[], &[]);
            assert_eq!((d.len(), d[0].code, s.path("evidence.trust")), (1, "config.not-yours", None), "{place}");
            assert!(d[0].hints[0].contains("KFORGE_EVIDENCE_TRUST"), "{:?}", d[0].hints);
        }
        let (s, d, dir) = load(&[], &[("KFORGE_EVIDENCE_TRUST", "keys")], &[]);
        assert_eq!((d.len(), s.path("evidence.trust").unwrap()), (0, dir.path().join("a/b/keys")));
        // Nor by an alias.
        for words in [
            "install --allow-untrusted",
            "install --trust mine",
            "build --trust=mine",
            "b --config=evidence.trust=mine",
        ] {
            let alias = format!("[alias]\nx = \"{words}\"\n");
            let (s, d, _dir) = load(&[(".kforge/config.toml", &alias)], &[], &[]);
            assert_eq!((d.len(), d[0].code, s.alias.len()), (1, "config.not-yours", 0), "{words}");
            let (s, d, _dir) = load(&[("home/config.toml", &alias)], &[], &[]);
            assert_eq!((d.len(), s.alias.len()), (0, 1), "{words}");
        }
        // The folder above may be the user's own, under whatever path.
        let (_, d, dir) = load(&[(".kforge/config.toml", trust)], &[], &[]);
        assert_eq!(d.len(), 1);
        std::os::unix::fs::symlink(dir.path().join(".kforge"), dir.path().join("home")).unwrap();
        let home = ("KFORGE_HOME".to_string(), dir.path().join("home").display().to_string());
        let (s, d) = Settings::load(&dir.path().join("a/b"), &Environment::of([home]), &[]);
        assert!(d.is_empty() && s.path("evidence.trust").is_some(), "{d:?}");
    }

    #[test]
    fn paths_count_from_the_folder_of_the_file_and_aliases_are_words() {
        let (s, d, dir) =
            load(&[(".kforge/config.toml", "[build]\ntarget-dir = \"out\"\n[alias]\nbb = \"build -v\"\n")], &[], &[]);
        assert!(d.is_empty());
        assert_eq!(s.path("build.target-dir").unwrap(), dir.path().join("out"));
        assert_eq!(s.alias["bb"], ["build", "-v"]);
    }
}

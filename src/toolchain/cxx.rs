//! The host's C++ compiler: which it is, and all of it that can change what it makes. Knows how g++ and clang++ are asked; does not know what is
//! compiled with it.
//!
//! # What the fingerprint holds, and why
//!
//! | entry | what | why |
//! |---|---|---|
//! | `c++` | the driver's file, a wrapper script like any other | a wrapper adds flags or picks another compiler |
//! | `version` | what `--version` says | names the build where sub-tools are shared libraries |
//! | `cc1plus`, `as`, `ld`, `collect2` | the sub-tools the driver names | they make the code; the driver is a few hundred lines |
//! | `crt:NAME` | start-up objects and runtime libraries linked in | their bytes are in the result |
//! | `headers` | every system header that the prelude and the standard library's own list reach, in order of inclusion, without paths | they are compiled |
//!
//! Asking costs processes (0.3 s), so the answer is a [`Survey`]: a value that can be kept ([`recall`]). It stays true while every file it names is what it
//! was, which is seen through the digest function that is given. A header that a later installation puts in front of another is not seen until then.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::run::{self, Said, ask, compiler_environment, find as find_program, on_path};
use super::{DigestFile, digest_of_sequence};
use crate::base::Digest;
use crate::record::params::Toolchain;

const WHAT: &str = "C++ compiler";

/// Drivers that are looked for, in order.
const NAMES: [&str; 3] = ["g++", "c++", "clang++"];

/// Sub-tools that a driver names with `-print-prog-name`.
const SUB_TOOLS: [&str; 4] = ["cc1plus", "as", "ld", "collect2"];

/// Files that end up in what is linked: asked for with `-print-file-name`.
const RUNTIME: [&str; 7] = ["crti.o", "crtn.o", "crtbeginS.o", "crtendS.o", "libgcc.a", "libstdc++.so", "libm.so"];

/// A C++ compiler found on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cxx {
    /// The driver, absolute.
    pub path: PathBuf,
    /// The first line of `--version`.
    pub version: String,
    /// All that `--version` says.
    pub version_text: String,
    /// The `PATH` with which it finds its sub-tools; its children get no other environment.
    pub path_var: String,
}

/// What a compiler consists of, by path: dear to ask, cheap to check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// The compiler it is about.
    pub compiler: Cxx,
    /// What the survey was made for; another prelude needs another survey.
    pub prelude: Digest,
    /// Driver, sub-tools and runtime files by the name they have in the fingerprint.
    pub tools: BTreeMap<String, PathBuf>,
    /// System headers, in order of first inclusion.
    pub headers: Vec<PathBuf>,
}

/// A survey and what it came to, for keeping between builds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// What the compiler consists of.
    pub survey: Survey,
    /// By content.
    pub fingerprint: Toolchain,
}

/// The compiler that [`find`] finds, surveyed: what was kept if all of it is as it was, else anew. Starts no process in the first case.
///
/// # Errors
/// As [`find`] and [`Cxx::survey`]; or a file cannot be read.
pub fn recall(
    kept: Option<Kept>,
    explicit: Option<&Path>,
    path_var: &str,
    prelude: &str,
    digest: DigestFile<'_>,
) -> Result<Kept, String> {
    let path = find_program(explicit, &NAMES, path_var, WHAT)?;
    if let Some(kept) = kept
        && kept.survey.compiler.path == path
        && kept.survey.compiler.path_var == path_var
        && kept.survey.prelude == Digest::of(prelude.as_bytes())
        && kept.survey.fingerprint(digest).is_ok_and(|now| now == kept.fingerprint)
    {
        return Ok(kept);
    }
    let survey = find(explicit, path_var)?.survey(prelude)?;
    let fingerprint =
        survey.fingerprint(digest).map_err(|e| format!("could not read `{}`'s files: {e}", path.display()))?;
    Ok(Kept { survey, fingerprint })
}

/// Where [`find`] looks in vain before it finds what it finds.
pub fn passed_over(explicit: Option<&Path>, path_var: &str) -> Vec<PathBuf> {
    run::passed_over(explicit, &NAMES, path_var)
}

/// The C++ compiler the user named, else the first of `g++`, `c++`, `clang++` in the folders of `path_var`, by absolute path.
///
/// # Errors
/// There is none, or it does not answer `--version`.
pub fn find(explicit: Option<&Path>, path_var: &str) -> Result<Cxx, String> {
    let path = find_program(explicit, &NAMES, path_var, WHAT)?;
    let said = ask(&path, &["--version"], &compiler_environment(path_var), "")?;
    let version = said.out.lines().next().unwrap_or_default().trim().to_string();
    if !said.success || version.is_empty() {
        return Err(format!("`{} --version` failed: {}", path.display(), said.err.trim()));
    }
    Ok(Cxx { path, version, version_text: said.out, path_var: path_var.to_string() })
}

impl Cxx {
    fn ask(&self, args: &[&str], stdin: &str) -> Result<Said, String> {
        ask(&self.path, args, &compiler_environment(&self.path_var), stdin)
    }

    /// Asks the compiler what it consists of. `prelude` is C++ text whose includes are the system headers wanted besides the standard
    /// library's own.
    ///
    /// # Errors
    /// The compiler cannot be run or cannot preprocess the prelude: its own words.
    pub fn survey(&self, prelude: &str) -> Result<Survey, String> {
        let mut tools: BTreeMap<String, PathBuf> = [("c++".to_string(), self.path.clone())].into();
        for name in SUB_TOOLS {
            let said = self.ask(&[&format!("-print-prog-name={name}")], "")?;
            let answer = Path::new(said.out.trim());
            // A driver echoes a bare name where it will search PATH itself, or where it has no such tool (clang and `cc1plus`).
            let found = if answer.is_absolute() {
                Some(answer.to_path_buf())
            } else {
                on_path(&answer.to_string_lossy(), &self.path_var)
            };
            if let Some(path) = found.filter(|p| p.is_file()) {
                tools.insert(name.to_string(), path);
            }
        }
        for name in RUNTIME {
            let said = self.ask(&[&format!("-print-file-name={name}")], "")?;
            let path = Path::new(said.out.trim());
            if path.is_absolute() && path.is_file() {
                tools.insert(format!("crt:{name}"), path.to_path_buf());
            }
        }
        let text = format!("#if __has_include(<bits/stdc++.h>)\n#include <bits/stdc++.h>\n#endif\n{prelude}\n");
        let said = self.ask(&["-std=c++20", "-M", "-x", "c++", "-"], &text)?;
        if !said.success {
            return Err(format!("`{}` cannot read the standard headers: {}", self.path.display(), said.err.trim()));
        }
        let headers = make_prerequisites(&said.out).into_iter().filter(|p| p.is_absolute()).collect();
        Ok(Survey { compiler: self.clone(), prelude: Digest::of(prelude.as_bytes()), tools, headers })
    }
}

impl Survey {
    /// The compiler by content. Holds no path, so that the same compiler elsewhere has the same fingerprint.
    ///
    /// # Errors
    /// A file it names cannot be read any more: survey again.
    pub fn fingerprint(&self, digest: DigestFile<'_>) -> io::Result<Toolchain> {
        let mut tools = BTreeMap::new();
        for (name, path) in &self.tools {
            tools.insert(name.clone(), digest(path)?);
        }
        tools.insert("version".into(), Digest::of(self.compiler.version_text.as_bytes()));
        let headers: Vec<Digest> = self.headers.iter().map(|p| digest(p)).collect::<io::Result<_>>()?;
        tools.insert("headers".into(), digest_of_sequence(&headers));
        Ok(Toolchain { tools })
    }
}

/// The prerequisites of a rule as `-M` prints it: continued lines, spaces and `#` escaped by a backslash, `$` doubled.
fn make_prerequisites(rule: &str) -> Vec<PathBuf> {
    let Some((_, list)) = rule.split_once(": ").or_else(|| rule.split_once(":\\")) else { return vec![] };
    let mut names = vec![];
    let mut name = String::new();
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => drop(chars.next()),
            ('\\', Some(' ' | '#')) | ('$', Some('$')) => name.extend(chars.next()),
            (c, _) if c.is_whitespace() => names.extend((!name.is_empty()).then(|| std::mem::take(&mut name))),
            (c, _) => name.push(c),
        }
    }
    names.extend((!name.is_empty()).then_some(name));
    names.into_iter().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn path_var() -> &'static str {
        "/usr/local/bin:/usr/bin:/bin"
    }

    fn of_file(path: &Path) -> io::Result<Digest> {
        Digest::of_file(path)
    }

    fn wrapper(dir: &Path, name: &str, body: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn the_compiler_on_path_is_surveyed_with_tools_and_headers() {
        let cxx = find(None, path_var()).unwrap();
        assert!(cxx.path.is_absolute() && !cxx.version.is_empty(), "{cxx:?}");
        let survey = cxx.survey("#include <stdint.h>").unwrap();
        assert!(survey.tools.contains_key("as") && survey.tools.contains_key("ld"), "{:?}", survey.tools);
        assert!(survey.headers.iter().any(|p| p.ends_with("vector")), "the standard library counts");
        let kept: Survey = serde_json::from_str(&serde_json::to_string(&survey).unwrap()).unwrap();
        assert_eq!(kept.fingerprint(&of_file).unwrap(), survey.fingerprint(&of_file).unwrap());
    }

    #[test]
    fn a_wrapper_script_is_another_compiler_and_editing_it_yet_another() {
        let dir = tempfile::tempdir().unwrap();
        let real = find(None, path_var()).unwrap();
        let fingerprint = |body: &str| {
            let path = wrapper(dir.path(), "g++", body);
            find(Some(&path), path_var()).unwrap().survey("").unwrap().fingerprint(&of_file).unwrap()
        };
        let exec = format!("exec {} \"$@\"", real.path.display());
        let (one, two) = (fingerprint(&exec), fingerprint(&format!("# changed\n{exec}")));
        let bare = real.survey("").unwrap().fingerprint(&of_file).unwrap();
        assert_ne!(one.tools["c++"], two.tools["c++"]);
        assert_ne!(one.tools["c++"], bare.tools["c++"]);
        assert_eq!(one.tools["headers"], bare.tools["headers"]);
    }

    #[test]
    fn a_changed_header_or_sub_tool_changes_the_fingerprint() {
        let survey = find(None, path_var()).unwrap().survey("").unwrap();
        let before = survey.fingerprint(&of_file).unwrap();
        for changed in [survey.headers[3].clone(), survey.tools["as"].clone()] {
            let after = survey
                .fingerprint(&|p| if p == changed { Ok(Digest::of(b"another")) } else { Digest::of_file(p) })
                .unwrap();
            assert_ne!(before, after, "{}", changed.display());
        }
    }

    #[test]
    fn a_kept_survey_is_taken_while_nothing_changed_and_no_longer() {
        let dir = tempfile::tempdir().unwrap();
        let real = find(None, path_var()).unwrap();
        let body = format!("echo x >> {}/asked\nexec {} \"$@\"", dir.path().display(), real.path.display());
        let path = wrapper(dir.path(), "g++", &body);
        let asked = || std::fs::read_to_string(dir.path().join("asked")).unwrap_or_default().len();
        let ask = |kept, prelude| recall(kept, Some(&path), path_var(), prelude, &of_file).unwrap();
        let kept = ask(None, "");
        let before = asked();
        assert_eq!(ask(Some(kept.clone()), ""), kept);
        assert_eq!(asked(), before, "no process");
        ask(Some(kept.clone()), "#include <stdint.h>");
        assert!(asked() > before, "another prelude");
        wrapper(dir.path(), "g++", &format!("{body} # changed"));
        assert_ne!(ask(Some(kept.clone()), "").fingerprint, kept.fingerprint);
    }

    #[test]
    fn no_compiler_says_what_was_looked_for() {
        let error = find(None, "/nowhere").unwrap_err();
        assert!(error.contains("`g++`, `c++`, `clang++`"), "{error}");
        assert!(find(Some(Path::new("/nowhere/g++")), path_var()).unwrap_err().contains("/nowhere/g++"));
        assert!(find(Some(Path::new("no-such-compiler")), path_var()).unwrap_err().contains("is not on PATH"));
    }

    #[test]
    fn rules_of_make_are_read_with_their_escapes() {
        let rule = "-: /a/b.h \\\n /c\\ d/e.h /f$$g.h\n";
        assert_eq!(make_prerequisites(rule), ["/a/b.h", "/c d/e.h", "/f$g.h"].map(PathBuf::from));
    }
}

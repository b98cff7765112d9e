//! The host's C++ compiler: finds it and fingerprints everything in it that can change its output. Knows how g++ and clang++ are found; [`survey`] determines
//! what they consist of. Does not know what is compiled with the compiler.
//!
//! # What the fingerprint holds, and why
//!
//! | entry | what | why |
//! |---|---|---|
//! | `c++` | the file of the driver, or of the wrapper script that is used as the driver | a wrapper adds flags or picks another compiler |
//! | `driver` | the driver's file, if `c++` is a wrapper that starts another driver (g++ reports this) | it is the real driver |
//! | `version` | the output of `--version` | identifies the build |
//! | `cc1plus`, `as`, `ld`, `collect2`, `lto-wrapper`, `strip` | the sub-tools that the driver names | they do the work; the driver is a few hundred lines |
//! | `lib:NAME` | the shared libraries of the driver and the sub-tools | an assembler is a front end to a library, and another library folds constants |
//! | `crt:NAME` | start-up objects, libraries linked in, linker scripts, specs | their bytes are in the output, or determine it |
//! | `run:NAME` | the shared libraries that a linked program loads: the C library, libm, libstdc++ | they compute |
//! | `headers` | every system header that the prelude and `<bits/stdc++.h>` reach, in order of inclusion, without paths | they are compiled |
//!
//! The fingerprint also holds, as a set, the contents of all these headers and of the other files in the compiler's own folders: everything that a compilation
//! may read besides its sources.
//!
//! Querying the compiler starts processes (half a second), so the answer is a [`Survey`]: a value that can be stored ([`recall`]). A survey stays valid as long
//! as every file in it is unchanged, by the given digest function, and no file has appeared in a place that the compiler searches first: in folders of
//! programs, libraries and headers, and for headers that other headers test with `__has_include`.
//!
//! kforge queries and later runs the compiler with the same environment: `PATH` from [`search_path`], which depends only on the compiler, and English messages.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::run::{self, ask, compiler_environment, find as find_program};
use super::{DigestFile, Error};
use kforge_foundation::base::Digest;
use kforge_types::record::params::Toolchain;

pub mod survey;

pub use survey::Survey;

const WHAT: &str = "C++ compiler";

/// Names of drivers to look for, in order.
const NAMES: [&str; 3] = ["g++", "c++", "clang++"];

/// The families of compilers whose versions are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Family {
    /// g++.
    Gnu,
    /// clang++, and compilers that are made of it.
    Clang,
}

impl Family {
    /// The name of its driver.
    pub fn name(self) -> &'static str {
        match self {
            Family::Gnu => "g++",
            Family::Clang => "clang++",
        }
    }

    /// The first major version that compiles the emulator.
    pub fn least(self) -> u32 {
        match self {
            Family::Gnu => 11,
            Family::Clang => 14,
        }
    }
}

/// Which compiler a driver starts, as its predefined macros say: `--version` is text for people, and a driver named `c++` may be either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The family.
    pub family: Family,
    /// The major version.
    pub major: u32,
}

/// The macros that say so. A compiler does not replace those that it does not define. clang++ defines both.
const MACROS: &str = "__clang_major__ __GNUC__\n";

impl Release {
    /// Reads [`MACROS`] after the preprocessor; none if it is neither of the families.
    fn read(preprocessed: &str) -> Option<Release> {
        let line = preprocessed.lines().map(str::trim).rfind(|line| !line.is_empty() && !line.starts_with('#'))?;
        let mut words = line.split_whitespace().map(|word| word.parse().ok());
        match (words.next()?, words.next()?) {
            (Some(major), _) => Some(Release { family: Family::Clang, major }),
            (None, Some(major)) => Some(Release { family: Family::Gnu, major }),
            (None, None) => None,
        }
    }
}

/// A C++ compiler found on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cxx {
    /// The driver, absolute.
    pub path: PathBuf,
    /// The first line of `--version`.
    pub version: String,
    /// The full output of `--version`.
    pub version_text: String,
    /// Which compiler it is; none if it is of no family whose versions are known.
    pub release: Option<Release>,
    /// The `PATH` with which the compiler finds its sub-tools: [`search_path`]. The compiler's processes get only this and `LC_ALL` as their environment.
    pub path_var: String,
}

/// A survey and its fingerprint, stored between builds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedSurvey {
    /// The parts of the compiler.
    pub survey: Survey,
    /// The fingerprint of the compiler.
    pub fingerprint: Toolchain,
}

/// The `PATH` with which kforge queries and runs a compiler, independent of the user's `PATH`: the compiler's own folder, then the system's.
pub fn search_path(compiler: &Path) -> String {
    format!("{}:/usr/local/bin:/usr/bin:/bin", compiler.parent().unwrap_or(Path::new("/usr/bin")).display())
}

/// Finds a program beside a compiler or in the system's folders, as the compiler finds its own.
pub fn beside(compiler: &Path, name: &str) -> Option<PathBuf> {
    run::on_path(name, &search_path(compiler))
}

/// Returns the survey of the compiler that [`find`] finds, and whether the survey is new. If everything in the stored survey is unchanged, returns the stored
/// one and starts no process.
///
/// # Errors
/// Same as [`find`] and [`Cxx::survey`]; or a file cannot be read.
pub fn recall(
    kept: Option<CachedSurvey>,
    explicit: Option<&Path>,
    path_var: &str,
    prelude: &str,
    digest: DigestFile<'_>,
) -> Result<(CachedSurvey, bool), Error> {
    let path = find_program(explicit, &NAMES, path_var, WHAT)?;
    if let Some(kept) = kept
        && kept.survey.compiler.path == path
        && kept.survey.compiler.path_var == search_path(&path)
        && kept.survey.prelude == Digest::of(prelude.as_bytes())
        && kept.survey.unobstructed()
        && kept.survey.fingerprint(digest).is_ok_and(|now| now == kept.fingerprint)
    {
        return Ok((kept, false));
    }
    let survey = find(explicit, path_var)?.survey(prelude)?;
    let fingerprint = survey.fingerprint(digest).map_err(|source| Error::ReadPart { program: path.clone(), source })?;
    Ok((CachedSurvey { survey, fingerprint }, true))
}

/// The places that [`find`] searches in vain before it finds a compiler.
pub fn passed_over(explicit: Option<&Path>, path_var: &str) -> Vec<PathBuf> {
    run::passed_over(explicit, &NAMES, path_var)
}

/// Finds a C++ compiler: the one that the user named, else the first of `g++`, `c++`, `clang++` in the folders of `path_var`. Its path is absolute.
///
/// # Errors
/// There is no C++ compiler, it does not answer `--version`, or it is too old for kforge ([`Error::TooOld`]).
pub fn find(explicit: Option<&Path>, path_var: &str) -> Result<Cxx, Error> {
    let path = find_program(explicit, &NAMES, path_var, WHAT)?;
    let path_var = search_path(&path);
    let environment = compiler_environment(&path_var);
    let said = ask(&path, &["--version"], &environment, "")?;
    let version = said.out.lines().next().unwrap_or_default().trim().to_string();
    if !said.success || version.is_empty() {
        return Err(Error::VersionFailed { program: path, said: said.err.trim().to_string() });
    }
    let macros = ask(&path, &["-E", "-P", "-x", "c++", "-"], &environment, MACROS)?;
    let release = Release::read(&macros.out).filter(|_| macros.success);
    if let Some(Release { family, major }) = release.filter(|release| release.major < release.family.least()) {
        return Err(Error::TooOld { program: path, version, family, major });
    }
    Ok(Cxx { path, version, version_text: said.out, release, path_var })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
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
        let (kept, anew) = ask(None, "");
        assert!(anew);
        let before = asked();
        assert_eq!(ask(Some(kept.clone()), ""), (kept.clone(), false));
        assert_eq!(asked(), before, "no process");
        ask(Some(kept.clone()), "#include <stdint.h>");
        assert!(asked() > before, "another prelude");
        wrapper(dir.path(), "g++", &format!("{body} # changed"));
        let (now, anew) = ask(Some(kept.clone()), "");
        assert!(anew && now.fingerprint != kept.fingerprint);
    }

    #[test]
    fn a_compiler_that_is_too_old_is_refused_with_its_version_and_the_least_one() {
        let dir = tempfile::tempdir().unwrap();
        let fake = |macros: &str| {
            let body = format!("case $1 in --version) echo 'g++ (Debian 10.2.1-6) 10.2.1';; *) echo '{macros}';; esac");
            find(Some(&wrapper(dir.path(), "g++", &body)), path_var())
        };
        let said = fake("__clang_major__ 10").unwrap_err();
        assert!(matches!(said, Error::TooOld { family: Family::Gnu, major: 10, .. }));
        let said = said.to_string();
        assert!(said.contains("/g++` is g++ 10 (g++ (Debian 10.2.1-6) 10.2.1)"), "{said}");
        assert!(said.contains("expected g++ 11 or later, or clang++ 14 or later"), "{said}");
        assert!(matches!(fake("13 4"), Err(Error::TooOld { family: Family::Clang, major: 13, .. })));
        assert_eq!(fake("14 4").unwrap().release, Some(Release { family: Family::Clang, major: 14 }));
        assert_eq!(fake("__clang_major__ 11").unwrap().release, Some(Release { family: Family::Gnu, major: 11 }));
        assert_eq!(fake("__clang_major__ __GNUC__").unwrap().release, None, "another compiler may do");
        assert!(find(None, path_var()).unwrap().release.is_some());
    }

    #[test]
    fn no_compiler_says_what_was_looked_for() {
        let error = find(None, "/nowhere").unwrap_err().to_string();
        assert!(error.contains("`g++`, `c++`, `clang++`"), "{error}");
        assert!(find(Some(Path::new("/nowhere/g++")), path_var()).unwrap_err().to_string().contains("/nowhere/g++"));
        assert!(
            find(Some(Path::new("no-such-compiler")), path_var()).unwrap_err().to_string().contains("is not on PATH")
        );
    }

    #[test]
    fn what_is_linked_and_loaded_counts_with_assembler_linker_and_strip() {
        let survey = find(None, path_var()).unwrap().survey("").unwrap();
        let tools = survey.fingerprint(&of_file).unwrap().tools;
        for name in ["as", "ld", "strip", "crt:libm.so", "crt:libstdc++.so"] {
            assert!(tools.contains_key(name), "{name} in {:?}", tools.keys());
        }
        for start in ["run:libm.", "run:libc.", "run:libstdc++.", "run:ld-", "lib:"] {
            assert!(tools.keys().any(|name| name.starts_with(start)), "{start} in {:?}", tools.keys());
        }
        let libm = survey.runtime.iter().find(|p| p.to_string_lossy().contains("libm.")).unwrap().clone();
        let other = |p: &Path| if *p == libm { Ok(Digest::of(b"another libm")) } else { Digest::of_file(p) };
        assert_ne!(survey.loaded(&other).unwrap(), survey.loaded(&of_file).unwrap());
    }

    #[test]
    fn a_tool_or_header_that_comes_before_another_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let real = find(None, path_var()).unwrap();
        let path = wrapper(dir.path(), "g++", &format!("exec {} \"$@\"", real.path.display()));
        let (mut kept, _) = recall(None, Some(&path), path_var(), "", &of_file).unwrap();
        // In the driver's folder, which comes first in the driver's `PATH`.
        assert!(kept.survey.absent.contains(&dir.path().join("as")), "{:?}", kept.survey.absent);
        assert!(kept.survey.absent.iter().any(|p| p.ends_with("include/vector") || p.ends_with("include/stdio.h")));
        assert!(kept.survey.unobstructed());
        wrapper(dir.path(), "as", "exec /usr/bin/as \"$@\"");
        assert!(!kept.survey.unobstructed());
        let (now, _) = recall(Some(kept.clone()), Some(&path), path_var(), "", &of_file).unwrap();
        assert_ne!(now.fingerprint.tools["as"], kept.fingerprint.tools["as"]);
        // A header that shadows another, in a folder that the compiler searches first.
        kept = now;
        kept.survey.absent.push(dir.path().join("include/stdio.h"));
        assert!(kept.survey.unobstructed());
        std::fs::create_dir(dir.path().join("include")).unwrap();
        std::fs::write(dir.path().join("include/stdio.h"), "").unwrap();
        assert!(!kept.survey.unobstructed());
    }

    #[test]
    fn another_path_of_the_user_is_no_other_compiler() {
        let one = find(Some(Path::new("/usr/bin/g++")), "/usr/bin:/bin").unwrap();
        assert_eq!(find(Some(Path::new("/usr/bin/g++")), "/opt/bin:/usr/bin").unwrap(), one);
        assert_eq!(one.path_var, "/usr/bin:/usr/local/bin:/usr/bin:/bin");
    }
}

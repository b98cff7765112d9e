//! Determines what a C++ compiler consists of: queries the driver, the loader and the folders. Knows how drivers answer. The table in the parent module lists
//! what enters the fingerprint, and why.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Cxx;
use crate::toolchain::run::{ToolOutput, ask, compiler_environment, on_path};
use crate::toolchain::{DigestFile, Error, digest_of_sequence, loader};
use kforge_foundation::base::Digest;
use kforge_types::record::params::Toolchain;

/// Sub-tools that a driver names with `-print-prog-name`.
const SUB_TOOLS: [&str; 6] = ["cc1plus", "as", "ld", "collect2", "lto-wrapper", "strip"];

/// The name of the driver that a wrapper starts.
const DRIVER: &str = "driver";

/// What the names of the tools' libraries begin with.
const LIBRARY: &str = "lib:";

/// Files that drivers read or link in; queried with `-print-file-name`.
const RUNTIME: [&str; 13] = [
    "specs",
    "crt1.o",
    "Scrt1.o",
    "crti.o",
    "crtn.o",
    "crtbeginS.o",
    "crtendS.o",
    "libgcc.a",
    "liblto_plugin.so",
    "libstdc++.so",
    "libm.so",
    "libc.so",
    "libc_nonshared.a",
];

/// Standards whose headers are listed. The standard decides which headers include which others.
const STANDARDS: [&str; 2] = ["-std=c++20", "-std=c++17"];

/// Names of folders that contain only a compiler's own headers.
const OWN: [&str; 3] = ["c++", "gcc", "clang"];

/// The parts of a compiler, by path: expensive to query, cheap to check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// The surveyed compiler.
    pub compiler: Cxx,
    /// The digest of the prelude that was surveyed; another prelude needs another survey.
    pub prelude: Digest,
    /// Driver, sub-tools, their libraries and runtime files, by their names in the fingerprint.
    pub tools: BTreeMap<String, PathBuf>,
    /// System headers, in order of first inclusion.
    #[serde(with = "lines")]
    pub headers: Vec<PathBuf>,
    /// Further headers of the compiler's own, in order of names.
    #[serde(with = "lines")]
    pub own: Vec<PathBuf>,
    /// The folders in which the compiler searches for system headers.
    pub searched: Vec<PathBuf>,
    /// The shared libraries that a program linked by this compiler loads.
    pub runtime: BTreeSet<PathBuf>,
    /// Paths that do not exist. Each is that of a file that would be used in place of a surveyed tool, library or header if it existed, or of the outermost absent
    /// folder of such files: every build asks for each path, and one folder stands for hundreds of files. Sorted, without duplicates.
    #[serde(with = "lines")]
    pub absent: Vec<PathBuf>,
}

impl Cxx {
    fn ask(&self, args: &[&str], stdin: &str) -> Result<ToolOutput, Error> {
        ask(&self.path, args, &compiler_environment(&self.path_var), stdin)
    }

    /// Queries the compiler for its parts. `prelude` is C++ text that includes the wanted system headers in addition to `<bits/stdc++.h>`.
    ///
    /// # Errors
    /// The compiler cannot be run, cannot preprocess the prelude or cannot link a program. The error quotes the compiler.
    pub fn survey(&self, prelude: &str) -> Result<Survey, Error> {
        let mut survey = Survey {
            compiler: self.clone(),
            prelude: Digest::of(prelude.as_bytes()),
            tools: [("c++".to_string(), self.path.clone())].into(),
            headers: vec![],
            own: vec![],
            searched: vec![],
            runtime: BTreeSet::new(),
            absent: vec![],
        };
        let mut absent = AbsentPlaces::default();
        self.survey_tools(&mut survey, &mut absent)?;
        self.survey_headers(&mut survey, &mut absent, prelude)?;
        survey.absent = absent.places.into_iter().collect();
        survey.runtime = self.linked_with()?.into_iter().collect();
        survey.load_tools()?;
        Ok(survey)
    }

    fn survey_tools(&self, survey: &mut Survey, absent: &mut AbsentPlaces) -> Result<(), Error> {
        let said = self.ask(&["-print-search-dirs"], "")?;
        let folders = |word: &str| -> Vec<PathBuf> {
            let line = said.out.lines().find_map(|l| l.strip_prefix(word)).unwrap_or_default();
            line.trim_start_matches([':', ' ', '='])
                .split(':')
                .filter(|f| f.starts_with('/'))
                .map(PathBuf::from)
                .collect()
        };
        let mut programs = folders("programs");
        programs.extend(self.path_var.split(':').map(PathBuf::from));
        let libraries = folders("libraries");
        for name in SUB_TOOLS {
            let said = self.ask(&[&format!("-print-prog-name={name}")], "")?;
            let answer = Path::new(said.out.trim());
            // A driver echoes a bare name if it will search `PATH` itself, or if it has no such tool (clang and `cc1plus`).
            let found = if answer.is_absolute() {
                Some(answer.to_path_buf())
            } else {
                on_path(&answer.to_string_lossy(), &self.path_var)
            };
            absent.passes_over(&programs, Path::new(name));
            if let Some(path) = found.filter(|p| p.is_file()) {
                survey.tools.insert(name.to_string(), path);
            }
        }
        for name in RUNTIME {
            let said = self.ask(&[&format!("-print-file-name={name}")], "")?;
            let path = Path::new(said.out.trim());
            absent.passes_over(&libraries, Path::new(name));
            if path.is_absolute() && path.is_file() {
                survey.tools.insert(format!("crt:{name}"), path.to_path_buf());
            }
        }
        Ok(())
    }

    fn survey_headers(&self, survey: &mut Survey, absent: &mut AbsentPlaces, prelude: &str) -> Result<(), Error> {
        let text = format!("#if __has_include(<bits/stdc++.h>)\n#include <bits/stdc++.h>\n#endif\n{prelude}\n");
        let cannot =
            |said: &ToolOutput| Error::Headers { program: self.path.clone(), said: said.err.trim().to_string() };
        let mut seen = BTreeSet::new();
        for standard in STANDARDS {
            let said = self.ask(&[standard, "-O2", "-M", "-x", "c++", "-"], &text)?;
            if !said.success {
                return Err(cannot(&said));
            }
            let all = make_prerequisites(&said.out).into_iter().filter(|p| p.is_absolute());
            survey.headers.extend(all.filter(|p| seen.insert(p.clone())));
        }
        let said = self.ask(&["-v", "-E", "-x", "c++", "-"], "")?;
        let (folders, nowhere) = search_list(&said.err);
        absent.places.extend(nowhere);
        survey.searched.clone_from(&folders);
        if let Some(driver) = driver(&said.err, &self.path_var).filter(|driver| *driver != self.path) {
            survey.tools.insert(DRIVER.to_string(), driver);
        }
        for folder in folders.iter().filter(|f| f.iter().any(|part| OWN.iter().any(|own| part == *own))) {
            let walk = walkdir::WalkDir::new(folder).follow_links(true).sort_by_file_name();
            let files = walk.into_iter().filter_map(Result::ok).filter(|e| e.file_type().is_file());
            survey.own.extend(files.map(walkdir::DirEntry::into_path).filter(|p| seen.insert(p.clone())));
        }
        let mut asked = BTreeSet::new();
        for header in survey.headers.clone().iter().chain(&survey.own.clone()) {
            for (at, folder) in folders.iter().enumerate() {
                if let Ok(name) = header.strip_prefix(folder) {
                    absent.passes_over(&folders[..at], name);
                }
            }
            let bytes = std::fs::read(header).map_err(|source| Error::Read { path: header.clone(), source })?;
            asked.extend(asked_for(&bytes));
        }
        asked.iter().for_each(|name| absent.passes_over(&folders, Path::new(name)));
        Ok(())
    }

    /// The libraries that a program loads, found by linking one.
    fn linked_with(&self) -> Result<Vec<PathBuf>, Error> {
        let folder = tempfile::tempdir().map_err(Error::Temporary)?;
        let program = folder.path().join("program");
        let place = program.to_string_lossy();
        let said = self.ask(&["-x", "c++", "-", "-Wl,--no-as-needed", "-lm", "-o", &place], "int main() {}\n")?;
        if !said.success {
            return Err(Error::Link { program: self.path.clone(), said: said.err.trim().to_string() });
        }
        loader::libraries(&program)
    }
}

impl Survey {
    /// Asks the loader of this machine which libraries the tools load.
    ///
    /// # Errors
    /// A tool cannot be read, or its loader cannot be run.
    pub fn load_tools(&mut self) -> Result<(), Error> {
        self.tools.retain(|name, _| !name.starts_with(LIBRARY));
        let programs = self.tools.iter().filter(|(name, _)| SUB_TOOLS.contains(&name.as_str()) || *name == "c++");
        let mut libraries = Vec::new();
        for (_, program) in programs {
            libraries.extend(loader::libraries(program)?);
        }
        for library in libraries {
            let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.tools.insert(format!("{LIBRARY}{name}"), library);
        }
        Ok(())
    }

    /// Asks the loader of this machine which files the names of [`Self::runtime`] mean here. `program` is any program of this machine. Compiles nothing.
    ///
    /// # Errors
    /// The program cannot be read, has no loader, or its loader cannot be run.
    pub fn load_runtime(&mut self, program: &Path) -> Result<(), Error> {
        let of = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        // A program names the loader by its path.
        let names: Vec<String> = self.runtime.iter().filter_map(of).filter(|name| !name.starts_with("ld-")).collect();
        self.runtime = loader::libraries_with(program, &names)?.into_iter().collect();
        Ok(())
    }

    /// Whether every path in `absent` still does not exist.
    pub fn unobstructed(&self) -> bool {
        self.absent.iter().all(|place| !place.exists())
    }

    /// The files of programs, and the folders of libraries and headers, that the sandbox must let the compiler read. Of nested folders, only the outer one.
    pub fn folders(&self) -> Vec<PathBuf> {
        let program = |name: &str| SUB_TOOLS.contains(&name) || ["c++", DRIVER].contains(&name);
        let (programs, files): (Vec<_>, Vec<_>) = self.tools.iter().partition(|(name, _)| program(name));
        let files = files.into_iter().map(|(_, path)| path).chain(&self.headers).chain(&self.own).chain(&self.runtime);
        let mut folders: Vec<PathBuf> = files.filter_map(|path| path.parent()).map(Path::to_path_buf).collect();
        folders.extend(programs.into_iter().map(|(_, path)| path.clone()));
        folders.extend(self.searched.iter().cloned());
        folders.sort();
        let mut outer: Vec<PathBuf> = vec![];
        for folder in folders {
            if outer.last().is_none_or(|last| !folder.starts_with(last)) {
                outer.push(folder);
            }
        }
        outer
    }

    /// The fingerprint of the compiler. Holds no path, so that the same compiler elsewhere has the same fingerprint.
    ///
    /// # Errors
    /// A file of the survey can no longer be read: survey again.
    pub fn fingerprint(&self, digest: DigestFile<'_>) -> io::Result<Toolchain> {
        let mut tools = self.loaded(digest)?.tools;
        for (name, path) in &self.tools {
            tools.insert(name.clone(), digest(path)?);
        }
        tools.insert("version".into(), Digest::of(self.compiler.version_text.as_bytes()));
        let headers: Vec<Digest> = self.headers.iter().map(|p| digest(p)).collect::<io::Result<_>>()?;
        tools.insert("headers".into(), digest_of_sequence(&headers));
        let own: Vec<Digest> = self.own.iter().map(|p| digest(p)).collect::<io::Result<_>>()?;
        Ok(Toolchain { tools, headers: headers.into_iter().chain(own).collect() })
    }

    /// The fingerprint of the libraries that a program linked by this compiler loads. It is part of the fingerprint of the compiler and of every step that runs
    /// such a program.
    ///
    /// # Errors
    /// A library can no longer be read: survey again.
    pub fn loaded(&self, digest: DigestFile<'_>) -> io::Result<Toolchain> {
        let mut out = Toolchain::default();
        for path in &self.runtime {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            out.tools.insert(format!("run:{name}"), digest(path)?);
        }
        Ok(out)
    }
}

/// Collects the paths whose appearance would change which files a compiler uses.
#[derive(Default)]
struct AbsentPlaces {
    places: BTreeSet<PathBuf>,
    /// Whether paths exist: thousands of headers share a few folders.
    known: HashMap<PathBuf, bool>,
}

impl AbsentPlaces {
    /// Records the folders in which a file named `name` would be found first: all folders before the one that has such a file.
    fn passes_over(&mut self, folders: &[PathBuf], name: &Path) {
        for folder in folders {
            let Some(place) = self.outermost(folder, name) else { return };
            self.places.insert(place);
        }
    }

    /// The shortest path on the way from a folder to a file in it that does not exist; none if the file exists.
    fn outermost(&mut self, folder: &Path, name: &Path) -> Option<PathBuf> {
        let mut place = folder.to_path_buf();
        for part in name.components() {
            place.push(part);
            let exists = match self.known.get(&place) {
                Some(exists) => *exists,
                None => {
                    let exists = place.exists();
                    self.known.insert(place.clone(), exists);
                    exists
                }
            };
            if !exists {
                return Some(place);
            }
        }
        None
    }
}

/// Stores thousands of paths as one text, one path per line. Every build reads them, and a list of as many strings takes several times as long to decode.
mod lines {
    use std::path::{Path, PathBuf};

    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Error, Serializer};

    /// # Errors
    /// A path is not UTF-8 or contains a line break. Such a survey is not stored.
    pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::new();
        for path in paths {
            let line = path.to_str().filter(|path| !path.contains('\n'));
            text += line.ok_or_else(|| S::Error::custom(format!("`{}` is not a line of text", path.display())))?;
            text.push('\n');
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(text.split_terminator('\n').map(|line| Path::new(line).to_path_buf()).collect())
    }
}

/// The folders that a compiler searches for headers in angle brackets, in order; and the folders that it would search if they existed.
fn search_list(words: &str) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let lines = words.lines().map(str::trim);
    let list = lines.clone().skip_while(|l| !l.starts_with("#include <...>")).skip(1);
    let folders = list.take_while(|l| l.starts_with('/')).map(PathBuf::from).collect();
    let nowhere = lines.filter_map(|l| l.strip_prefix("ignoring nonexistent directory \"")?.strip_suffix('"'));
    (folders, nowhere.map(PathBuf::from).filter(|p| p.is_absolute()).collect())
}

/// The driver that answered, according to its own output: a different file if it was started by a wrapper. clang++ does not report it.
fn driver(words: &str, path_var: &str) -> Option<PathBuf> {
    let named = words.lines().find_map(|line| line.strip_prefix("COLLECT_GCC="))?;
    match Path::new(named).is_absolute() {
        true => Some(PathBuf::from(named)),
        false => on_path(named, path_var),
    }
}

/// Names in angle brackets that a header tests with `__has_include`.
fn asked_for(text: &[u8]) -> Vec<String> {
    const OPERATOR: &[u8] = b"__has_include";
    let operands = memchr::memmem::find_iter(text, OPERATOR).filter_map(|at| {
        let rest = &text[at + OPERATOR.len()..];
        let line = rest.iter().position(|byte| *byte == b'\n').map_or(rest, |end| &rest[..end]);
        let line = String::from_utf8_lossy(line);
        let line = line.strip_prefix("_next").unwrap_or(&line).trim_start().strip_prefix('(')?.trim_start();
        let (name, _) = line.strip_prefix('<')?.split_once('>')?;
        Some(name.to_string())
    });
    operands.collect()
}

/// The prerequisites of a rule that `-M` prints: continued lines, spaces and `#` escaped by a backslash, `$` doubled.
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

    #[test]
    fn rules_of_make_are_read_with_their_escapes() {
        let rule = "-: /a/b.h \\\n /c\\ d/e.h /f$$g.h\n";
        assert_eq!(make_prerequisites(rule), ["/a/b.h", "/c d/e.h", "/f$g.h"].map(PathBuf::from));
    }

    #[test]
    fn the_search_list_is_read_with_folders_that_are_not_there() {
        let words = "ignoring nonexistent directory \"/usr/local/include/x86\"\n#include \"...\" search starts here:\n#include <...> search starts here:\n /usr/include/c++/12\n /usr/include\nEnd of search list.\n";
        let (folders, nowhere) = search_list(words);
        assert_eq!(folders, ["/usr/include/c++/12", "/usr/include"].map(PathBuf::from));
        assert_eq!(nowhere, [PathBuf::from("/usr/local/include/x86")]);
    }

    #[test]
    fn lists_of_paths_are_kept_as_lines_and_those_that_are_none_refused() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Paths(#[serde(with = "lines")] Vec<PathBuf>);
        for paths in [vec![], vec![""], vec!["/a b/c.h", "/d/\u{e9}\"\\.h"]] {
            let paths = Paths(paths.into_iter().map(PathBuf::from).collect());
            assert_eq!(serde_json::from_str::<Paths>(&serde_json::to_string(&paths).unwrap()).unwrap(), paths);
        }
        assert!(serde_json::to_string(&Paths(vec!["/a\nb".into()])).is_err());
    }

    #[test]
    fn headers_that_are_asked_for_are_found() {
        let text = "#if __has_include(<tbb/tbb.h>) && __has_include ( \"no.h\" ) || __has_include_next(<y.h>)\n";
        assert_eq!(asked_for(text.as_bytes()), ["tbb/tbb.h", "y.h"]);
    }

    #[test]
    fn one_absent_folder_stands_for_the_files_in_it() {
        let place = tempfile::tempdir().unwrap();
        let folders = ["a", "b", "c"].map(|name| place.path().join(name));
        folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        std::fs::create_dir(folders[1].join("sys")).unwrap();
        std::fs::create_dir_all(folders[2].join("sys/deep")).unwrap();
        for name in ["x.h", "y.h", "deep/z.h"] {
            std::fs::write(folders[2].join("sys").join(name), "").unwrap();
        }
        let mut absent = AbsentPlaces::default();
        for name in ["sys/x.h", "sys/y.h", "sys/deep/z.h"] {
            absent.passes_over(&folders, Path::new(name));
        }
        let expected = ["a/sys", "b/sys/deep", "b/sys/x.h", "b/sys/y.h"].map(|name| place.path().join(name));
        assert_eq!(absent.places.iter().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    }
}

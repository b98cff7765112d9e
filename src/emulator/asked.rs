//! Headers of the system about which a source asks by `__has_include`. A compiler's list holds only files that it read, so they are looked for here: an answer
//! must depend on nothing but the sources and the toolchain.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::compile::{CompileFailed, EmulatorCompile, Tool};
use kforge_project::source::headers_asked_about;

/// The files of the system that exist, by absolute path. `search` are the compiler's flags that say where headers are.
pub(super) fn headers_found(
    tool: &Tool<'_>,
    what: &EmulatorCompile<'_>,
    texts: &[(PathBuf, String)],
    search: &[String],
) -> Result<Vec<PathBuf>, CompileFailed> {
    let mut found = vec![];
    for name in asked_about(texts) {
        let fail = |e| CompileFailed::from(format!("cannot write a file: {e}"));
        let text = format!("#if __has_include(<{name}>)\n#include <{name}>\n#endif\n");
        fs::write(tool.cwd.join("asked.cpp"), text).map_err(fail)?;
        let mut args = search.to_vec();
        args.extend(["-E", "-H", "-o", "asked.i", "asked.cpp"].map(String::from));
        let said = match tool.run(what.cxx, &args) {
            // A header that exists may not compile by itself.
            Err(refused) if refused.ended.is_none() => refused.log,
            ran => ran?,
        };
        found.extend(first_included(&said).map(Path::to_path_buf).filter(|path| path.is_absolute()));
    }
    Ok(found)
}

/// The names of headers that the sources ask about and that neither they nor the emulator have.
fn asked_about(texts: &[(PathBuf, String)]) -> BTreeSet<String> {
    let ours = super::headers();
    let known =
        |name: &String| ours.iter().any(|(own, _)| own == name) || texts.iter().any(|(path, _)| path.ends_with(name));
    texts.iter().flat_map(|(_, text)| headers_asked_about(text)).filter(|name| !known(name)).collect()
}

/// The first file that a compiler includes, by its output for `-H`: a line for each, with as many dots as it is deep.
fn first_included(said: &str) -> Option<&Path> {
    said.lines().find_map(|line| line.strip_prefix(". ")).map(|path| Path::new(path.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_included_file_is_read_from_a_compilers_list() {
        let said = ". /usr/include/x.h\n.. /usr/include/y.h\nx.h:1:2: error: no\n";
        assert_eq!(first_included(said), Some(Path::new("/usr/include/x.h")));
        assert_eq!(first_included("Multiple include guards may be useful for:\n"), None);
    }

    #[test]
    fn what_the_sources_or_the_emulator_have_is_not_asked_of_the_system() {
        let text =
            "#if __has_include(<cuda_fp16.h>) && __has_include(\"mine.h\") && __has_include(<theirs.h>)\n#endif\n";
        let texts = [(PathBuf::from("k.cu"), text.to_string()), (PathBuf::from("inc/mine.h"), String::new())];
        assert_eq!(asked_about(&texts).into_iter().collect::<Vec<_>>(), ["theirs.h"]);
    }
}

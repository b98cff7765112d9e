//! A kernel's launcher of its own, as the manifest states it, and what has no place beside one. Kinds were checked before.

use toml::de::DeTable;

use super::read::{Reader, sub};
use crate::model::Text;
use crate::model::kernel::HostDecl;
use crate::model::search::Strategy;

impl Reader<'_> {
    /// What launches on the host's side, and the file that it is in. What a launcher of its own leaves no place for is refused beside it.
    pub(super) fn host(&mut self, name: &Text, table: &DeTable<'_>, source: Option<&Text>) -> Option<(HostDecl, Text)> {
        let text = self.text(table, "host")?;
        let (file, function) = self.function(&text, &[".cu", ".cpp", ".cc", ".cxx"])?;
        if let Some(source) = source.filter(|source| source.value != file) {
            let message = format!("`host` of kernel `{name}` is in `{file}`, and `source` is `{source}`");
            let error = source.place.error("manifest.conflict", message).expected("one file, which `host` names");
            self.found.push(error.hint(format!("leave `source` out, and include `{source}` in `{file}`")));
        }
        let never = [
            ("launch", "either `host`, which launches, or launches for kforge"),
            ("constants", "no `constants`: a launcher fills its own"),
            ("generate", "a kernel of your own: launchers are neither generated nor improved"),
        ];
        for (key, expected) in never {
            if let Some((at, _)) = table.get_key_value(key) {
                let message = format!("kernel `{name}` has a launcher of its own and states `{key}`");
                self.wrong("manifest.conflict", message, at.span(), expected);
            }
        }
        if let Some(compiler) = self.text(table, "compiler").filter(|c| c.value == "nvrtc") {
            let error = compiler.place.error("manifest.conflict", "NVRTC compiles no host code");
            self.found.push(error.expected("`nvcc`, or no `compiler`: a kernel with `host` is built by nvcc"));
        }
        if let Some((at, _)) = sub(table, "verify").and_then(|verify| verify.get_key_value("sanitize")) {
            let message = format!("kernel `{name}` has a launcher of its own and is to be sanitized");
            self.wrong(
                "manifest.conflict",
                message,
                at.span(),
                "no `sanitize`: kforge does not start what launches here",
            );
        }
        if let Some((at, _)) = sub(table, "tune").and_then(|tune| tune.get_key_value("strategy"))
            && self.search(table).strategy != Strategy::Exhaustive
        {
            let message =
                format!("the tunables of kernel `{name}` are to be searched, by times that there are none of");
            self.wrong(
                "manifest.conflict",
                message,
                at.span(),
                "no `strategy`: what a launcher of its own runs is not timed",
            );
        }
        let file = Text { value: file, place: text.place.clone() };
        Some((HostDecl { function, place: text.place }, file))
    }
}

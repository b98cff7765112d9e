//! Reads a kernel's own launcher and refuses the keys that conflict with it. Kinds of values were checked before.

use toml::de::DeTable;

use super::read::{Reader, sub};
use crate::model::Text;
use crate::model::kernel::HostDecl;
use crate::model::search::Strategy;

impl Reader<'_> {
    /// The host function that launches, and its file. Refuses the keys that conflict with it.
    pub(super) fn host(&mut self, name: &Text, table: &DeTable<'_>, source: Option<&Text>) -> Option<(HostDecl, Text)> {
        let text = self.text(table, "host")?;
        let (file, function) = self.function(&text, &[".cu", ".cpp", ".cc", ".cxx"])?;
        if let Some(source) = source.filter(|source| source.value != file) {
            let message = format!("`host` of kernel `{name}` is in `{file}`, and `source` is `{source}`");
            let error = source.place.error("manifest.conflict", message).expected("one file, which `host` names");
            self.found.push(error.hint(format!("leave `source` out, and include `{source}` in `{file}`")));
        }
        let never = [
            ("launch", "either `host` or `launch`"),
            ("constants", "no `constants`: the launcher fills them itself"),
            ("generate", "your own kernel: kforge neither generates nor improves launchers"),
        ];
        for (key, expected) in never {
            if let Some((at, _)) = table.get_key_value(key) {
                let message = format!("kernel `{name}` has its own launcher and also states `{key}`");
                self.wrong("manifest.conflict", message, at.span(), expected);
            }
        }
        if let Some(compiler) = self.text(table, "compiler").filter(|c| c.value == "nvrtc") {
            let error = compiler.place.error("manifest.conflict", "NVRTC compiles no host code");
            self.found.push(error.expected("`nvcc`, or no `compiler`: a kernel with `host` is built by nvcc"));
        }
        if let Some((at, _)) = sub(table, "verify").and_then(|verify| verify.get_key_value("sanitize")) {
            let message = format!("kernel `{name}` has its own launcher and states `sanitize`");
            self.wrong(
                "manifest.conflict",
                message,
                at.span(),
                "no `sanitize`: kforge does not launch this kernel itself",
            );
        }
        if let Some((at, _)) = sub(table, "tune").and_then(|tune| tune.get_key_value("strategy"))
            && self.search(table).strategy != Strategy::Exhaustive
        {
            let message = format!(
                "kernel `{name}` searches its tunables by time, but a kernel with its own launcher is not timed"
            );
            self.wrong(
                "manifest.conflict",
                message,
                at.span(),
                "no `strategy`: kforge does not time a kernel with its own launcher",
            );
        }
        let file = Text { value: file, place: text.place.clone() };
        Some((HostDecl { function, place: text.place }, file))
    }
}

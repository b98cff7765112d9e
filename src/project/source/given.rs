//! Macros and flags that a compiler is given beside the sources. Knows how flags spell definitions.

use std::collections::BTreeMap;

/// Macros that a compiler is given beside the sources.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'a> {
    /// Names and values.
    pub defines: Option<&'a BTreeMap<String, String>>,
    /// The flags, which may define macros also.
    pub flags: &'a [String],
}

impl<'a> Given<'a> {
    /// These macros and flags.
    pub fn new(defines: &'a BTreeMap<String, String>, flags: &'a [String]) -> Self {
        Given { defines: Some(defines), flags }
    }

    /// The names that are given values, without those of flags.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.defines.into_iter().flat_map(|defines| defines.keys()).map(String::as_str)
    }

    /// Every text of them.
    pub(super) fn texts(&self) -> impl Iterator<Item = &'a str> {
        let defines = self.defines.into_iter().flatten().flat_map(|(name, value)| [name, value]);
        defines.chain(self.flags).map(String::as_str)
    }

    /// The definitions as `#define` spells them.
    pub(super) fn definitions(&self) -> Vec<String> {
        let named = self.defines.into_iter().flatten().map(|(name, value)| format!("{name} {value}"));
        let mut flags = self.flags.iter();
        let mut of_flags = vec![];
        while let Some(flag) = flags.next() {
            let text = match flag.strip_prefix("-D").or_else(|| flag.strip_prefix("--define-macro=")) {
                Some("") => flags.next().map_or("", String::as_str),
                Some(text) => text,
                None => continue,
            };
            let (name, value) = text.split_once('=').unwrap_or((text, "1"));
            of_flags.push(format!("{name} {value}"));
        }
        named.chain(of_flags).collect()
    }

    /// Whether a flag names a file that is read before the sources.
    pub(super) fn includes(&self) -> bool {
        let starts = ["-include", "-imacros", "--pre-include", "--include=", "-iinclude"];
        self.flags.iter().any(|flag| starts.iter().any(|start| flag.starts_with(start)))
    }

    /// Whether functions without annotation are code of the device.
    pub(super) fn all_device(&self) -> bool {
        let says =
            |flag: &String| flag.contains("default-device") || flag.contains("device-as-default-execution-space");
        self.flags.iter().any(says)
    }
}

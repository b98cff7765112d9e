//! The namespace in which a declaration stands, by the braces that are open before it.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::declarations::Reader;
use super::spaces::KNOWN;

impl Reader<'_> {
    /// Whether the outermost namespace that is open is one of the C++ library or of CUDA's.
    pub(super) fn in_library(&self) -> bool {
        let opened = |brace: usize| {
            if !self.text[brace].is("{") {
                // A macro opens it.
                return self.macros.words(&self.text[brace].text).iter().any(|word| KNOWN.contains(&word.as_str()));
            }
            let before = self.text[..brace].iter().rev().take_while(|t| !t.is("namespace") && !t.is("extern"));
            before.take(16).filter(|t| t.is_word()).last().is_some_and(|t| KNOWN.contains(&t.text.as_str()))
        };
        let is_language = |brace: &usize| brace.checked_sub(2).is_some_and(|at| self.text[at].is("extern"));
        self.state.scopes.iter().find(|brace| !is_language(brace)).is_some_and(|brace| opened(*brace))
    }

    /// The namespace that is open, by the names of all that are.
    pub(super) fn scope(&mut self) -> u64 {
        let open = &self.state.scopes;
        let known = open.iter().rposition(|brace| self.hashes.contains_key(brace));
        let mut hash = known.map_or(0, |at| self.hashes[&open[at]]);
        for brace in &open[known.map_or(0, |at| at + 1)..] {
            let before = self.text[..*brace].iter().rev().take_while(|t| !t.is("namespace") && !t.is("extern"));
            let names: Vec<&str> = match self.text[*brace].is("{") {
                // `extern "C" {`
                true if brace.checked_sub(2).is_some_and(|at| self.text[at].is("extern")) => vec![],
                true => before.take(16).map(|t| t.text.as_str()).chain(["{"]).collect(),
                // A macro opens it.
                false => vec![&self.text[*brace].text],
            };
            if !names.is_empty() {
                let mut hasher = DefaultHasher::new();
                (hash, names).hash(&mut hasher);
                hash = hasher.finish();
            }
            self.hashes.insert(*brace, hash);
        }
        hash
    }
}

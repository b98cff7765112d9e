//! Uses of macros between declarations: those that are declarations by themselves, those that open and close namespaces, and those that begin a declaration. Knows
//! every meaning that a macro may have at its use.

use super::declarations::{At, Range, Reader, closing, declarations, is_attribute};
use super::tokens::{Kind, Token};

impl Reader<'_> {
    /// A use of a macro that is a declaration by itself, or that opens or closes a namespace.
    pub(super) fn use_of_macro(&mut self, at: usize) -> Option<usize> {
        let word = &self.text[at].text;
        let called = self.word(at + 1) == "(";
        if self.macros.contains(word) {
            let takes = called && self.macros.takes_arguments(word);
            let last = if takes { closing(self.text, at + 1)? } else { at };
            return self.use_of_known(at, last, takes);
        }
        if !called {
            if self.stands_apart(at) {
                // Of a header that is not here.
                return Some(self.whole(at, at + 1, true));
            }
            return None;
        }
        if is_attribute(word) || ["static_assert", "asm", "__asm__"].contains(&word.as_str()) {
            return None;
        }
        // Of a header that is not here: a use on lines of its own.
        let close = closing(self.text, at + 1)?;
        let next = self.text.get(close + 1);
        let apart = next.is_none_or(|t| t.line > self.text[close].line);
        let whole = apart && next.is_none_or(|t| t.kind == Kind::Directive || t.is_word() || t.is("}"));
        whole.then(|| self.whole(at, close + 1, true))
    }

    fn use_of_known(&mut self, at: usize, last: usize, takes: bool) -> Option<usize> {
        let used: Vec<Token> = self.text[at..=last].iter().filter(|t| t.kind != Kind::Directive).cloned().collect();
        let places = self.place.of(self.macros, at);
        let Some(choices) = self.macros.choices(&used, &places) else {
            self.uncertain = true;
            return None;
        };
        let made: Vec<_> = choices.iter().map(|choice| self.macros.expanded(&used, choice)).collect();
        if made.iter().any(|made| !made.complete) {
            self.uncertain = true;
            return None;
        }
        // What it may be, where it is anything.
        let made = made.iter().map(|made| &made.tokens[..]).filter(|made| !made.is_empty());
        let is_itself = |made: &&[Token]| made.len() == used.len() && made[0].text == used[0].text;
        let all: Vec<_> = made.collect();
        if !all.is_empty() && all.iter().all(is_itself) {
            return None;
        }
        let made: Vec<_> = all.into_iter().filter(|made| !is_itself(made)).collect();
        if let Some(odd) = made.iter().find(|made| scopes(made) != (0, 0)) {
            let (pops, pushes) = scopes(odd);
            self.out.broken |= made.iter().any(|made| scopes(made) != (0, 0) && !is_space(made));
            for _ in 0..pops {
                if self.state.scopes.pop().is_none() {
                    self.stray("brace", at);
                }
            }
            (0..pushes).for_each(|_| self.state.scopes.push(at));
            self.out.namespaces.extend(made.iter().copied().flatten().filter(|t| t.is_word()).map(|t| t.text.clone()));
            return Some(last + 1);
        }
        let whole = |made: &[Token]| {
            let found = declarations(made, self.macros, At::Places(&places));
            found.opening.is_none() && !found.broken
        };
        let count = made.iter().filter(|made| whole(made)).count();
        if made.is_empty() {
            // A semicolon that follows belongs to nothing.
            return takes.then(|| self.whole(at, last + 1, true));
        }
        if count == made.len() {
            return Some(self.whole(at, last + 1, true));
        }
        self.uncertain |= count > 0;
        None
    }

    /// Adds what is a declaration by itself.
    fn whole(&mut self, at: usize, to: usize, certain: bool) -> usize {
        let from = self.carried.take().unwrap_or(at);
        let certain = certain && !std::mem::take(&mut self.uncertain);
        let (in_library, scope) = (self.in_library(), self.scope());
        self.out.all.push(Range { from, to, certain, in_library, scope });
        to
    }

    /// Whether a word is alone on its line and looks like a macro.
    fn stands_apart(&self, at: usize) -> bool {
        let token = &self.text[at];
        let capital = token.text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let before = at.checked_sub(1).map(|at| &self.text[at]);
        let after = self.text.get(at + 1);
        let apart = before.is_none_or(|t| t.line < token.line) && after.is_none_or(|t| t.line > token.line);
        capital && apart && token.text.len() > 1 && !after.is_some_and(|t| t.is("("))
    }
}

/// How many open braces a text closes, and how many it opens and leaves open.
fn scopes(text: &[Token]) -> (usize, usize) {
    let (mut pops, mut open) = (0, 0);
    for token in text {
        if token.is("{") {
            open += 1;
        } else if token.is("}") && open > 0 {
            open -= 1;
        } else if token.is("}") {
            pops += 1;
        }
    }
    (pops, open)
}

/// Whether a text only opens and closes namespaces and the like.
fn is_space(text: &[Token]) -> bool {
    let (_, opens) = scopes(text);
    let plain = |t: &Token| {
        t.is_word() || t.kind == Kind::Literal || ["::", "{", "}", ";", "[", "]"].iter().any(|text| t.is(text))
    };
    text.iter().all(plain) && (opens == 0 || text.iter().any(|t| t.is("namespace") || t.is("extern")))
}

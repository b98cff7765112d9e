//! Macros of a source: their definitions, and which of them counts at a place of the source. Evaluates no conditions, so a name may have several meanings at a
//! place; [`Macros::choices`] gives every one. [`super::expand`] expands them.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::expand::Choice;
use super::order::{Order, Positions};
use super::tokens::{Kind, Token, tokens};

/// The most meanings of a text that are looked at.
const MOST_CHOICES: usize = 16;

/// The most macros that one text may reach.
const MOST_REACHED: usize = 4_000;

/// A definition.
#[derive(Debug, Clone)]
pub(super) struct Macro {
    /// The parameters of a function-like macro; `...` is `__VA_ARGS__`.
    pub(super) parameters: Option<Vec<String>>,
    pub(super) variadic: bool,
    pub(super) body: Vec<Token>,
}

impl PartialEq for Macro {
    /// Whether two definitions mean the same, wherever they stand.
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&Token, &Token)| a.text == b.text && a.glued == b.glued;
        self.parameters == other.parameters
            && self.variadic == other.variadic
            && self.body.len() == other.body.len()
            && self.body.iter().zip(&other.body).skip(1).all(same)
            && self.body.first().map(|t| &t.text) == other.body.first().map(|t| &t.text)
    }
}

/// What a name can mean.
#[derive(Debug, Clone, Default)]
pub(super) struct Meanings {
    /// Its definitions that differ, in the order in which the files are read.
    pub(super) definitions: Vec<Macro>,
    /// Whether some place makes it mean itself: `#undef`.
    undefined: bool,
}

impl Meanings {
    /// How many there are. The last one is none, if a place takes the definition back.
    fn count(&self) -> usize {
        self.definitions.len() + usize::from(self.undefined)
    }
}

/// The macros of all files by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Macros {
    pub(super) all: BTreeMap<String, Meanings>,
    /// The order in which a compiler reads definitions and uses.
    pub(super) order: Order,
    /// The work that all expansions together took.
    pub(super) spent: Cell<usize>,
}

impl Macros {
    /// Adds the definition of a directive `#define`, whose text after the word is given. Returns its name and its place among the definitions of that name.
    pub(super) fn define(&mut self, text: &str) -> Option<(String, usize)> {
        let (all, _) = tokens(text);
        let name = all.first().filter(|t| t.is_word())?;
        let called = all.get(1).is_some_and(|t| t.is("(") && t.glued);
        let close = if called { all.iter().position(|t| t.is(")"))? } else { 0 };
        let mut parameters: Vec<String> =
            all[1..close.max(1)].iter().filter(|t| t.is_word()).map(|t| t.text.clone()).collect();
        let variadic = called && all[..close].windows(3).any(|w| w.iter().all(|t| t.is(".")));
        // Named variadic parameters (`args...`) keep their name.
        let named = variadic && close >= 4 && all[close - 4].is_word();
        if variadic && !named {
            parameters.push("__VA_ARGS__".into());
        }
        let body = all[close + 1..].to_vec();
        let definition = Macro { parameters: called.then_some(parameters), variadic, body };
        let known = &mut self.all.entry(name.text.clone()).or_default().definitions;
        let index = known.iter().position(|other| *other == definition).unwrap_or(known.len());
        if index == known.len() {
            known.push(definition);
        }
        Some((name.text.clone(), index))
    }

    /// Notes that a place takes the definition of a name back, or may give it another one.
    pub(super) fn undefine(&mut self, name: &str) {
        if let Some(meanings) = self.all.get_mut(name) {
            meanings.undefined = true;
        }
    }

    /// Removes the definitions of a name.
    pub(super) fn forget(&mut self, name: &str) {
        self.all.remove(name);
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// Whether the brackets of every body match, so that those of a source can be counted without expanding it.
    pub(super) fn balance(&self) -> bool {
        let count = |m: &Macro, c: &str| m.body.iter().filter(|t| t.is(c)).count();
        let even = |m: &Macro| [("{", "}"), ("(", ")"), ("[", "]")].iter().all(|(a, b)| count(m, a) == count(m, b));
        self.all.values().flat_map(|m| &m.definitions).all(even)
    }

    /// Whether a macro takes arguments, in any of its definitions.
    pub(super) fn takes_arguments(&self, name: &str) -> bool {
        self.all.get(name).is_some_and(|m| m.definitions.iter().any(|m| m.parameters.is_some()))
    }

    /// The identifiers in all definitions of a name, parameters aside.
    pub(super) fn words(&self, name: &str) -> BTreeSet<String> {
        let bodies = self.all.get(name).into_iter().flat_map(|m| &m.definitions);
        bodies
            .flat_map(|m| {
                let own = |t: &&Token| !m.parameters.iter().flatten().any(|p| *p == t.text);
                m.body.iter().filter(|t| t.is_word()).filter(own)
            })
            .map(|t| t.text.clone())
            .collect()
    }

    /// Every name that a text reaches through macros, its own names included; none if these are too many.
    pub(super) fn reached(&self, text: &[Token]) -> Option<BTreeSet<String>> {
        let mut found: BTreeSet<String> = BTreeSet::new();
        let mut open: Vec<String> = text.iter().filter(|t| t.is_word()).map(|t| t.text.clone()).collect();
        let mut count = 0;
        while let Some(name) = open.pop() {
            if self.contains(&name) && !found.contains(&name) {
                count += 1;
                open.extend(self.words(&name));
            }
            found.insert(name);
            if count > MOST_REACHED {
                return None;
            }
        }
        Some(found)
    }

    /// What every name that a text reaches means at these positions: one choice for each combination of meanings; none if these are too many to look at.
    pub(super) fn choices(&self, text: &[Token], at: &Positions) -> Option<Vec<Choice>> {
        let mut all = vec![Choice::default()];
        for name in self.reached(text)?.into_iter().filter(|name| self.contains(name)) {
            let meanings = match self.at(&name, at) {
                Some(0) => continue,
                Some(one) => vec![one],
                None => (0..self.all[&name].count()).collect(),
            };
            if all.len() * meanings.len() > MOST_CHOICES {
                return None;
            }
            let with = |choice: &Choice| {
                let with = |meaning: &usize| choice.with(&name, *meaning);
                meanings.iter().map(with).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        Some(all)
    }

    /// What a name means at these positions, as the index of a definition, or the number of definitions if it means itself; none if that depends on conditions.
    pub(super) fn at(&self, name: &str, at: &Positions) -> Option<usize> {
        let meanings = self.all.get(name)?;
        self.order.meaning(name, at, meanings.definitions.len())
    }

    /// The definition of a name at these positions.
    pub(super) fn definition_at(&self, name: &str, at: &Positions) -> Option<&Macro> {
        self.all.get(name)?.definitions.get(self.at(name, at)?)
    }

    /// The tokens with every macro expanded, by the first definition of each. All of a macro's tokens have the line of its use.
    pub(super) fn expand(&self, text: &[Token]) -> Vec<Token> {
        self.expanded(text, &Choice::default()).tokens
    }
}

/// Tokens as text on one line.
pub(super) fn spelled(text: &[Token]) -> String {
    let mut out = String::new();
    for token in text.iter().filter(|token| token.kind != Kind::Directive) {
        if !token.glued && !out.is_empty() {
            out.push(' ');
        }
        out += &token.text;
    }
    out
}

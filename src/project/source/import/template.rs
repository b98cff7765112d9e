//! Arguments of a kernel's template: what its launch writes for each parameter, as the entry of a manifest spells it after the last line of the source. Deduces
//! no argument from those of the call.

use std::collections::BTreeMap;

use super::super::Sources;
use super::super::declarations::closing_angle;
use super::super::macros::spelled;
use super::super::part::is_keyword;
use super::super::split::Group;
use super::super::tokens::{Kind, Token};
use super::expression::{Expression, Scope, expression, shown, split};
use super::host::Launched;
use super::kernel::namespaces;
use super::parameter::{dtype, followed};

/// What a parameter of a template stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    Type,
    /// A value of a type of integers that every source knows.
    Integer,
    Truth,
    /// Another value: of an enumeration, a pointer, `auto`.
    Value,
    Template,
}

/// A parameter of a template.
pub(super) struct Generic {
    /// Empty if it has none.
    name: String,
    stands: Stands,
    pack: bool,
    default: Option<Vec<Token>>,
}

/// The parameters of the template that a header declares.
pub(super) fn generics(header: &[Token], aliases: &BTreeMap<String, Vec<String>>) -> Vec<Generic> {
    let Some(at) = header.iter().position(|t| t.is("template")) else { return vec![] };
    let Some(close) = closing_angle(header, at + 1) else { return vec![] };
    split(&header[at + 2..close]).into_iter().map(|text| generic(text, aliases)).collect()
}

fn generic(text: &[Token], aliases: &BTreeMap<String, Vec<String>>) -> Generic {
    // The `=` of a default is outside the parameters of a template that is a parameter.
    let nested = text.first().is_some_and(|t| t.is("template"));
    let inner = Some(1).filter(|_| nested).and_then(|open| closing_angle(text, open)).unwrap_or(0);
    let equals = (inner..text.len()).find(|at| text[*at].is("="));
    let declared = &text[..equals.unwrap_or(text.len())];
    let is_type = declared.first().is_some_and(|t| t.is("typename") || t.is("class"));
    // The name of a pointer to a function stands in parentheses: `float (*F)(float)`.
    let pointed = declared.windows(2).position(|w| w[0].is("(") && (w[1].is("*") || w[1].is("&")));
    let named = match pointed {
        Some(open) => (open + 2 < declared.len() && declared[open + 2].is_word()).then_some(open + 2),
        None => declared.iter().rposition(|t| t.kind == Kind::Word),
    };
    let named = named.filter(|at| !is_keyword(&declared[*at].text) && (*at > 0 || pointed.is_some()));
    let kept = |t: &&Token| !["const", "volatile", "."].iter().any(|word| t.is(word));
    let of_value: Vec<Token> = declared[..named.unwrap_or(declared.len())].iter().filter(kept).cloned().collect();
    let spelling = spelled(&of_value);
    let scalar = dtype(followed(&spelling, aliases).0).filter(|(_, lanes)| *lanes == 1).map(|(dtype, _)| dtype);
    // `float *` is no float.
    let scalar = scalar.filter(|_| pointed.is_none());
    Generic {
        name: named.map(|at| declared[at].text.clone()).unwrap_or_default(),
        stands: match () {
            () if is_type => Stands::Type,
            () if nested => Stands::Template,
            () if scalar == Some("bool") => Stands::Truth,
            () if scalar.is_some_and(|dtype| dtype.starts_with(['i', 'u'])) => Stands::Integer,
            () => Stands::Value,
        },
        pack: declared.windows(3).any(|w| w.iter().all(|t| t.is("."))),
        default: equals.map(|at| text[at + 1..].to_vec()),
    }
}

/// The arguments of a template.
#[derive(Debug, Default)]
pub(super) struct Instance {
    /// As the entry spells them.
    pub(super) arguments: Vec<String>,
    /// The types that parameters stand for.
    pub(super) types: BTreeMap<String, String>,
    /// The numbers that parameters have.
    pub(super) values: BTreeMap<String, i64>,
    /// What is to be checked of them.
    pub(super) check: Option<String>,
}

/// Where a template's arguments mean something: in the source that defines the kernel, with the launch or in the namespaces of the kernel.
struct Place<'a> {
    sources: &'a Sources<'a>,
    spaces: &'a [String],
    scope: &'a Scope,
    aliases: &'a BTreeMap<String, Vec<String>>,
}

/// The arguments that a launch writes for a template in `spaces`, its defaults, and placeholders for what neither says.
pub(super) fn instance(
    sources: &Sources<'_>,
    generics: &[Generic],
    launched: Option<&Launched>,
    spaces: &[String],
    aliases: &BTreeMap<String, Vec<String>>,
) -> Instance {
    let mut out = Instance::default();
    let written = launched.and_then(|l| l.launch.template.as_deref()).unwrap_or_default();
    let at_launch = launched.map(|l| Place { sources, spaces: &l.spaces, scope: &l.launch.scope, aliases });
    for (at, generic) in generics.iter().enumerate() {
        let of_pack = written.get(at..).filter(|_| generic.pack).unwrap_or_default();
        let given: Vec<&Vec<Token>> =
            if generic.pack { of_pack.iter().collect() } else { written.get(at).into_iter().collect() };
        if given.is_empty() && generic.pack && launched.is_some_and(|l| l.launch.template.is_some()) {
            // It is empty.
            break;
        }
        let asked = |says: String| {
            let name =
                if generic.name.is_empty() { format!("argument {}", at + 1) } else { format!("`{}`", generic.name) };
            says.replace("NAME", &format!("{name} of the template"))
        };
        let stated = |text: &[Token], place: &Place<'_>| argument(text, generic.stands, place);
        if given.is_empty() {
            let default = generic.default.as_deref();
            // A default may use the parameters before it.
            let scope = Scope {
                hidden: generics.iter().map(|g| g.name.clone()).collect(),
                values: out.values.iter().map(|(name, value)| (name.clone(), Expression::Int(*value))).collect(),
                ..Scope::default()
            };
            let at_kernel = Place { sources, spaces, scope: &scope, aliases };
            if let Some((found, doubts)) = default.and_then(|text| stated(text, &at_kernel)) {
                out.add(generic, found);
                if !doubts.is_empty() {
                    out.ask(asked(format!("NAME is a guess: {}", doubts.join(", "))));
                }
                continue;
            }
            if default.is_some() {
                // C++ completes what is not written here.
                break;
            }
            let guess = generic.placeholder();
            out.ask(asked(match launched {
                None => format!("no launch was found: state NAME; {guess} is a placeholder"),
                Some(_) => format!("the launch does not write NAME: state it; {guess} is a placeholder"),
            }));
            out.add(generic, Argument { entry: guess.clone(), meaning: guess });
            continue;
        }
        for text in given {
            match at_launch.as_ref().and_then(|place| stated(text, place)) {
                Some((found, doubts)) => {
                    out.add(generic, found);
                    if !doubts.is_empty() {
                        out.ask(asked(format!("NAME is a guess: {}", doubts.join(", "))));
                    }
                }
                None => {
                    let (guess, text) = (generic.placeholder(), shown(text));
                    out.ask(asked(format!("NAME is `{text}` at its launch: state it; {guess} is a placeholder")));
                    out.add(generic, Argument { entry: guess.clone(), meaning: guess });
                }
            }
        }
    }
    out
}

impl Generic {
    /// What stands for an argument until a person states it. Of what is neither a type nor a number, nothing is invented: its name does not compile.
    fn placeholder(&self) -> String {
        match self.stands {
            Stands::Type => "float".into(),
            Stands::Integer => "256".into(),
            Stands::Truth => "true".into(),
            Stands::Value | Stands::Template if self.name.is_empty() => "UNKNOWN".into(),
            Stands::Value | Stands::Template => self.name.clone(),
        }
    }
}

impl Instance {
    /// Adds what is to be checked of an argument.
    fn ask(&mut self, what: String) {
        self.check = Some(self.check.take().map_or(what.clone(), |other| format!("{other}; {what}")));
    }

    fn add(&mut self, generic: &Generic, argument: Argument) {
        if !generic.pack && !generic.name.is_empty() {
            if generic.stands == Stands::Type {
                self.types.insert(generic.name.clone(), argument.meaning);
            } else if let Ok(value) = argument.meaning.parse() {
                self.values.insert(generic.name.clone(), value);
            }
        }
        self.arguments.push(argument.entry);
    }
}

/// An argument.
struct Argument {
    /// As the entry spells it.
    entry: String,
    /// The same, without namespaces.
    meaning: String,
}

/// An argument, and the names in it that have several values. None if it means nothing outside the function that launches.
fn argument(text: &[Token], stands: Stands, place: &Place<'_>) -> Option<(Argument, Vec<String>)> {
    let value = expression(text, place.scope).resolved(place.scope);
    let doubts = value.doubts();
    let number = match value.first().resolved(place.scope) {
        Expression::Int(value) => Some(value.to_string()),
        _ => None,
    };
    let written = spelled(text);
    let qualified = || place.qualified(text);
    let same = |text: String| Argument { entry: text.clone(), meaning: text };
    let found = match stands {
        Stands::Integer | Stands::Truth => number.or_else(qualified).map(same),
        Stands::Value => qualified().or(number).map(same),
        Stands::Template => qualified().map(same),
        Stands::Type => match &value {
            // An alias of the launching function.
            Expression::Name(name) if *name != written && dtype(name).is_some() => Some(same(name.clone())),
            _ => match qualified() {
                Some(entry) => Some(Argument { entry, meaning: written }),
                None => dtype(followed(&written, place.aliases).0).map(|_| same(written)),
            },
        },
    };
    found.map(|found| (found, doubts))
}

impl Place<'_> {
    /// A text with its names as they are written outside all namespaces. None if it has a name that only the launching function knows, or that is not known.
    fn qualified(&self, text: &[Token]) -> Option<String> {
        let mut out: Vec<Token> = vec![];
        let mut at = 0;
        while at < text.len() {
            let token = &text[at];
            let next = text.get(at + 1);
            let of_scope = next.is_some_and(|t| t.is("::"));
            let text_of_string = token.kind == Kind::Literal && !token.text.starts_with('\'');
            if text_of_string || ["{", ";", "[", ".", "->"].iter().any(|s| token.is(s)) {
                return None;
            }
            if !token.is_word() {
                out.push(token.clone());
                at += 1;
                continue;
            }
            let known = self.known(token, of_scope)?;
            out.push(Token { text: known, ..token.clone() });
            at += 1;
            // What follows `::` is a member of what precedes it.
            while text.get(at).is_some_and(|t| t.is("::")) && text.get(at + 1).is_some_and(Token::is_word) {
                out.extend_from_slice(&text[at..at + 2]);
                at += 2;
            }
        }
        (!out.is_empty()).then(|| spelled(&out))
    }

    /// A name as it is written outside all namespaces.
    fn known(&self, token: &Token, of_scope: bool) -> Option<String> {
        let name = &token.text;
        if self.scope.hidden.contains(name) {
            let value = self.scope.values.get(name).filter(|_| !of_scope)?;
            return match value.resolved(self.scope) {
                Expression::Int(value) => Some(value.to_string()),
                _ => None,
            };
        }
        let space = |group: &Group| namespaces(&self.sources.files[group.file].tokens[..group.range.from]);
        let declares = |group: &&Group| group.parts.iter().any(|part| part.names.contains(name));
        let found: Vec<Vec<String>> = self.sources.groups.iter().filter(declares).map(space).collect();
        let named = |spaces: &[String]| [spaces, std::slice::from_ref(name)].concat();
        if let Some(first) = found.first() {
            let visible = found.iter().filter(|spaces| self.spaces.starts_with(spaces)).max_by_key(|s| s.len());
            // Elsewhere, `using namespace` makes it known.
            let only = || found.iter().all(|other| other == first).then_some(first);
            return visible.or_else(only).map(|spaces| named(spaces).join("::"));
        }
        if of_scope && self.sources.namespaces.contains(name) {
            let all: Vec<Vec<String>> = match self.spaces {
                [] => vec![],
                _ => self.sources.groups.iter().map(space).collect(),
            };
            let within = |from: &usize| all.iter().any(|path| path.starts_with(&named(&self.spaces[..*from])));
            let from = (0..=self.spaces.len()).rev().find(within).unwrap_or(0);
            return Some(named(&self.spaces[..from]).join("::"));
        }
        let word = is_keyword(name) || name == "static_cast";
        (of_scope || word || dtype(name).is_some()).then(|| name.clone())
    }
}

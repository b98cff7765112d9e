//! What names stand for at a place of a function: variables by the block that declares them, in order of text. Knows declarations, assignments and blocks; does
//! not follow branches, so a variable that changes has no value, and one that is assigned in branches has one of several.

use std::collections::BTreeMap;

use super::super::declarations::{closing, closing_angle};
use super::super::part::is_keyword;
use super::super::tokens::{Kind, Token};
use super::expression::{Expression, Scope, expression, split};

/// A variable of a function.
#[derive(Debug, Clone, Default)]
struct Variable {
    name: String,
    /// How many blocks were open where it is declared.
    depth: usize,
    /// What it may be.
    values: Vec<Value>,
    /// Whether it changes in a way that is not followed.
    changed: bool,
    /// Whether a caller gives its value.
    given: bool,
}

/// A value of a variable.
#[derive(Debug, Clone)]
struct Value {
    /// One expression, or the extents of a `dim3`.
    parts: Vec<Expression>,
    extents: bool,
    /// The variables that its names are, where it was written.
    meant: BTreeMap<String, usize>,
}

impl Value {
    fn is(&self, other: &Value) -> bool {
        self.parts == other.parts && self.extents == other.extents && self.meant == other.meant
    }
}

/// A block, a loop or a list of parameters.
struct Block {
    /// The position at which it ends.
    end: usize,
    names: BTreeMap<String, usize>,
    /// Names of `dim3` outside it.
    outer: BTreeMap<String, Vec<Expression>>,
}

struct Walk<'a> {
    text: &'a [Token],
    /// The position that is asked about.
    until: usize,
    /// Its extents are those of the place that was reached.
    scope: Scope,
    variables: Vec<Variable>,
    blocks: Vec<Block>,
}

/// What names stand for at a position of a function, given with its macros expanded; `global` is what they stand for outside it.
pub(super) fn scope(text: &[Token], until: usize, global: &Scope) -> Scope {
    let outside = Block { end: usize::MAX, names: BTreeMap::new(), outer: BTreeMap::new() };
    let mut walk = Walk { text, until, scope: global.clone(), variables: vec![], blocks: vec![outside] };
    let mut visible = BTreeMap::new();
    let limit = limit(text, until);
    for at in 0..limit {
        walk.close(at);
        if at == until {
            visible = walk.visible();
        }
        walk.token(at);
    }
    if limit <= until {
        walk.close(until);
        visible = walk.visible();
    }
    let mut out = global.clone();
    for (name, index) in &visible {
        // A variable hides what is outside, also if its value is not known.
        out.values.remove(name);
        out.extents.remove(name);
        walk.state(name, *index, &visible, &mut out);
    }
    out.hidden.extend(visible.into_keys());
    out.hidden.extend(of_templates(&text[..until]));
    if let Some((name, value)) = case(&text[..until]) {
        out.values.insert(name, value);
    }
    out
}

/// The words in the parameters of templates before the end of a text.
fn of_templates(text: &[Token]) -> Vec<String> {
    let lists = (0..text.len()).filter(|at| text[*at].is("template"));
    let lists = lists.filter_map(|at| Some(&text[at + 1..closing_angle(text, at + 1)?]));
    let words = lists.flatten().filter(|t| t.is_word() && !is_keyword(&t.text));
    words.map(|t| t.text.clone()).collect()
}

/// Where reading ends for a position: at the end of the loops that it is in, which repeat what follows it.
fn limit(text: &[Token], until: usize) -> usize {
    let ends = (0..until).filter(|at| ["for", "while", "do"].iter().any(|word| text[*at].is(word)));
    ends.map(|at| statement(text, at)).filter(|end| *end > until).max().unwrap_or(until)
}

/// The position after the statement that a loop's word begins.
pub(super) fn statement(text: &[Token], at: usize) -> usize {
    let mut body = at + 1;
    if text.get(body).is_some_and(|t| t.is("(")) {
        body = closing(text, body).map_or(text.len(), |close| close + 1);
    }
    if text.get(body).is_some_and(|t| t.is("{")) {
        return closing(text, body).map_or(text.len(), |close| close + 1);
    }
    end(text, body) + 1
}

impl Walk<'_> {
    /// The variables that names are here.
    fn visible(&self) -> BTreeMap<String, usize> {
        self.blocks.iter().flat_map(|block| block.names.clone()).collect()
    }

    fn is(&self, at: usize, text: &str) -> bool {
        self.text.get(at).is_some_and(|t| t.is(text))
    }

    fn open(&mut self, end: usize) {
        self.blocks.push(Block { end, names: BTreeMap::new(), outer: self.scope.extents.clone() });
    }

    /// Closes the blocks that end before a position.
    fn close(&mut self, at: usize) {
        while self.blocks.len() > 1 && self.blocks.last().is_some_and(|block| block.end <= at) {
            if let Some(block) = self.blocks.pop() {
                self.scope.extents = block.outer;
            }
        }
    }

    fn token(&mut self, at: usize) {
        let token = &self.text[at];
        if token.is("{") {
            let end = closing(self.text, at).unwrap_or(self.text.len());
            return self.open(end);
        }
        if token.is("for") {
            return self.open(statement(self.text, at));
        }
        if !token.is_word() || at == 0 || is_keyword(&token.text) || self.is(at - 1, ".") || self.is(at - 1, "->") {
            return;
        }
        let name = token.text.clone();
        let assigned = self.is(at + 1, "=") && !self.is(at + 2, "=");
        let member = self.is(at + 1, ".") && self.text.get(at + 2).is_some_and(Token::is_word);
        if member && self.is(at + 3, "=") && !self.is(at + 4, "=") {
            // `grid.x = n;`
            return self.change(&name);
        }
        if self.text[at - 1].is("dim3") && !assigned {
            return self.extents(at);
        }
        if self.is_changed(at) {
            return self.change(&name);
        }
        if self.is_declared(at, assigned) {
            self.declare(&name);
            if assigned {
                self.assign(at, false);
            } else if !self.is(at + 1, ";")
                && let Some(variable) = self.variables.last_mut()
            {
                variable.given = true;
            }
        } else if assigned {
            let sure = [";", "{", "}"].iter().any(|s| self.is(at - 1, s));
            self.assign(at, !sure);
        }
    }

    /// Whether a name is declared here: `int n`, `int m = 1, n`, a parameter.
    fn is_declared(&self, at: usize, assigned: bool) -> bool {
        const NO_TYPES: [&str; 10] =
            ["return", "case", "else", "goto", "new", "delete", "throw", "sizeof", "typename", "const"];
        let before = &self.text[at - 1];
        let typed = before.is_word() && !NO_TYPES.iter().any(|word| before.is(word))
            || (before.is("*") || before.is("&")) && at > 1 && is_keyword(&self.text[at - 2].text);
        let constant = before.is("const") || before.is("constexpr");
        let ended = [";", ",", ")", "{"].iter().any(|s| self.is(at + 1, s));
        assigned && (typed || constant || before.is(",") || before.is(">")) || ended && typed
    }

    fn is_changed(&self, at: usize) -> bool {
        let glued = |at: usize, text: &str| self.is(at, text) && self.text[at].glued;
        let compound =
            ["+", "-", "*", "/", "%", "|", "&", "^"].iter().any(|s| self.is(at + 1, s)) && glued(at + 2, "=");
        let shifted = ["<", ">"].iter().any(|s| self.is(at + 1, s) && glued(at + 2, s)) && glued(at + 3, "=");
        let counted = ["+", "-"].iter().any(|s| self.is(at + 1, s) && glued(at + 2, s));
        let before =
            at > 1 && ["+", "-"].iter().any(|s| self.is(at - 1, s) && self.is(at - 2, s) && self.text[at - 1].glued);
        // Its address is given away: `f(&n)`.
        let given = at > 1
            && self.is(at - 1, "&")
            && (self.is(at - 2, "(") || self.is(at - 2, ","))
            && enclosing(self.text, at).is_some_and(|open| self.is(open, "(") && self.text[open - 1].is_word());
        compound || shifted || counted || before || given
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.blocks.iter().rev().find_map(|block| block.names.get(name)).copied()
    }

    fn declare(&mut self, name: &str) {
        let depth = self.blocks.len();
        self.variables.push(Variable { name: name.to_string(), depth, ..Variable::default() });
        self.scope.extents.remove(name);
        let index = self.variables.len() - 1;
        if let Some(block) = self.blocks.last_mut() {
            block.names.insert(name.to_string(), index);
        }
    }

    fn change(&mut self, name: &str) {
        self.scope.extents.remove(name);
        if let Some(index) = self.index(name) {
            self.variables[index].changed = true;
        }
    }

    /// The value after `=`. An unsure one is the body of a condition without braces.
    fn assign(&mut self, at: usize, unsure: bool) {
        let value = &self.text[at + 2..end(self.text, at + 2)];
        let known = self.index(&self.text[at].text);
        let was_extents = known.is_some_and(|index| self.variables[index].values.iter().any(|v| v.extents));
        let typed = self.text[at - 1].is("dim3") || value.first().is_some_and(|t| t.is("dim3"));
        if !typed && !was_extents {
            return self.set(at, &[value], false, unsure);
        }
        let inside = value.iter().position(|t| t.is("(") || t.is("{"));
        let parts = match inside.and_then(|open| Some((open, closing(value, open)?))) {
            Some((open, close)) if value[0].is("dim3") || open == 0 && value[0].is("{") => {
                split(&value[open + 1..close])
            }
            _ => vec![value],
        };
        self.set(at, &parts, true, unsure);
    }

    /// The declarators after `dim3`.
    fn extents(&mut self, mut at: usize) {
        while self.text.get(at).is_some_and(Token::is_word) {
            let name = self.text[at].text.clone();
            self.declare(&name);
            let Some(open) = Some(at + 1).filter(|at| self.is(*at, "(") || self.is(*at, "{")) else { return };
            let Some(close) = closing(self.text, open) else { return };
            let text = self.text;
            self.set(at, &split(&text[open + 1..close]), true, false);
            if !self.is(close + 1, ",") {
                return;
            }
            at = close + 2;
        }
    }

    fn set(&mut self, at: usize, parts: &[&[Token]], extents: bool, unsure: bool) {
        let name = self.text[at].text.clone();
        let parts: Vec<Expression> = parts.iter().map(|part| expression(part, &self.scope)).collect();
        let names = parts.iter().flat_map(|e| e.names().unwrap_or_default());
        let meant = names.filter_map(|name| Some((name.clone(), self.index(&name)?))).collect();
        let Some(index) = self.index(&name) else { return };
        let value = Value { parts, extents, meant };
        let depth = self.blocks.len();
        // What follows a launch in a loop precedes it the next time.
        let unsure = unsure || at > self.until;
        let variable = &mut self.variables[index];
        if variable.given || value.meant.get(&name) == Some(&index) {
            variable.changed = true;
        }
        // An assignment in the block of the declaration replaces what was before; one in an inner block may not happen.
        if !unsure && depth == variable.depth {
            variable.values.clear();
        }
        if !variable.values.iter().any(|v| v.is(&value)) {
            variable.values.push(value);
        }
        match &variable.values[..] {
            [one] if one.extents && !variable.changed => drop(self.scope.extents.insert(name, one.parts.clone())),
            _ => drop(self.scope.extents.remove(&name)),
        }
    }

    /// Adds what a variable stands for.
    fn state(&self, name: &str, index: usize, visible: &BTreeMap<String, usize>, out: &mut Scope) {
        let variable = &self.variables[index];
        let Some(first) = variable.values.first().filter(|_| !variable.changed) else { return };
        let of = |value: &Value, part: usize| {
            let e = value.parts.get(part).cloned().unwrap_or(Expression::Int(1));
            self.inside(&e, value, visible, 6)
        };
        let either = |part: usize| {
            let mut all: Vec<Expression> = vec![];
            for e in variable.values.iter().map(|value| of(value, part)) {
                if !all.contains(&e) {
                    all.push(e);
                }
            }
            match &all[..] {
                [one] => one.clone(),
                _ => Expression::Either(name.to_string(), all),
            }
        };
        if first.extents {
            let count = variable.values.iter().map(|v| v.parts.len()).max().unwrap_or(1);
            out.extents.insert(name.to_string(), (0..count).map(either).collect());
            return;
        }
        match either(0) {
            Expression::Opaque(_) => {}
            Expression::Name(own) if own == name => {}
            found => drop(out.values.insert(name.to_string(), found)),
        }
    }

    /// A value with the names that are other variables at the place of the launch replaced by what they are.
    fn inside(&self, e: &Expression, value: &Value, visible: &BTreeMap<String, usize>, depth: usize) -> Expression {
        let other = |e: &Expression| {
            let Expression::Name(name) = e else { return None };
            let index = value.meant.get(name)?;
            if visible.get(name) == Some(index) {
                return None;
            }
            let variable = &self.variables[*index];
            match &variable.values[..] {
                [one] if !variable.changed && depth > 0 && one.parts.len() == 1 => {
                    Some(self.inside(&one.parts[0], one, visible, depth - 1))
                }
                _ => Some(Expression::Opaque(variable.name.clone())),
            }
        };
        e.renamed(&other)
    }
}

/// The position of the bracket that is open at a position.
fn enclosing(text: &[Token], at: usize) -> Option<usize> {
    let mut depth = 0;
    (1..at).rev().find(|i| match text[*i].text.as_str() {
        _ if text[*i].kind != Kind::Punctuation => false,
        ")" | "]" | "}" => {
            depth += 1;
            false
        }
        "(" | "[" | "{" if depth == 0 => true,
        "(" | "[" | "{" => {
            depth -= 1;
            false
        }
        _ => false,
    })
}

/// The variable of the innermost `switch` before the end of a text, with the number of the last `case`.
fn case(text: &[Token]) -> Option<(String, Expression)> {
    let at = text.iter().rposition(|t| t.is("case"))?;
    let switch = text[..at].iter().rposition(|t| t.is("switch"))?;
    let close = closing(text, switch + 1)?;
    let body = close + 1;
    // The switch must still be open.
    if !text.get(body).is_some_and(|t| t.is("{")) || closing(text, body).is_some() {
        return None;
    }
    let none = Scope::default();
    let colon = at + text[at..].iter().position(|t| t.is(":"))?;
    match (expression(&text[switch + 2..close], &none), expression(&text[at + 1..colon], &none)) {
        (Expression::Name(name), value @ Expression::Int(_)) => Some((name, value)),
        _ => None,
    }
}

/// Where an initializer that begins at a position ends.
pub(super) fn end(text: &[Token], from: usize) -> usize {
    let mut at = from;
    while at < text.len() {
        match text[at].text.as_str() {
            _ if text[at].kind != Kind::Punctuation => {}
            "(" | "[" | "{" => at = closing(text, at).unwrap_or(text.len()),
            ";" | "," | ")" | "}" => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

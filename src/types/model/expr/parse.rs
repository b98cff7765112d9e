//! Builds a [`Tree`] from words. Errors have the place in the text and what was expected there.

use std::ops::Range;

use super::fault::{SyntaxError, SyntaxFault};
use super::functions::{self, Function};
use super::lex::{Token, Word, tokens};
use super::tree::{Arithmetic, Comparison, Logic, Node, NodeKind, Tree};

/// Deepest nesting: far deeper than people write, and far less than the stack of a thread holds.
pub const DEEPEST: usize = 64;

/// Most words and signs. The limit also bounds nesting, because a chain of operators nests to the left.
pub const LONGEST: usize = 1000;

const COMPARISONS: [(&str, Comparison); 6] = [
    ("<", Comparison::Less),
    ("<=", Comparison::LessEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterEqual),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
];
const SUMS: [(&str, Arithmetic); 2] = [("+", Arithmetic::Add), ("-", Arithmetic::Subtract)];
const PRODUCTS: [(&str, Arithmetic); 4] = [
    ("*", Arithmetic::Multiply),
    ("/", Arithmetic::Divide),
    ("//", Arithmetic::FloorDivide),
    ("%", Arithmetic::Remainder),
];

/// Parses an expression. Evaluators check whether its names exist and whether its functions make sense in its place.
pub fn parse(text: &str) -> Result<Tree, SyntaxError> {
    let tokens = tokens(text)?;
    // The end token does not count.
    if tokens.len() > LONGEST + 1 {
        return Err(SyntaxError::new(SyntaxFault::TooLong { found: tokens.len() - 1, most: LONGEST }, 0..text.len()));
    }
    let mut parser = Parser { text, tokens, next: 0, depth: 0, names: vec![] };
    let root = parser.expression()?;
    match parser.word() {
        Word::End => Ok(Tree { root, names: parser.names }),
        Word::Sign(")") => Err(parser.fault(SyntaxFault::Unopened)),
        Word::Sign("else") => Err(parser.fault(SyntaxFault::ElseAlone)),
        _ => Err(parser.expected("an operator or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
    depth: usize,
    names: Vec<String>,
}

type Parsed = Result<Node, SyntaxError>;

impl<'a> Parser<'a> {
    /// The current word. The last word is the end, which is never passed.
    fn word(&self) -> Word<'a> {
        self.tokens[self.next].word
    }

    fn at(&self) -> Range<usize> {
        self.tokens[self.next].at.clone()
    }

    fn accept(&mut self, sign: &str) -> bool {
        let there = self.sign() == Some(sign);
        self.next += usize::from(there);
        there
    }

    fn sign(&self) -> Option<&'static str> {
        match self.word() {
            Word::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    /// The current operator with its place, if it is in `table`.
    fn operator<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<(T, Range<usize>)> {
        let sign = self.sign()?;
        let found = table.iter().find(|(s, _)| *s == sign)?.1;
        let at = self.at();
        self.next += 1;
        Some((found, at))
    }

    fn fault(&self, fault: SyntaxFault) -> SyntaxError {
        SyntaxError::new(fault, self.at())
    }

    fn expected(&self, expected: &'static str) -> SyntaxError {
        let found = match self.word() {
            Word::End => "the end".into(),
            _ => format!("`{}`", &self.text[self.at()]),
        };
        self.fault(SyntaxFault::Expected { expected, found })
    }

    fn deeper(&mut self, part: fn(&mut Self) -> Parsed) -> Parsed {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.fault(SyntaxFault::TooDeep(DEEPEST)));
        }
        let node = part(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn expression(&mut self) -> Parsed {
        let yes = self.or()?;
        if !self.accept("if") {
            return Ok(yes);
        }
        let condition = self.or()?;
        if !self.accept("else") {
            return Err(match self.word() {
                Word::End | Word::Sign(")" | ",") => {
                    SyntaxError::new(SyntaxFault::IfAlone, yes.at.start..condition.at.end)
                }
                _ => self.expected("an operator or `else`"),
            });
        }
        let no = self.deeper(Self::expression)?;
        let at = yes.at.start..no.at.end;
        Ok(Node { at, kind: NodeKind::If(Box::new([condition, yes, no])) })
    }

    fn or(&mut self) -> Parsed {
        self.logic(&[("or", Logic::Or)], Self::and)
    }

    fn and(&mut self) -> Parsed {
        self.logic(&[("and", Logic::And)], Self::not)
    }

    fn logic(&mut self, table: &[(&str, Logic)], part: fn(&mut Self) -> Parsed) -> Parsed {
        let mut left = part(self)?;
        while let Some((logic, _)) = self.operator(table) {
            let right = part(self)?;
            let at = left.at.start..right.at.end;
            left = Node { at, kind: NodeKind::Logic(logic, Box::new([left, right])) };
        }
        Ok(left)
    }

    fn not(&mut self) -> Parsed {
        let start = self.at().start;
        if !self.accept("not") {
            return self.comparison();
        }
        let inner = self.deeper(Self::not)?;
        Ok(Node { at: start..inner.at.end, kind: NodeKind::Not(Box::new(inner)) })
    }

    fn comparison(&mut self) -> Parsed {
        let first = self.sum()?;
        let mut rest = vec![];
        while let Some((comparison, _)) = self.operator(&COMPARISONS) {
            rest.push((comparison, self.sum()?));
        }
        match rest.last() {
            None => Ok(first),
            Some((_, last)) => {
                Ok(Node { at: first.at.start..last.at.end, kind: NodeKind::Compare(Box::new(first), rest) })
            }
        }
    }

    fn sum(&mut self) -> Parsed {
        self.arithmetic(&SUMS, Self::product)
    }

    fn product(&mut self) -> Parsed {
        self.arithmetic(&PRODUCTS, Self::unary)
    }

    fn arithmetic(&mut self, table: &[(&str, Arithmetic)], part: fn(&mut Self) -> Parsed) -> Parsed {
        let mut left = part(self)?;
        while let Some((operator, sign)) = self.operator(table) {
            let right = part(self)?;
            left = binary(operator, sign, left, right);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        let start = self.at().start;
        if self.accept("-") {
            let inner = self.deeper(Self::unary)?;
            return Ok(Node { at: start..inner.at.end, kind: NodeKind::Negate(Box::new(inner)) });
        }
        let base = self.atom()?;
        let Some((operator, sign)) = self.operator(&[("**", Arithmetic::Power)]) else { return Ok(base) };
        let exponent = self.deeper(Self::unary)?;
        Ok(binary(operator, sign, base, exponent))
    }

    fn atom(&mut self) -> Parsed {
        let at = self.at();
        let kind = match self.word() {
            Word::Int(int) => NodeKind::Int(int),
            Word::Float(float) => NodeKind::Float(float),
            Word::Str(text) => NodeKind::Str(text.into()),
            Word::Sign(truth @ ("true" | "false")) => NodeKind::Truth(truth == "true"),
            Word::Sign("(") => return self.group(),
            Word::Name(name) if self.tokens[self.next + 1].word == Word::Sign("(") => return self.call(name),
            Word::Name(name) => NodeKind::Name(self.position(name)),
            _ => return Err(self.expected("a number, a name, a function or `(`")),
        };
        self.next += 1;
        Ok(Node { at, kind })
    }

    fn position(&mut self, name: &str) -> usize {
        self.names.iter().position(|n| n == name).unwrap_or_else(|| {
            self.names.push(name.into());
            self.names.len() - 1
        })
    }

    fn group(&mut self) -> Parsed {
        let open = self.at();
        self.next += 1;
        let inner = self.deeper(Self::expression)?;
        let end = self.at().end;
        if self.accept(")") {
            return Ok(Node { at: open.start..end, kind: NodeKind::Group(Box::new(inner)) });
        }
        Err(match self.word() {
            Word::End => SyntaxError::new(SyntaxFault::Unclosed, open),
            Word::Sign("else") => self.fault(SyntaxFault::ElseAlone),
            _ => self.expected("an operator or `)`"),
        })
    }

    fn call(&mut self, name: &str) -> Parsed {
        let at = self.at();
        let function: &'static Function = functions::named(name)
            .ok_or_else(|| SyntaxError::new(SyntaxFault::UnknownFunction(name.into()), at.clone()))?;
        self.next += 2;
        let mut arguments = vec![];
        if self.sign() != Some(")") {
            arguments.push(self.deeper(Self::expression)?);
            while self.accept(",") {
                arguments.push(self.deeper(Self::expression)?);
            }
        }
        let end = self.at().end;
        if !self.accept(")") {
            return Err(self.expected("`,` or `)`"));
        }
        let found = arguments.len();
        if found < function.arity || found > function.arity && !function.open {
            let Function { name: function, arity, open, .. } = *function;
            return Err(SyntaxError::new(SyntaxFault::Arguments { function, arity, open, found }, at));
        }
        Ok(Node { at: at.start..end, kind: NodeKind::Call(function, arguments) })
    }
}

fn binary(operator: Arithmetic, sign: Range<usize>, left: Node, right: Node) -> Node {
    let at = left.at.start..right.at.end;
    Node { at, kind: NodeKind::Arithmetic(operator, sign, Box::new([left, right])) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree as text, with every part in parentheses.
    fn shape(text: &str) -> String {
        let tree = parse(text).unwrap();
        write(&tree.root, text)
    }

    fn write(node: &Node, text: &str) -> String {
        let parts: Vec<String> = node.parts().into_iter().map(|part| write(part, text)).collect();
        match &node.kind {
            NodeKind::Group(_) => parts[0].clone(),
            NodeKind::Negate(_) => format!("(-{})", parts[0]),
            NodeKind::Not(_) => format!("(not {})", parts[0]),
            NodeKind::Arithmetic(_, sign, _) => format!("({}{}{})", parts[0], &text[sign.clone()], parts[1]),
            NodeKind::Logic(logic, _) => format!("({logic:?} {})", parts.join(" ")),
            NodeKind::Compare(..) => format!("(compare {})", parts.join(" ")),
            NodeKind::If(_) => format!("(if {})", parts.join(" ")),
            NodeKind::Call(function, _) => format!("{}({})", function.name, parts.join(", ")),
            _ => text[node.at.clone()].into(),
        }
    }

    #[test]
    fn operators_take_what_their_precedence_gives_them() {
        for (text, expected) in [
            ("a * b / c + d", "(((a*b)/c)+d)"),
            ("a + b / c / d", "(a+((b/c)/d))"),
            ("-a / -b ** 2 * c", "(((-a)/(-(b**2)))*c)"),
            ("2 ** 3 ** 2", "(2**(3**2))"),
            ("2 ** -1", "(2**(-1))"),
            ("(a - b) % max(c, d // e)", "((a-b)%max(c, (d//e)))"),
            ("a / b if c == d % 2 else 1", "(if (compare c (d%2)) (a/b) 1)"),
            ("a or b and not c < d <= e", "(Or a (And b (not (compare c d e))))"),
            ("1 if a else 2 if b else 3", "(if a 1 (if b 2 3))"),
            ("- - a", "(-(-a))"),
        ] {
            assert_eq!(shape(text), expected, "{text}");
        }
    }

    #[test]
    fn names_are_listed_once_in_the_order_of_their_use() {
        assert_eq!(parse("b + a * b").unwrap().names, ["b", "a"]);
    }
}

//! From text to [`Expr`]. Errors name the column and what was expected there.

use super::function::FUNCTIONS;
use super::{Expr, Operator};
use crate::reference::error::{ExpressionError, ExpressionFault};

/// Deepest nesting: far beyond what people write, far below what a thread's stack holds.
const DEEPEST: usize = 64;

/// Most tokens: operators in a row nest too, to the left.
const LONGEST: usize = 1000;

/// Parses an expression. Gives the names it reads in order of first use; [`Expr::Name`] counts in that list.
pub(in crate::reference) fn parse(text: &str) -> Result<(Expr, Vec<String>), ExpressionError> {
    let tokens = tokens(text)?;
    if tokens.len() > LONGEST {
        return Err(ExpressionError::TooLong { found: tokens.len(), most: LONGEST });
    }
    let mut parser = Parser { text, tokens, next: 0, names: Vec::new() };
    let expr = parser.comparison(0)?;
    match parser.peek() {
        Token::End => Ok((expr, parser.names)),
        _ => Err(parser.expected("an operator or the end")),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 15] = ["**", "<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "(", ")", ",", "^"];

/// Tokens with their columns, from 1, in characters.
fn tokens(text: &str) -> Result<Vec<(Token, usize)>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let column = text[..text.len() - rest.len()].chars().count() + 1;
        let Some(first) = rest.chars().next() else {
            tokens.push((Token::End, column));
            return Ok(tokens);
        };
        let length = if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            let value = rest[..length]
                .parse()
                .map_err(|_| at(text, column, ExpressionFault::NotNumber(rest[..length].to_owned())))?;
            tokens.push((Token::Number(value), column));
            length
        } else if first.is_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push((Token::Name(rest[..length].to_owned()), column));
            length
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            if *symbol == "^" {
                return Err(at(text, column, ExpressionFault::Caret));
            }
            tokens.push((Token::Symbol(symbol), column));
            symbol.len()
        } else {
            return Err(at(text, column, ExpressionFault::Character(first)));
        };
        rest = &rest[length..];
    }
}

/// Bytes of the number that `text` starts with: digits and dots, and an exponent with its sign.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(b) = bytes.get(end) {
        let sign_of_exponent = matches!(b, b'+' | b'-') && end > 0 && matches!(bytes[end - 1], b'e' | b'E');
        if b.is_ascii_alphanumeric() || *b == b'.' || *b == b'_' || sign_of_exponent {
            end += 1;
        } else {
            break;
        }
    }
    end
}

fn at(text: &str, column: usize, fault: ExpressionFault) -> ExpressionError {
    ExpressionError::At { fault, column, text: text.to_owned() }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, usize)>,
    next: usize,
    names: Vec<String>,
}

impl Parser<'_> {
    /// The last token is the end, and it is never passed.
    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn column(&self) -> usize {
        self.tokens[self.next].1
    }

    fn advance(&mut self) -> Token {
        let token = self.tokens[self.next].0.clone();
        if token != Token::End {
            self.next += 1;
        }
        token
    }

    fn accept<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        let Token::Symbol(symbol) = self.peek() else { return None };
        let found = table.iter().find(|(s, _)| s == symbol)?.1;
        self.advance();
        Some(found)
    }

    fn expected(&self, expected: &'static str) -> ExpressionError {
        let found = match self.peek() {
            Token::Number(n) => format!("`{n}`"),
            Token::Name(name) => format!("`{name}`"),
            Token::Symbol(symbol) => format!("`{symbol}`"),
            Token::End => "the end".to_owned(),
        };
        at(self.text, self.column(), ExpressionFault::Expected { expected, found })
    }

    fn expect(&mut self, symbol: &'static str, what: &'static str) -> Result<(), ExpressionError> {
        if *self.peek() == Token::Symbol(symbol) {
            self.advance();
            return Ok(());
        }
        Err(self.expected(what))
    }

    fn comparison(&mut self, depth: usize) -> Result<Expr, ExpressionError> {
        use Operator::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        if depth > DEEPEST {
            return Err(at(self.text, self.column(), ExpressionFault::TooDeep(DEEPEST)));
        }
        let comparisons =
            [("<=", LessEqual), (">=", GreaterEqual), ("==", Equal), ("!=", NotEqual), ("<", Less), (">", Greater)];
        let left = self.sum(depth)?;
        let Some(operator) = self.accept(&comparisons) else { return Ok(left) };
        let right = self.sum(depth)?;
        Ok(Expr::Binary(operator, Box::new(left), Box::new(right)))
    }

    fn sum(&mut self, depth: usize) -> Result<Expr, ExpressionError> {
        let mut left = self.product(depth)?;
        while let Some(operator) = self.accept(&[("+", Operator::Add), ("-", Operator::Subtract)]) {
            left = Expr::Binary(operator, Box::new(left), Box::new(self.product(depth)?));
        }
        Ok(left)
    }

    fn product(&mut self, depth: usize) -> Result<Expr, ExpressionError> {
        let mut left = self.unary(depth)?;
        while let Some(operator) = self.accept(&[("*", Operator::Multiply), ("/", Operator::Divide)]) {
            left = Expr::Binary(operator, Box::new(left), Box::new(self.unary(depth)?));
        }
        Ok(left)
    }

    fn unary(&mut self, depth: usize) -> Result<Expr, ExpressionError> {
        if depth > DEEPEST {
            return Err(at(self.text, self.column(), ExpressionFault::TooDeep(DEEPEST)));
        }
        if self.accept(&[("-", ())]).is_some() {
            return Ok(Expr::Negate(Box::new(self.unary(depth + 1)?)));
        }
        let base = self.atom(depth)?;
        if self.accept(&[("**", ())]).is_none() {
            return Ok(base);
        }
        let exponent = self.unary(depth + 1)?;
        Ok(Expr::Binary(Operator::Power, Box::new(base), Box::new(exponent)))
    }

    fn atom(&mut self, depth: usize) -> Result<Expr, ExpressionError> {
        let (start, column) = (self.next, self.column());
        match self.advance() {
            Token::Number(value) => Ok(Expr::Number(value)),
            Token::Name(name) if *self.peek() == Token::Symbol("(") => self.call(&name, column, depth),
            Token::Name(name) => {
                let position = self.names.iter().position(|n| *n == name).unwrap_or_else(|| {
                    self.names.push(name);
                    self.names.len() - 1
                });
                Ok(Expr::Name(position))
            }
            Token::Symbol("(") => {
                let inner = self.comparison(depth + 1)?;
                self.expect(")", "an operator or `)`")?;
                Ok(inner)
            }
            _ => {
                self.next = start;
                Err(self.expected("a number, a name, a function or `(`"))
            }
        }
    }

    fn call(&mut self, name: &str, column: usize, depth: usize) -> Result<Expr, ExpressionError> {
        let Some(function) = FUNCTIONS.iter().find(|f| f.name == name) else {
            let fault = ExpressionFault::UnknownFunction {
                name: name.to_owned(),
                known: FUNCTIONS.iter().map(|f| f.name).collect(),
            };
            return Err(at(self.text, column, fault));
        };
        self.advance();
        let mut arguments = vec![self.comparison(depth + 1)?];
        while self.accept(&[(",", ())]).is_some() {
            arguments.push(self.comparison(depth + 1)?);
        }
        self.expect(")", "`,` or `)`")?;
        if arguments.len() != function.arity() {
            let (arity, found) = (function.arity(), arguments.len());
            let fault = ExpressionFault::Arguments { function: function.name, arity, found };
            return Err(at(self.text, column, fault));
        }
        Ok(Expr::Call(*function, arguments))
    }
}

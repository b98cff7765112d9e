//! Why a text is not an expression, and where.

use std::ops::Range;

use kforge_foundation::base::count;

/// Why a text is not a valid expression at its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct SyntaxError {
    /// What is wrong.
    pub fault: SyntaxFault,
    /// The wrong bytes of the text. Empty at the end of the text if something is missing there.
    pub at: Range<usize>,
}

impl SyntaxError {
    pub(super) fn new(fault: SyntaxFault, at: Range<usize>) -> Self {
        SyntaxError { fault, at }
    }
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxFault {
    /// It is too long.
    #[error("an expression of {found} words and signs, expected at most {most}")]
    TooLong {
        /// How many words and signs it has.
        found: usize,
        /// How many are allowed.
        most: usize,
    },
    /// It nests too deep.
    #[error("nested more than {0} deep")]
    TooDeep(usize),
    /// A word that starts as a number but is not one.
    #[error("`{0}` is not a number")]
    NotNumber(String),
    /// An integer that does not fit an unsigned 64-bit type.
    #[error("`{0}` does not fit 64 bits")]
    TooLarge(String),
    /// A string that does not end, or has an escape.
    #[error("a string without its closing quote, or with an escape")]
    OpenString,
    /// A caret.
    #[error("`^` is not an operator; write `**` for a power")]
    Caret,
    /// An equals sign.
    #[error("`=` is not an operator; equality is `==`")]
    Equals,
    /// A character that no expression has.
    #[error("unexpected character `{0}`")]
    Character(char),
    /// A truth value as Python spells it.
    #[error("write truth values as `{0}`")]
    TruthSpelling(String),
    /// A word of Python that is not part of the expression language.
    #[error("`{0}` is not part of the expression language")]
    Word(String),
    /// Something else was expected.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What was expected.
        expected: &'static str,
        /// What is there, in back quotes, or `the end`.
        found: String,
    },
    /// A parenthesis that is never closed.
    #[error("this parenthesis is never closed")]
    Unclosed,
    /// A parenthesis that was never opened.
    #[error("this parenthesis was never opened")]
    Unopened,
    /// A condition without an `else`.
    #[error("an `if` without its `else`")]
    IfAlone,
    /// An `else` without a condition.
    #[error("an `else` without its `if`")]
    ElseAlone,
    /// No function has that name.
    #[error("unknown function `{0}`")]
    UnknownFunction(String),
    /// A call with the wrong number of arguments.
    #[error("`{function}` takes {}{}, found {found}", if *.open { "at least " } else { "" }, count(*.arity, "argument"))]
    Arguments {
        /// The function.
        function: &'static str,
        /// Arguments that it takes.
        arity: usize,
        /// Whether it also takes more.
        open: bool,
        /// How many arguments there are.
        found: usize,
    },
    /// A function of floats in an expression for an integer or a truth value.
    #[error("`{0}` is for floats, and this is not a float expression")]
    FloatFunction(&'static str),
    /// A literal where a number is needed.
    #[error("{0} is not a number")]
    Literal(String),
    /// A comparison or a condition where a number is needed.
    #[error("a truth value is not a number")]
    Truth,
    /// An argument of `sizeof` that names no type.
    #[error("`sizeof` takes a type, such as `T` or `'f16'`")]
    NoType,
}

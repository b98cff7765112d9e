//! Rendering: minijinja, strict about undefined names, with the functions that templates can call. Knows no template, and no operator beyond its context.

use std::fmt;
use std::ops::Range;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};

use super::context::Context;
use super::{fused, rows};

/// The most engine instructions for one text of a template: a thousand times what the largest built-in text takes, which is a second or two. The limit counts
/// instructions instead of time, so that a template renders either on every machine or on none.
const INSTRUCTIONS: u64 = 20_000_000;

/// Why a text could not be rendered.
#[derive(Debug)]
pub(super) enum Failure {
    /// The template refused the operator.
    Refused(String),
    /// The template has an error.
    Wrong {
        /// What is wrong.
        message: String,
        /// Where in the template's text.
        span: Range<usize>,
    },
}

/// A template's reason for refusing an operator. It travels as the source of an error.
#[derive(Debug)]
struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// The error that refuses an operator.
fn refusal(why: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, why.clone()).with_source(Refusal(why))
}

/// The context of templates, as a value.
pub(super) fn value(of: impl serde::Serialize) -> Value {
    Value::from(Serde(of))
}

/// Renders the texts of a template for one operator.
pub(super) struct Renderer {
    environment: Environment<'static>,
    context: Value,
}

impl Renderer {
    /// With this context.
    pub(super) fn new(context: &Context) -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(INSTRUCTIONS));
        // A tag on its own line leaves no line behind, so that generated code reads as if written by hand.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build();
        environment.set_syntax(syntax.expect("BUG: the delimiters are the usual ones, which do not clash"));
        environment.add_function("refuse", |why: String| -> Result<Value, Error> { Err(refusal(why)) });
        let own = context.clone();
        environment.add_function("serves", move |names: Vec<String>| own.serves(&names).map(|()| "").map_err(refusal));
        let own = context.clone();
        environment.add_function("setting", move |name: String, default: Value| match own.setting(&name) {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Ok(default),
            Err(why) => Err(refusal(why)),
        });
        let own = context.clone();
        environment.add_function("rows", move |slot: String| rows::of(&own, &slot).map(value).map_err(refusal));
        let own = context.clone();
        environment.add_function("fused", move || fused::of(&own).map(value).map_err(refusal));
        let own = context.clone();
        environment.add_function("prelude", move |functions: Option<Vec<String>>| {
            own.prelude(&functions.unwrap_or_default()).map_err(refusal)
        });
        environment.add_function("math", |functions: Vec<String>| super::cpp::helpers(&functions));
        Renderer { environment, context: value(context) }
    }

    /// Renders a text.
    pub(super) fn render(&self, text: &str) -> Result<String, Failure> {
        self.environment.render_str(text, &self.context).map_err(|error| failure(text, &error))
    }
}

fn failure(text: &str, error: &Error) -> Failure {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = source {
        if let Some(Refusal(why)) = inner.downcast_ref::<Refusal>() {
            return Failure::Refused(why.clone());
        }
        source = inner.source();
    }
    let whole_line = || {
        let line = error.line().unwrap_or(1).max(1);
        let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        start..start + text[start..].lines().next().map_or(0, str::len)
    };
    let fits = |r: &Range<usize>| r.end <= text.len() && text.is_char_boundary(r.start) && text.is_char_boundary(r.end);
    let span = error.range().filter(fits).unwrap_or_else(whole_line);
    let kind = error.kind().to_string();
    let message = match error.kind() {
        ErrorKind::OutOfFuel => format!(
            "the template did not finish within {} million instructions: it loops or recurses too much",
            INSTRUCTIONS / 1_000_000
        ),
        _ => error.detail().map_or(kind.clone(), |detail| format!("{kind}: {detail}")),
    };
    Failure::Wrong { message, span }
}

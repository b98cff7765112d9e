//! Expressions as texts of C, Rust and Python. Knows the helpers that each loader's runtime defines; knows no kernels.
//!
//! Integers are exact: C and Rust check every operation on 64 bits, Python has no limit. So a loader refuses a shape whose intermediate values do not fit
//! 64 bits, where kforge itself would have 128, and no loader ever computes another number than kforge.

use super::expressions::{Call, Code, Type};
use kforge_types::model::expr::{Arithmetic, Logic};

/// A language of loaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// C99 and C++11.
    C,
    /// Rust.
    Rust,
    /// Python.
    Python,
}

impl Language {
    /// Its word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Language::C => "c",
            Language::Rust => "rust",
            Language::Python => "python",
        }
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Rust => "Rust",
            Language::Python => "Python",
        }
    }
}

/// The prefix of variables that hold values of names.
pub const VARIABLE: &str = "v_";

/// Renders expressions. `prefix` begins the names of the helpers in C.
#[derive(Debug, Clone)]
pub struct Renderer {
    /// The language.
    pub language: Language,
    /// The beginning of the names of C's helpers: `quickstart_kf_`.
    pub prefix: String,
}

impl Renderer {
    /// A call of a helper that can fail.
    fn helper(&self, name: &str, arguments: &[&Code]) -> String {
        let all: Vec<String> = arguments.iter().map(|a| self.code(a)).collect();
        let all = all.join(", ");
        match self.language {
            Language::C => format!("{}{name}({all}, bad)", self.prefix),
            Language::Rust => format!("kf::{name}({all})?"),
            Language::Python => format!("_{name}({all})"),
        }
    }

    /// The text of an expression.
    pub fn code(&self, code: &Code) -> String {
        use Language::{C, Python, Rust};
        match (code, self.language) {
            (Code::Int(i64::MIN), C) => "(-INT64_C(9223372036854775807) - 1)".into(),
            (Code::Int(i64::MIN), Rust) => "i64::MIN".into(),
            (Code::Int(int), C) if *int < 0 => format!("(-INT64_C({}))", int.unsigned_abs()),
            (Code::Int(int), C) => format!("INT64_C({int})"),
            (Code::Int(int), Rust) if *int < 0 => format!("({int}_i64)"),
            (Code::Int(int), Rust) => format!("{int}_i64"),
            (Code::Int(int), Python) if *int < 0 => format!("({int})"),
            (Code::Int(int), Python) => int.to_string(),
            (Code::Float(float), language) if !float.is_finite() => {
                let (infinity, nan) = match language {
                    C => ("((double)INFINITY)", "((double)NAN)"),
                    Rust => ("f64::INFINITY", "f64::NAN"),
                    Python => ("float(\"inf\")", "float(\"nan\")"),
                };
                match float {
                    float if float.is_nan() => nan.into(),
                    float if *float < 0.0 => format!("(-{infinity})"),
                    _ => infinity.into(),
                }
            }
            (Code::Float(float), Rust) => format!("({float:?}_f64)"),
            (Code::Float(float), _) if *float < 0.0 => format!("({float:?})"),
            (Code::Float(float), _) => format!("{float:?}"),
            (Code::Bool(truth), Python) => if *truth { "True" } else { "False" }.into(),
            (Code::Bool(truth), C) => u8::from(*truth).to_string(),
            (Code::Bool(truth), Rust) => truth.to_string(),
            (Code::Name(name, _), _) => format!("{VARIABLE}{name}"),
            (Code::Negate(inner), Python) => format!("(-{})", self.code(inner)),
            (Code::Negate(inner), _) if inner.of_type() == Type::Float => format!("(-{})", self.code(inner)),
            (Code::Negate(inner), _) => self.helper("sub", &[&Code::Int(0), inner]),
            (Code::Not(inner), Python) => format!("(not {})", self.code(inner)),
            (Code::Not(inner), _) => format!("(!{})", self.code(inner)),
            (Code::Arithmetic(operator, pair), _) => self.arithmetic(*operator, &pair[0], &pair[1]),
            (Code::Compare(comparison, pair), _) => {
                format!("({} {} {})", self.code(&pair[0]), comparison.sign(), self.code(&pair[1]))
            }
            (Code::Logic(logic, pair), language) => {
                let sign = match (logic, language) {
                    (Logic::And, Python) => "and",
                    (Logic::Or, Python) => "or",
                    (Logic::And, _) => "&&",
                    (Logic::Or, _) => "||",
                };
                format!("({} {sign} {})", self.code(&pair[0]), self.code(&pair[1]))
            }
            (Code::If(three), language) => {
                let [condition, yes, no] = [&three[0], &three[1], &three[2]].map(|part| self.code(part));
                match language {
                    C => format!("({condition} ? {yes} : {no})"),
                    Rust => format!("(if {condition} {{ {yes} }} else {{ {no} }})"),
                    Python => format!("({yes} if {condition} else {no})"),
                }
            }
            (Code::Call(call, arguments), _) => self.call(*call, arguments),
        }
    }

    fn arithmetic(&self, operator: Arithmetic, a: &Code, b: &Code) -> String {
        let is_int = a.of_type() == Type::Int;
        let plain = |sign: &str| format!("({} {sign} {})", self.code(a), self.code(b));
        let is_python = self.language == Language::Python;
        match operator {
            Arithmetic::Add if is_python || !is_int => plain("+"),
            Arithmetic::Subtract if is_python || !is_int => plain("-"),
            Arithmetic::Multiply if is_python || !is_int => plain("*"),
            Arithmetic::Divide if is_python && !is_int => plain("/"),
            Arithmetic::FloorDivide if is_python && is_int => plain("//"),
            Arithmetic::Add => self.helper("add", &[a, b]),
            Arithmetic::Subtract => self.helper("sub", &[a, b]),
            Arithmetic::Multiply => self.helper("mul", &[a, b]),
            Arithmetic::Divide if is_int => self.helper("div", &[a, b]),
            Arithmetic::Divide => self.helper("fdiv", &[a, b]),
            Arithmetic::FloorDivide if is_int => self.helper("floor_div", &[a, b]),
            Arithmetic::FloorDivide => self.helper("ffloor_div", &[a, b]),
            Arithmetic::Remainder if is_int => self.helper("rem", &[a, b]),
            Arithmetic::Remainder => self.helper("frem", &[a, b]),
            Arithmetic::Power => self.helper("power", &[a, b]),
        }
    }

    fn call(&self, call: Call, arguments: &[Code]) -> String {
        use Language::{C, Python, Rust};
        let of = |at: usize| self.code(&arguments[at]);
        let is_float = arguments.first().is_some_and(|first| first.of_type() == Type::Float);
        match (call, self.language) {
            (Call::CeilDiv, _) => self.helper("ceil_div", &[&arguments[0], &arguments[1]]),
            (Call::Abs, Python) => format!("_abs({})", of(0)),
            (Call::Abs, C) if is_float => format!("fabs({})", of(0)),
            (Call::Abs, Rust) if is_float => format!("{}.abs()", of(0)),
            (Call::Abs, _) => self.helper("abs", &[&arguments[0]]),
            (Call::Sign, _) => self.helper("sign", &[&arguments[0]]),
            (Call::Min, Python) => format!("_min({}, {})", of(0), of(1)),
            (Call::Max, Python) => format!("_max({}, {})", of(0), of(1)),
            (Call::Min, _) => self.helper("min", &[&arguments[0], &arguments[1]]),
            (Call::Max, _) => self.helper("max", &[&arguments[0], &arguments[1]]),
            (Call::Sqrt, _) => self.helper("sqrt", &[&arguments[0]]),
            (Call::Floor, C) => format!("floor({})", of(0)),
            (Call::Ceil, C) => format!("ceil({})", of(0)),
            (Call::Floor, Rust) => format!("{}.floor()", of(0)),
            (Call::Ceil, Rust) => format!("{}.ceil()", of(0)),
            (Call::Floor, Python) => format!("_math.floor({})", of(0)),
            (Call::Ceil, Python) => format!("_math.ceil({})", of(0)),
            (Call::ToInt, Python) => of(0),
            (Call::ToInt, _) => self.helper("to_int", &[&arguments[0]]),
            (Call::ToFloat, C) => format!("((double){})", of(0)),
            (Call::ToFloat, Rust) => format!("({} as f64)", of(0)),
            (Call::ToFloat, Python) => format!("_float({})", of(0)),
        }
    }
}

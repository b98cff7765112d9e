//! Expressions of a launch description with known types: constants are filled in and computed, and what is left is arithmetic that every language of
//! loaders has. Knows the manifest's rules of evaluation; knows no language.
//!
//! | decision | because |
//! |---|---|
//! | what holds no dim and no param is computed here, by the evaluator of manifests | loaders need no strings, types or rare functions |
//! | a branch that a constant condition excludes is left out | it is never evaluated in a manifest either |
//! | functions whose last bits depend on a mathematics library are refused | a loader must pass the bits that were verified |
//! | an expression that may give an integer or a float, depending on values, is refused | the languages have static types |

use std::collections::BTreeMap;
use std::sync::Arc;

use kforge_foundation::base::{Diagnostic, SourceFile};
use kforge_types::model::expr::functions::{Function, FunctionKind};
use kforge_types::model::expr::{Arithmetic, Comparison, Expr, Logic, Node, NodeKind, Scope, Tree, Value, Want, parse};
use kforge_types::model::{Place, real};

/// The type of a value at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A 64-bit integer.
    Int,
    /// A double.
    Float,
    /// A truth value.
    Bool,
}

/// A function that every language has, with equal bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// The quotient of integers, rounded up.
    CeilDiv,
    /// The absolute value.
    Abs,
    /// -1, 0 or 1, of an integer.
    Sign,
    /// The smaller number.
    Min,
    /// The larger number.
    Max,
    /// The square root.
    Sqrt,
    /// Rounded down, as a float.
    Floor,
    /// Rounded up, as a float.
    Ceil,
    /// A float without a fraction as an integer.
    ToInt,
    /// An integer as a float.
    ToFloat,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Code {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A dim, a param or a number of the device.
    Name(String, Type),
    /// The negative.
    Negate(Box<Code>),
    /// The opposite.
    Not(Box<Code>),
    /// Arithmetic of two integers or two floats.
    Arithmetic(Arithmetic, Box<[Code; 2]>),
    /// A comparison of two values of one type.
    Compare(Comparison, Box<[Code; 2]>),
    /// `and` or `or` of truth values. The second is evaluated only if the first does not decide.
    Logic(Logic, Box<[Code; 2]>),
    /// Condition, yes, no. Only the chosen branch is evaluated.
    If(Box<[Code; 3]>),
    /// A function.
    Call(Call, Vec<Code>),
}

impl Code {
    /// Its type.
    pub fn of_type(&self) -> Type {
        match self {
            Code::Int(_) => Type::Int,
            Code::Float(_) => Type::Float,
            Code::Bool(_) | Code::Not(_) | Code::Compare(..) | Code::Logic(..) => Type::Bool,
            Code::Name(_, of) => *of,
            Code::Negate(inner) => inner.of_type(),
            Code::Arithmetic(_, pair) => pair[0].of_type(),
            Code::If(three) => three[1].of_type(),
            Code::Call(call, arguments) => match call {
                Call::CeilDiv | Call::Sign | Call::ToInt => Type::Int,
                Call::Sqrt | Call::Floor | Call::Ceil | Call::ToFloat => Type::Float,
                Call::Abs | Call::Min | Call::Max => arguments[0].of_type(),
            },
        }
    }

    /// Whether it uses this name.
    pub fn uses(&self, name: &str) -> bool {
        match self {
            Code::Name(own, _) => own == name,
            Code::Int(_) | Code::Float(_) | Code::Bool(_) => false,
            Code::Negate(inner) | Code::Not(inner) => inner.uses(name),
            Code::Arithmetic(_, pair) | Code::Compare(_, pair) | Code::Logic(_, pair) => {
                pair.iter().any(|part| part.uses(name))
            }
            Code::If(three) => three.iter().any(|part| part.uses(name)),
            Code::Call(_, arguments) => arguments.iter().any(|part| part.uses(name)),
        }
    }

    /// The value, if it is a constant integer.
    pub fn constant(&self) -> Option<i64> {
        if let Code::Int(value) = self { Some(*value) } else { None }
    }

    /// As a float.
    pub fn float(self) -> Code {
        match self {
            Code::Int(value) => Code::Float(value as f64),
            other if other.of_type() == Type::Int => Code::Call(Call::ToFloat, vec![other]),
            other => other,
        }
    }

    /// Whether it holds: a number holds if it is not zero.
    fn holds(self) -> Code {
        match (self.of_type(), self) {
            (Type::Bool, truth) => truth,
            (Type::Int, Code::Int(value)) => Code::Bool(value != 0),
            (Type::Int, number) => Code::Compare(Comparison::NotEqual, Box::new([number, Code::Int(0)])),
            (Type::Float, number) => Code::Compare(Comparison::NotEqual, Box::new([number, Code::Float(0.0)])),
        }
    }
}

/// Why loaders cannot have an expression.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unrenderable {
    /// It is no expression, or a constant part has no value.
    #[error("{}", .0.message)]
    Invalid(Box<Diagnostic>),
    /// A name is not known.
    #[error("the name `{0}` is not known")]
    Unknown(String),
    /// A function gives other bits on other machines.
    #[error("`{0}` of a value that is known only at run time is not supported")]
    Function(String),
    /// The type depends on values.
    #[error("the type of `{0}` depends on values that are known only at run time")]
    Type(String),
    /// It has the wrong type.
    #[error("it is not {0}")]
    Kind(&'static str),
}

/// What names stand for.
#[derive(Debug, Clone, Default)]
pub struct Names {
    constants: Scope,
    variables: BTreeMap<String, Type>,
}

impl Names {
    /// The same names, and a constant.
    pub fn constant(mut self, name: &str, value: Value) -> Self {
        self.variables.remove(name);
        self.constants.insert(name.into(), value);
        self
    }

    /// The same names, and one whose value is known at run time.
    pub fn variable(mut self, name: &str, of: Type) -> Self {
        self.constants.remove(name);
        self.variables.insert(name.into(), of);
        self
    }

    /// The expression of a text.
    ///
    /// # Errors
    /// [`Unrenderable`].
    pub fn code(&self, text: &str, want: Want) -> Result<Code, Unrenderable> {
        if let Some(constant) = real::constant(text).filter(|_| matches!(want, Want::Float | Want::Any)) {
            return Ok(Code::Float(constant));
        }
        let place = place(text);
        let error = |error| Unrenderable::Invalid(Box::new(error));
        Expr::parse(text, want, place.clone()).map_err(error)?;
        let tree = parse(text).map_err(|syntax| error(place.error("bindings.expression", syntax.fault.to_string())))?;
        let lower = Lower { names: self, text, tree: &tree, want };
        let code = lower.node(&tree.root)?;
        match want {
            Want::Int if code.of_type() != Type::Int => Err(Unrenderable::Kind("an integer")),
            Want::Bool if code.of_type() != Type::Bool => Err(Unrenderable::Kind("a truth value")),
            Want::Float if code.of_type() == Type::Bool => Err(Unrenderable::Kind("a number")),
            Want::Float => Ok(code.float()),
            _ => Ok(code),
        }
    }
}

fn place(text: &str) -> Place {
    let file = Arc::new(SourceFile { name: "kernels.json".into(), text: text.into() });
    Place::new(&file, 0..text.len())
}

struct Lower<'a> {
    names: &'a Names,
    text: &'a str,
    tree: &'a Tree,
    want: Want,
}

impl Lower<'_> {
    fn is_real(&self) -> bool {
        matches!(self.want, Want::Float | Want::Bool)
    }

    fn part(&self, node: &Node) -> &str {
        &self.text[node.at.clone()]
    }

    /// Whether no part of a node is known only at run time.
    fn is_constant(&self, node: &Node) -> bool {
        match &node.kind {
            NodeKind::Name(name) => self.names.constants.contains_key(&self.tree.names[*name]),
            _ => node.parts().into_iter().all(|part| self.is_constant(part)),
        }
    }

    fn computed(&self, node: &Node) -> Result<Value, Unrenderable> {
        let text = self.part(node);
        let error = |error| Unrenderable::Invalid(Box::new(error));
        let expr = Expr::parse(text, self.want, place(text)).map_err(error)?;
        expr.value(&self.names.constants).map_err(error)
    }

    /// The value of a constant condition.
    fn known(&self, node: &Node) -> Result<Option<bool>, Unrenderable> {
        if !self.is_constant(node) {
            return Ok(None);
        }
        Ok(Some(match self.computed(node)? {
            Value::Bool(truth) => truth,
            Value::Int(int) => int != 0,
            Value::Float(float) => float != 0.0,
            Value::Str(_) => return Err(Unrenderable::Kind("a condition")),
        }))
    }

    fn node(&self, node: &Node) -> Result<Code, Unrenderable> {
        if self.is_constant(node) {
            return match self.computed(node)? {
                Value::Int(int) => Ok(Code::Int(int)),
                Value::Float(float) => Ok(Code::Float(float)),
                Value::Bool(truth) => Ok(Code::Bool(truth)),
                Value::Str(_) => Err(Unrenderable::Kind("a number or a truth value")),
            };
        }
        match &node.kind {
            NodeKind::Name(name) => {
                let name = &self.tree.names[*name];
                let of = self.names.variables.get(name).ok_or_else(|| Unrenderable::Unknown(name.clone()))?;
                Ok(Code::Name(name.clone(), *of))
            }
            NodeKind::Group(inner) => self.node(inner),
            NodeKind::Negate(inner) => Ok(Code::Negate(Box::new(self.number(inner)?))),
            NodeKind::Not(inner) => Ok(Code::Not(Box::new(self.node(inner)?.holds()))),
            NodeKind::Arithmetic(operator, _, pair) => self.arithmetic(*operator, pair),
            NodeKind::Compare(first, rest) => self.compare(first, rest),
            NodeKind::Logic(logic, pair) => self.logic(*logic, pair, node),
            NodeKind::If(three) => self.choose(&three[0], &three[1], &three[2], node),
            NodeKind::Call(function, arguments) => self.call(function, arguments, node),
            NodeKind::Int(_) | NodeKind::Float(_) | NodeKind::Truth(_) | NodeKind::Str(_) => {
                Err(Unrenderable::Kind("a number or a truth value"))
            }
        }
    }

    fn number(&self, node: &Node) -> Result<Code, Unrenderable> {
        match self.node(node)? {
            code if code.of_type() == Type::Bool => Err(Unrenderable::Kind("a number")),
            code => Ok(code),
        }
    }

    fn arithmetic(&self, operator: Arithmetic, pair: &[Node; 2]) -> Result<Code, Unrenderable> {
        let (a, b) = (self.number(&pair[0])?, self.number(&pair[1])?);
        let is_int = a.of_type() == Type::Int && b.of_type() == Type::Int;
        let floats = !is_int || (operator == Arithmetic::Divide && self.is_real());
        if operator == Arithmetic::Power {
            let text = format!("{} ** {}", self.part(&pair[0]), self.part(&pair[1]));
            match (&b, floats) {
                // An integer to a negative power is a float where floats are wanted.
                (Code::Int(exponent), false) if *exponent >= 0 || !self.is_real() => {}
                (_, false) if !self.is_real() => {}
                (Code::Int(2), true) => {
                    let a = a.float();
                    return Ok(Code::Arithmetic(Arithmetic::Multiply, Box::new([a.clone(), a])));
                }
                _ => return Err(Unrenderable::Function(text)),
            }
        }
        let pair = if floats { [a.float(), b.float()] } else { [a, b] };
        Ok(Code::Arithmetic(operator, Box::new(pair)))
    }

    fn compare(&self, first: &Node, rest: &[(Comparison, Node)]) -> Result<Code, Unrenderable> {
        let mut all: Option<Code> = None;
        let mut left = self.node(first)?;
        for (comparison, node) in rest {
            let right = self.node(node)?;
            let pair = match (left.of_type(), right.of_type()) {
                (a, b) if a == b => [left, right.clone()],
                // Truth values are 1 and 0 in comparisons with numbers.
                (Type::Bool, Type::Int) => [as_int(left), right.clone()],
                (Type::Int, Type::Bool) => [left, as_int(right.clone())],
                (Type::Bool, Type::Float) => [as_int(left).float(), right.clone()],
                (Type::Float, Type::Bool) => [left, as_int(right.clone()).float()],
                _ => [left.float(), right.clone().float()],
            };
            let pair = if pair[0].of_type() == Type::Bool { pair.map(as_int) } else { pair };
            let one = Code::Compare(*comparison, Box::new(pair));
            all = Some(match all {
                None => one,
                Some(before) => Code::Logic(Logic::And, Box::new([before, one])),
            });
            left = right;
        }
        all.ok_or(Unrenderable::Kind("a comparison"))
    }

    fn logic(&self, logic: Logic, pair: &[Node; 2], node: &Node) -> Result<Code, Unrenderable> {
        if let Some(first) = self.known(&pair[0])? {
            let decides = first == (logic == Logic::Or);
            return self.node(if decides { &pair[0] } else { &pair[1] });
        }
        let (a, b) = (self.node(&pair[0])?, self.node(&pair[1])?);
        if a.of_type() != b.of_type() {
            return Err(Unrenderable::Type(self.part(node).into()));
        }
        if a.of_type() == Type::Bool {
            return Ok(Code::Logic(logic, Box::new([a, b])));
        }
        let condition = a.clone().holds();
        Ok(Code::If(Box::new(if logic == Logic::And { [condition, b, a] } else { [condition, a, b] })))
    }

    fn choose(&self, condition: &Node, yes: &Node, no: &Node, node: &Node) -> Result<Code, Unrenderable> {
        if let Some(known) = self.known(condition)? {
            return self.node(if known { yes } else { no });
        }
        let (condition, yes, no) = (self.node(condition)?.holds(), self.node(yes)?, self.node(no)?);
        match (yes.of_type(), no.of_type()) {
            (a, b) if a == b => Ok(Code::If(Box::new([condition, yes, no]))),
            _ => Err(Unrenderable::Type(self.part(node).into())),
        }
    }

    fn call(&self, function: &Function, arguments: &[Node], node: &Node) -> Result<Code, Unrenderable> {
        if matches!(function.kind, FunctionKind::Where) {
            return self.choose(&arguments[0], &arguments[1], &arguments[2], node);
        }
        let numbers = || arguments.iter().map(|a| self.number(a)).collect::<Result<Vec<_>, _>>();
        let one_type = |numbers: &[Code]| numbers.iter().all(|number| number.of_type() == numbers[0].of_type());
        let refused = || Unrenderable::Function(self.part(node).into());
        let pairwise = |call: Call, numbers: Vec<Code>| {
            numbers.into_iter().reduce(|a, b| Code::Call(call, vec![a, b])).ok_or_else(refused)
        };
        let numbers = numbers()?;
        if !one_type(&numbers) {
            return Err(Unrenderable::Type(self.part(node).into()));
        }
        let is_int = numbers[0].of_type() == Type::Int;
        match function.kind {
            FunctionKind::CeilDiv if is_int => Ok(Code::Call(Call::CeilDiv, numbers)),
            FunctionKind::Abs => Ok(Code::Call(Call::Abs, numbers)),
            FunctionKind::Sign if is_int => Ok(Code::Call(Call::Sign, numbers)),
            FunctionKind::Relu if is_int => pairwise(Call::Max, vec![numbers[0].clone(), Code::Int(0)]),
            FunctionKind::Clamp if is_int => {
                let [x, low, high] = &numbers[..] else { return Err(refused()) };
                let above = pairwise(Call::Max, vec![x.clone(), low.clone()])?;
                pairwise(Call::Min, vec![above, high.clone()])
            }
            FunctionKind::Min if is_int => pairwise(Call::Min, numbers),
            FunctionKind::Max if is_int => pairwise(Call::Max, numbers),
            FunctionKind::Float => Ok(numbers[0].clone().float()),
            FunctionKind::Round(_) if is_int => Ok(numbers[0].clone()),
            FunctionKind::One(_) | FunctionKind::Round(_) => {
                let number = vec![numbers[0].clone().float()];
                match function.name {
                    "sqrt" => Ok(Code::Call(Call::Sqrt, number)),
                    "rsqrt" => Ok(Code::Arithmetic(
                        Arithmetic::Divide,
                        Box::new([Code::Float(1.0), Code::Call(Call::Sqrt, number)]),
                    )),
                    "floor" => Ok(Code::Call(Call::ToInt, vec![Code::Call(Call::Floor, number)])),
                    "ceil" => Ok(Code::Call(Call::ToInt, vec![Code::Call(Call::Ceil, number)])),
                    _ => Err(refused()),
                }
            }
            _ => Err(refused()),
        }
    }
}

/// A truth value as 1 or 0.
fn as_int(code: Code) -> Code {
    match code {
        Code::Bool(truth) => Code::Int(truth.into()),
        code if code.of_type() == Type::Bool => Code::If(Box::new([code, Code::Int(1), Code::Int(0)])),
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::bindings::render::{Language, Renderer};

    fn names() -> Names {
        let names =
            Names::default().variable("rows", Type::Int).variable("eps", Type::Float).variable("flip", Type::Bool);
        names.constant("BLOCK", Value::Int(256)).constant("T", Value::Str("f16".into()))
    }

    fn python(text: &str, want: Want) -> Result<String, Unrenderable> {
        let renderer = Renderer { language: Language::Python, prefix: String::new() };
        names().code(text, want).map(|code| renderer.code(&code))
    }

    #[test]
    fn what_is_constant_is_computed_and_a_branch_that_is_never_taken_is_left_out() {
        let int = |text| python(text, Want::Int).unwrap();
        assert_eq!(int("ceil_div(rows, BLOCK // sizeof(T))"), "_ceil_div(v_rows, 128)");
        assert_eq!(int("rows * 2 if T == 'f16' else rows / 0"), "(v_rows * 2)");
        assert_eq!(int("BLOCK * 2 - 1"), "511");
        assert_eq!(int("min(rows, BLOCK, 7)"), "_min(_min(v_rows, 256), 7)");
        let truth = |text| python(text, Want::Bool).unwrap();
        assert_eq!(truth("T == 'f16' and rows > 4"), "(v_rows > 4)");
        assert_eq!(truth("1 < rows <= BLOCK"), "((1 < v_rows) and (v_rows <= 256))");
        assert_eq!(truth("rows / 4 == 2"), "((_float(v_rows) / 4.0) == 2.0)");
        assert_eq!(python("1 / sqrt(rows)", Want::Float).unwrap(), "(1.0 / _sqrt(_float(v_rows)))");
    }

    #[test]
    fn what_no_language_has_with_equal_bits_is_refused() {
        assert!(matches!(python("exp(rows)", Want::Float), Err(Unrenderable::Function(_))));
        assert!(matches!(python("rows ** 0.5", Want::Float), Err(Unrenderable::Function(_))));
        assert!(matches!(python("rows if flip else eps", Want::Any), Err(Unrenderable::Type(_))));
        assert!(matches!(python("cols", Want::Int), Err(Unrenderable::Unknown(_))));
        assert!(matches!(python("rows +", Want::Int), Err(Unrenderable::Invalid(_))));
        assert!(matches!(python("rows > 1", Want::Int), Err(Unrenderable::Kind(_))));
        // A constant of such a function is computed here.
        assert_eq!(python("exp(0) * eps", Want::Float).unwrap(), "(1.0 * v_eps)");
    }
}

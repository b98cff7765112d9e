//! An operator bound to one shape and one choice of types. Knows how dims, tensors and params become numbers; does not know kernels.

use super::bound::contiguous;
use super::expr::{Expr, Scope, Value};
use super::operator::{InitDecl, Operator, ParamDecl, Shape, StoredTensor, TensorDecl, TypeChoice};
use super::{DType, Init, Param, Place, Problem, Reference, Scalar, Tensor};
use kforge_foundation::base::Diagnostic;

/// The most bytes that one tensor may span. GPU addresses have 49 bits, and sums of several tensors stay far from overflow.
const MOST_BYTES: u64 = 1 << 49;

impl Scalar {
    pub(crate) fn to_value(self) -> Value {
        match self {
            Scalar::Int(i) => Value::Int(i),
            Scalar::Float(f) => Value::Float(f),
            Scalar::Bool(b) => Value::Bool(b),
        }
    }
}

/// `value` as a scalar of `dtype`. An integer must be in the range of `dtype`; only `bool` takes truth values.
pub(crate) fn fit(value: &Value, dtype: DType, place: &Place) -> Result<Scalar, Diagnostic> {
    let wrong = |want: &str| {
        Err(place.error("manifest.kind", format!("{value} is not a value of dtype {dtype}")).expected(want))
    };
    match (value, dtype) {
        (Value::Bool(b), DType::Bool) => Ok(Scalar::Bool(*b)),
        (_, DType::Bool) => wrong("`true` or `false`"),
        (Value::Int(i), d) if d.is_float() => Ok(Scalar::Float(*i as f64)),
        (Value::Float(f), d) if d.is_float() && d.has_value_of_class(*f) => Ok(Scalar::Float(*f)),
        (Value::Float(_), d) if d.is_float() => wrong("a finite number: the type has no such value"),
        (_, d) if d.is_float() => wrong("a number"),
        (Value::Int(i), d) => match range(d) {
            Some((low, high)) if (low..=high).contains(&i128::from(*i)) => Ok(Scalar::Int(*i)),
            _ => Err(place
                .error("manifest.overflow", format!("{i} does not fit {d}"))
                .expected(range(d).map_or("a scalar dtype".into(), |(a, b)| format!("a value from {a} to {b}")))
                .hint("give it a wider type, as `{ value = \"...\", dtype = \"i64\" }`")),
        },
        _ => wrong("an integer"),
    }
}

fn range(dtype: DType) -> Option<(i128, i128)> {
    Some(match dtype {
        DType::I64 => (i64::MIN.into(), i64::MAX.into()),
        DType::U64 => (0, u64::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U8 => (0, u8::MAX.into()),
        _ => return None,
    })
}

/// The value of an extent, stride or count, which must not be negative.
pub(crate) fn count(expr: &Expr, scope: &Scope, what: &str) -> Result<u64, Diagnostic> {
    let value = expr.int(scope)?;
    u64::try_from(value).map_err(|_| {
        let error = expr.place().error("manifest.negative", format!("{what} `{}` is {value}", expr.text()));
        error.expected("0 or more")
    })
}

impl Operator {
    /// Dims and derived dims of a shape, as values for expressions.
    fn dims_of(&self, shape: &Shape) -> Result<Scope, Diagnostic> {
        let mut scope = Scope::new();
        for dim in &self.dims {
            let Some(value) = shape.dims.get(&dim.value) else {
                let error =
                    shape.place.error("manifest.missing-dim", format!("shape `{}` does not bind `{dim}`", shape.name));
                return Err(error.expected(format!("`{dim} = ...`")).hint("a shape must bind every dim"));
            };
            scope.insert(dim.value.clone(), Value::Int(*value));
        }
        for (name, expr) in &self.derived {
            let value = expr.int(&scope).map_err(|e| in_shape(e, shape))?;
            scope.insert(name.value.clone(), Value::Int(value));
        }
        Ok(scope)
    }

    /// The names that expressions over the operator can use: dims, derived dims, params and types of a shape and a choice. The value of a type is the name of
    /// its dtype.
    pub fn scope(&self, choice: &TypeChoice, shape: &Shape) -> Result<Scope, Diagnostic> {
        let mut scope = self.dims_of(shape)?;
        for decl in &self.params {
            let param = self.param(decl, choice, shape, &scope)?;
            scope.insert(param.name, param.value.to_value());
        }
        scope.extend(choice.types.iter().map(|(name, dtype)| (name.clone(), Value::Str(dtype.name().into()))));
        Ok(scope)
    }

    fn param(&self, decl: &ParamDecl, choice: &TypeChoice, shape: &Shape, scope: &Scope) -> Result<Param, Diagnostic> {
        let name = &decl.name.value;
        let dtype = decl.dtype.under(choice).ok_or_else(|| unbound(&decl.name.place))?;
        let value = match (shape.params.get(name), &decl.value) {
            (Some(bound), _) => fit(&bound.to_value(), dtype, &shape.place)?,
            (None, Some(expr)) => {
                let value = expr.value(scope).map_err(|e| in_shape(e, shape))?;
                fit(&value, dtype, expr.place()).map_err(|e| in_shape(e, shape))?
            }
            (None, None) => {
                let error = shape
                    .place
                    .error("manifest.missing-param", format!("shape `{}` does not bind param `{name}`", shape.name));
                return Err(error.expected(format!("`{name} = ...`, because the param has no value")));
            }
        };
        Ok(Param { name: name.clone(), dtype, value })
    }

    /// The operator with all numbers. Fails if an expression fails, if an extent is negative, or if a tensor is larger than any device.
    pub fn bind(&self, choice: &TypeChoice, shape: &Shape) -> Result<Problem, Diagnostic> {
        let dims = self.dims_of(shape)?;
        let scope = self.scope(choice, shape)?;
        let bound = |decl: &TensorDecl| {
            let tensor = bind_tensor(decl, choice, &scope).map_err(|e| in_shape(e, shape))?;
            Ok(match shape.stored.get(&decl.name.value) {
                Some(StoredTensor { file, key }) => {
                    Tensor { init: Init::Safetensors { file: file.value.clone(), key: key.clone() }, ..tensor }
                }
                None => tensor,
            })
        };
        let tensors = self.tensors.iter().map(bound);
        let params = self.params.iter().map(|p| self.param(p, choice, shape, &scope));
        Ok(Problem {
            tensors: tensors.collect::<Result<_, _>>()?,
            params: params.collect::<Result<_, _>>()?,
            dims: dims
                .into_iter()
                .filter_map(|(name, v)| if let Value::Int(i) = v { Some((name, i)) } else { None })
                .collect(),
            reference: self.bound_reference(&scope).map_err(|e| in_shape(e, shape))?,
            generate_inputs: self.generate_inputs.clone(),
        })
    }

    fn bound_reference(&self, scope: &Scope) -> Result<Reference, Diagnostic> {
        match (&self.reference, &self.torch) {
            (Reference::Torch { file, function, call }, Some(decl)) => {
                let call = Box::new(decl.bind(call, scope)?);
                Ok(Reference::Torch { file: file.clone(), function: function.clone(), call })
            }
            (other, _) => Ok(other.clone()),
        }
    }

    fn number(&self, expr: Option<&Expr>, choice: &TypeChoice, shape: &Shape) -> Result<Option<f64>, Diagnostic> {
        let Some(expr) = expr else { return Ok(None) };
        let value = expr.float(&self.scope(choice, shape)?).map_err(|e| in_shape(e, shape))?;
        if value < 0.0 {
            let error = expr.place().error("manifest.negative", format!("`{}` is {value}", expr.text()));
            return Err(in_shape(error.expected("0 or more"), shape));
        }
        Ok(Some(value))
    }

    /// Floating-point operations, if stated. For reports.
    pub fn flops(&self, choice: &TypeChoice, shape: &Shape) -> Result<Option<f64>, Diagnostic> {
        self.number(self.flops.as_ref(), choice, shape)
    }

    /// The fewest operations that any implementation needs, if stated.
    pub fn flops_min(&self, choice: &TypeChoice, shape: &Shape) -> Result<Option<f64>, Diagnostic> {
        self.number(self.flops_min.as_ref(), choice, shape)
    }

    /// Compulsory bytes, if stated. Otherwise callers count each tensor once for reading and once for writing, as its role says.
    pub fn bytes(&self, choice: &TypeChoice, shape: &Shape) -> Result<Option<f64>, Diagnostic> {
        self.number(self.bytes.as_ref(), choice, shape)
    }
}

/// The error with a pointer to the shape for which it happened.
pub(crate) fn in_shape(error: Diagnostic, shape: &Shape) -> Diagnostic {
    error.see(&shape.place.file, shape.place.span.clone(), format!("for shape `{}`", shape.name))
}

/// The error for a type that the choice does not bind. Only a choice of another operator can cause it.
pub(crate) fn unbound(place: &Place) -> Diagnostic {
    place
        .error("manifest.unbound-type", "the choice of types does not bind this type")
        .expected("a choice of this operator's types")
}

fn bind_tensor(decl: &TensorDecl, choice: &TypeChoice, scope: &Scope) -> Result<Tensor, Diagnostic> {
    let dtype = decl.dtype.under(choice).ok_or_else(|| unbound(&decl.name.place))?;
    let shape = decl.shape.iter().map(|e| count(e, scope, "extent")).collect::<Result<Vec<_>, _>>()?;
    let too_large = || {
        let error = decl
            .name
            .place
            .error("manifest.too-large", format!("tensor `{}` of shape {shape:?} is too large", decl.name));
        error.expected(format!("at most {MOST_BYTES} bytes"))
    };
    // Empty extents count as one here, so that strides cannot overflow either.
    let elements = shape
        .iter()
        .try_fold(1u64, |n, extent| n.checked_mul((*extent).max(1)))
        .filter(|n| *n <= MOST_BYTES)
        .ok_or_else(too_large)?;
    let strides = match &decl.strides {
        Some(strides) => strides.iter().map(|e| count(e, scope, "stride")).collect::<Result<Vec<_>, _>>()?,
        None => contiguous(&shape),
    };
    let span = shape
        .iter()
        .zip(&strides)
        .try_fold(1u64, |n, (extent, stride)| n.checked_add(extent.saturating_sub(1).checked_mul(*stride)?));
    if span.and_then(|n| n.max(elements).checked_mul(dtype.bytes())).is_none_or(|bytes| bytes > MOST_BYTES) {
        return Err(too_large());
    }
    let init = match &decl.init {
        InitDecl::Fixed(Init::Constant(value)) if !dtype.has_value_of_class(*value) => {
            return Err(no_such_value(*value, dtype, &decl.name.place));
        }
        InitDecl::Fixed(init) => init.clone(),
        InitDecl::Range(low, high) => {
            let (a, b) = (low.float(scope)?, high.float(scope)?);
            if a > b {
                return Err(low
                    .place()
                    .error("manifest.value", format!("the range from {a} to {b} is empty"))
                    .expected("a lower bound, then an upper one"));
            }
            Init::Range(a, b)
        }
        InitDecl::Permutation(n) => Init::Permutation(positive(n, scope)?),
        InitDecl::Offsets(total) => Init::Offsets(count(total, scope, "total")?.cast_signed()),
    };
    Ok(Tensor { name: decl.name.value.clone(), role: decl.role, dtype, shape, strides, align: decl.align, init })
}

/// The error for a constant that is infinite or NaN, where the type has no such value.
pub(crate) fn no_such_value(value: f64, dtype: DType, place: &Place) -> Diagnostic {
    let message = format!("{} is not a value of dtype {dtype}", Value::Float(value));
    place.error("manifest.kind", message).expected(if dtype.is_float() { "a finite number" } else { "an integer" })
}

fn positive(expr: &Expr, scope: &Scope) -> Result<i64, Diagnostic> {
    match expr.int(scope)? {
        n if n > 0 => Ok(n),
        n => Err(expr.place().error("manifest.value", format!("`{}` is {n}", expr.text())).expected("1 or more")),
    }
}

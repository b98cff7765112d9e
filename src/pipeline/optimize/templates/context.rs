//! What templates receive about an operator: its tensors, params, types and settings, as expressions and as C++. Knows no template.

use std::collections::BTreeMap;

use serde::Serialize;

use kforge_numerics::reference::signature;
use kforge_types::model::operator::TypeRef;
use kforge_types::model::{DType, Kernel, Language, Operator, Reference, Role};

/// The context that templates receive.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Context {
    /// The template's name.
    pub(super) template: String,
    /// The operator's name.
    pub(super) operator: String,
    /// The kernel's name.
    pub(super) kernel: String,
    /// The kernel's language: `cuda`, `triton`.
    pub(super) language: Language,
    /// The built-in reference's name; empty for a reference of the package.
    pub(super) builtin: String,
    /// The operator's types in declared order.
    pub(super) types: Vec<Type>,
    /// The tensors: inputs, inouts, outputs.
    pub(super) tensors: Vec<Tensor>,
    /// The tensors by the names that the built-in gives them.
    pub(super) slots: BTreeMap<String, Tensor>,
    /// The params in declared order.
    pub(super) params: Vec<Param>,
    /// The names of dims, including derived ones.
    pub(super) dims: Vec<String>,
    /// The reference's attributes.
    pub(super) attributes: BTreeMap<String, serde_json::Value>,
    /// The operator's names for the settings of the built-in.
    #[serde(skip)]
    names: BTreeMap<String, String>,
    /// An expression for the bytes of the largest element of any tensor.
    pub(super) widest: String,
    /// The type for computing elements: `float`, or `double` if a tensor is; in Triton `tl.float32` and `tl.float64`.
    pub(super) compute: String,
}

/// A type of the operator.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Type {
    /// Its name.
    pub(super) name: String,
    /// The dtypes that it may be.
    pub(super) dtypes: Vec<String>,
    /// Whether it may be f64, and a tensor has it.
    pub(super) wide: bool,
}

/// A tensor.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Tensor {
    /// Its name in the manifest.
    pub(super) name: String,
    /// Its name in C++.
    pub(super) code: String,
    /// `input`, `inout` or `output`.
    pub(super) role: &'static str,
    /// Its dtype, or the name of its type.
    pub(super) dtype: String,
    /// Its element type in C++. A type's name is also the name of a template parameter.
    pub(super) element: String,
    /// Expressions for its extents, outermost first.
    pub(super) shape: Vec<String>,
    /// `float`, `integer`, or `mixed` if its type may be either.
    pub(super) kind: &'static str,
    /// Whether it may hold f16 or bf16, which tensor cores multiply.
    pub(super) narrow: bool,
    /// Whether it may hold u64.
    pub(super) unsigned64: bool,
    /// Whether the tensor is stored contiguously, with its last axis innermost.
    pub(super) contiguous: bool,
    /// The alignment of its address in bytes.
    pub(super) align: u64,
    /// Every dtype that it may have.
    #[serde(skip)]
    pub(super) dtypes: Vec<DType>,
}

/// A param.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Param {
    /// Its name in the manifest.
    pub(super) name: String,
    /// Its name in C++.
    pub(super) code: String,
    /// Its type in C++.
    pub(super) element: String,
    /// Every dtype that it may have.
    #[serde(skip)]
    dtypes: Vec<DType>,
}

/// A name in C++. The trailing underscore avoids C++ keywords and the names that generated code declares, which never end in one.
fn code(name: &str) -> String {
    format!("{name}_")
}

impl Context {
    /// What a template receives about an operator.
    pub(super) fn of(operator: &Operator, kernel: &Kernel, template: &str) -> Context {
        let dtypes = |of: &TypeRef| match of {
            TypeRef::Fixed(dtype) => vec![*dtype],
            TypeRef::Named(name) => {
                operator.types.iter().filter(|t| t.0.value == *name).flat_map(|t| t.1.clone()).collect()
            }
        };
        let word = |of: &TypeRef| match of {
            TypeRef::Fixed(dtype) => (dtype.name().to_string(), dtype.cuda_name().to_string()),
            TypeRef::Named(name) => (name.clone(), name.clone()),
        };
        let tensors: Vec<Tensor> = operator
            .tensors
            .iter()
            .map(|t| Tensor {
                name: t.name.value.clone(),
                code: code(&t.name.value),
                role: match t.role {
                    Role::Input => "input",
                    Role::Inout => "inout",
                    Role::Output => "output",
                },
                dtype: word(&t.dtype).0,
                element: word(&t.dtype).1,
                shape: t.shape.iter().map(|e| e.text().trim().to_string()).collect(),
                kind: kind(&dtypes(&t.dtype)),
                narrow: dtypes(&t.dtype).iter().any(|d| matches!(d, DType::F16 | DType::Bf16)),
                unsigned64: dtypes(&t.dtype).contains(&DType::U64),
                contiguous: t.strides.is_none(),
                align: t.align,
                dtypes: dtypes(&t.dtype),
            })
            .collect();
        let (builtin, attributes, names) = match &operator.reference {
            Reference::Builtin { name, attributes, names } => (name.clone(), attributes.clone(), names.clone()),
            _ => Default::default(),
        };
        let own = |slot: &str| names.get(slot).cloned().unwrap_or_else(|| slot.to_string());
        let known = signature(&builtin).map(|b| b.slots).unwrap_or_default();
        let slots = known
            .iter()
            .filter_map(|s| Some((s.name.to_string(), tensors.iter().find(|t| t.name == own(s.name))?.clone())))
            .collect();
        let params = operator
            .params
            .iter()
            .map(|p| Param {
                name: p.name.value.clone(),
                code: code(&p.name.value),
                element: word(&p.dtype).1,
                dtypes: dtypes(&p.dtype),
            })
            .collect();
        let dims = operator.dims.iter().chain(operator.derived.iter().map(|d| &d.0));
        Context {
            template: template.into(),
            operator: operator.name.clone(),
            kernel: kernel.name.clone(),
            language: kernel.language,
            builtin,
            types: operator
                .types
                .iter()
                .map(|(name, dtypes)| Type {
                    wide: wide(operator, &tensors).any(|own| own == name.value),
                    name: name.value.clone(),
                    dtypes: dtypes.iter().map(|d| d.name().to_string()).collect(),
                })
                .collect(),
            widest: widest(tensors.iter()),
            compute: match kernel.language {
                Language::Cuda => compute(operator, &tensors),
                Language::Triton | Language::Torch => python_compute(operator, &tensors),
            },
            slots,
            params,
            dims: dims.map(|d| d.value.clone()).collect(),
            attributes,
            names,
            tensors,
        }
    }

    /// Succeeds if the reference is one of these built-ins. Error: why the template does not serve the operator.
    pub(super) fn serves(&self, names: &[String]) -> Result<(), String> {
        if names.contains(&self.builtin) {
            return Ok(());
        }
        let known: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
        let what = match self.builtin.as_str() {
            "" => "its reference is a function of the package".to_string(),
            name => format!("its reference is `builtin:{name}`"),
        };
        Err(format!("{what}, but the template serves {}", known.join(", ")))
    }

    /// A setting of the built-in as C++: a number, the name of a param, or a word; none if it is not given. Error: it is the name of a dim, or a list.
    pub(super) fn setting(&self, name: &str) -> Result<Option<minijinja::Value>, String> {
        use serde_json::Value as Json;
        let param = |name: &str| self.params.iter().find(|p| p.name == name);
        let own = self.names.get(name).map_or(name, String::as_str);
        match self.attributes.get(name) {
            None => Ok(param(own).map(|p| minijinja::Value::from(p.code.clone()))),
            Some(Json::String(word)) => match param(word) {
                Some(param) => Ok(Some(minijinja::Value::from(param.code.clone()))),
                None if self.dims.contains(word) => {
                    Err(format!("its `{name}` is the dim `{word}`, but it must be a number or a param"))
                }
                None => Ok(Some(minijinja::Value::from(word.clone()))),
            },
            Some(Json::Array(_)) => Err(format!("its `{name}` is a list")),
            Some(value) => Ok(Some(super::render::value(value))),
        }
    }

    /// What a source begins with: includes, and the few functions by which generated code converts elements; in Triton imports, and `functions` with what they
    /// call. Error: a dtype with which generated code does not compute.
    pub(super) fn prelude(&self, functions: &[String]) -> Result<String, String> {
        let tensors = self.tensors.iter().map(|t| (&t.name, &t.dtypes));
        let all: Vec<(&String, &Vec<DType>)> =
            tensors.chain(self.params.iter().map(|p| (&p.name, &p.dtypes))).collect();
        for (name, dtypes) in &all {
            let odd =
                |d: &&DType| matches!(d, DType::F8e4m3 | DType::F8e5m2 | DType::F8e8m0 | DType::F4e2m1x2 | DType::I4x2);
            if let Some(dtype) = dtypes.iter().find(odd) {
                return Err(format!("`{name}` has dtype {dtype}, which the template does not support"));
            }
        }
        if let Some(tensor) = self.tensors.iter().find(|t| !t.contiguous) {
            return Err(format!("`{}` has strides, but it must be contiguous", tensor.name));
        }
        if self.language == Language::Triton {
            return Ok(super::python::imports(functions));
        }
        if let Some(tensor) = self.tensors.iter().find(|t| t.align % 16 != 0) {
            let (name, align) = (&tensor.name, tensor.align);
            return Err(format!("`{name}` is aligned to {align} bytes, but accesses need sixteen"));
        }
        let has = |dtype: DType| all.iter().any(|(_, dtypes)| dtypes.contains(&dtype));
        Ok(super::cpp::prelude(has(DType::F16), has(DType::Bf16)))
    }
}

/// The common kind of dtypes.
fn kind(dtypes: &[DType]) -> &'static str {
    match (dtypes.iter().all(|d| d.is_float()), dtypes.iter().any(|d| d.is_float())) {
        (true, _) => "float",
        (false, true) => "mixed",
        (false, false) => "integer",
    }
}

/// The bytes of the widest element of any of these tensors, as an expression over types.
pub(super) fn widest<'t>(tensors: impl Iterator<Item = &'t Tensor>) -> String {
    let (mut fixed, mut named) = (0, std::collections::BTreeSet::new());
    for tensor in tensors {
        match tensor.dtype.parse::<DType>() {
            Ok(dtype) => fixed = fixed.max(dtype.bytes()),
            Err(()) => {
                named.insert(format!("sizeof({})", tensor.dtype));
            }
        }
    }
    let all = (fixed > 0).then(|| fixed.to_string()).into_iter().chain(named);
    all.reduce(|a, b| format!("max({a}, {b})")).unwrap_or_else(|| "1".into())
}

/// Triton's type for computing elements. A type that may be `f64` is a constant of the function.
fn python_compute(operator: &Operator, tensors: &[Tensor]) -> String {
    let named = |name: &str| operator.types.iter().find(|(own, _)| own.value == name);
    if tensors.iter().any(|t| named(&t.dtype).is_none() && t.dtypes.contains(&DType::F64)) {
        return "tl.float64".into();
    }
    let wide = wide(operator, tensors).map(|name| format!("{name} == tl.float64")).collect::<Vec<_>>();
    match wide.as_slice() {
        [] => "tl.float32".into(),
        many => format!("tl.float64 if {} else tl.float32", many.join(" or ")),
    }
}

/// The types of the operator that may be `f64`.
fn wide<'o>(operator: &'o Operator, tensors: &'o [Tensor]) -> impl Iterator<Item = &'o str> {
    let of = operator
        .types
        .iter()
        .filter(|(name, dtypes)| dtypes.contains(&DType::F64) && tensors.iter().any(|t| t.dtype == name.value));
    of.map(|(name, _)| name.value.as_str())
}

/// The C++ type for computing elements. If a named type may be `f64`, the instantiation of the kernel decides.
fn compute(operator: &Operator, tensors: &[Tensor]) -> String {
    let named = |name: &str| operator.types.iter().find(|(own, _)| own.value == name);
    if tensors.iter().any(|t| named(&t.dtype).is_none() && t.dtypes.contains(&DType::F64)) {
        return "double".into();
    }
    let sum = wide(operator, tensors).map(|name| format!("typename Compute<{name}>::type()")).collect::<Vec<_>>();
    match sum.as_slice() {
        [] => "float".into(),
        many => format!("decltype({})", many.join(" + ")),
    }
}

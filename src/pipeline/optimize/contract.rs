//! An operator's contract as text: what an agent gets to compute. Recorded answers are found by its digest. Shapes, seeds and tolerances are not part of it.

use kforge_foundation::base::Digest;
use kforge_types::model::operator::{InitDecl, TensorDecl, TypeRef};
use kforge_types::model::{Arch, Compare, Operator, Reference, Role, TypeChoice};

/// The contract under a choice of types. `own` gives the text of a file of the package, for a reference function of the package.
pub fn text(operator: &Operator, choice: &TypeChoice, own: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = format!("operator {}\n", operator.name);
    if !operator.dims.is_empty() {
        let dims: Vec<&str> = operator.dims.iter().map(|d| d.as_str()).collect();
        out += &format!("dims (integers, bound by each shape): {}\n", dims.join(", "));
    }
    for (name, expr) in &operator.derived {
        out += &format!("derived dim: {name} = {}\n", expr.text());
    }
    for (name, dtype) in &choice.types {
        out += &format!("type: {name} = {dtype}\n");
    }
    for tensor in &operator.tensors {
        let role = match tensor.role {
            Role::Input => "input",
            Role::Inout => "inout (read and written)",
            Role::Output => "output",
        };
        out += &format!("{role} {}: {}\n", tensor.name, tensor_text(tensor, choice));
    }
    for param in &operator.params {
        let dtype = dtype_text(&param.dtype, choice);
        let value = param.value.as_ref().map_or("bound by each shape".to_string(), |v| format!("= {}", v.text()));
        out += &format!("param {}: {dtype}, {value}\n", param.name);
    }
    out += &reference_text(&operator.reference, own);
    for (tensor, compare) in operator.compare() {
        match compare {
            Compare::Elements => {}
            Compare::ArgmaxOf(of) => {
                out += &format!("{tensor} may be any index whose value in {of} equals the extreme\n")
            }
            Compare::Unordered => out += &format!("rows of {tensor} are compared as multisets\n"),
            Compare::Python(file, function) => out += &format!("{tensor} is compared by {file}::{function}\n"),
        }
    }
    out
}

fn dtype_text(dtype: &TypeRef, choice: &TypeChoice) -> String {
    match (dtype, dtype.under(choice)) {
        (TypeRef::Named(name), Some(dtype)) => format!("{dtype} (type {name})"),
        (_, Some(dtype)) => dtype.to_string(),
        (TypeRef::Named(name), None) => name.clone(),
        (TypeRef::Fixed(dtype), None) => dtype.to_string(),
    }
}

fn tensor_text(tensor: &TensorDecl, choice: &TypeChoice) -> String {
    let extents =
        |of: &[kforge_types::model::expr::Expr]| of.iter().map(|e| e.text().to_string()).collect::<Vec<_>>().join(", ");
    let strides = match &tensor.strides {
        Some(strides) => format!("strides [{}] in elements", extents(strides)),
        None => "contiguous".into(),
    };
    let values = match &tensor.init {
        InitDecl::Fixed(init) => match init {
            kforge_types::model::Init::Auto => String::new(),
            other => format!(", values: {}", serde_json::to_value(other).map_or(String::new(), |v| v.to_string())),
        },
        InitDecl::Range(low, high) => format!(", values from {} to {}", low.text(), high.text()),
        InitDecl::Permutation(n) => format!(", values: a permutation of 0 to {} - 1", n.text()),
        InitDecl::Offsets(total) => format!(", values: offsets that do not decrease, from 0 to {}", total.text()),
    };
    format!(
        "{}, shape [{}], {strides}, aligned to {} bytes{values}",
        dtype_text(&tensor.dtype, choice),
        extents(&tensor.shape),
        tensor.align
    )
}

fn reference_text(reference: &Reference, own: &dyn Fn(&str) -> Option<String>) -> String {
    let of_file = |language: &str, file: &str, function: &str| match own(file) {
        Some(text) => format!("reference: the {language} function {function} of {file}:\n{text}\n"),
        None => format!("reference: the {language} function {function} of {file}\n"),
    };
    match reference {
        Reference::Builtin { .. } => {
            // Attributes are plain values, which always serialize.
            let stated = serde_json::to_value(reference).expect("BUG: a reference that does not serialise");
            format!("reference, exact in float64: {stated}\n")
        }
        Reference::Python { file, function } => of_file("Python", file, function),
        Reference::Torch { file, function, call } => {
            // As above.
            let stated = serde_json::to_value(call).expect("BUG: a call that does not serialise");
            format!("{}called with: {stated}\n", of_file("PyTorch", file, function))
        }
        Reference::Cpp { file, function } => of_file("C++", file, function),
    }
}

/// The digest under which answers are recorded: of the contract, and of the architecture that they are for.
pub fn digest(contract: &str, arch: &Arch) -> Digest {
    Digest::of(format!("{contract}\narchitecture {}\n", arch.name()).as_bytes())
}

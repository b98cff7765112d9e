//! Why there are no loaders of an artifact. Knows the conditions; reads nothing.

use super::expressions::Unrenderable;
use crate::release::artifact::ArtifactError;
use kforge_types::model::DType;
use kforge_types::record::machine_code::DamagedArchive;

/// What a loader cannot do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unsupported {
    /// An expression cannot be evaluated at run time.
    #[error("`{text}` cannot be evaluated by a loader: {why}")]
    Expression {
        /// The expression.
        text: String,
        /// The reason.
        why: Unrenderable,
    },
    /// A scalar of this type cannot be passed.
    #[error("a scalar argument has dtype {0}: loaders pass f64, f32, integers and bool by value")]
    Scalar(DType),
    /// A launch names what does not exist.
    #[error("there is no tensor or workspace `{0}`")]
    Buffer(String),
    /// A name could be read as something else in generated code.
    #[error("`{0}` is not a name that generated code can hold")]
    Name(String),
    /// An entry has no symbol.
    #[error("the binary of variant `{variant}` has no symbol for `{entry}`")]
    Symbol {
        /// The variant.
        variant: String,
        /// The entry.
        entry: String,
    },
    /// The machine code cannot be taken apart.
    #[error(transparent)]
    MachineCode(DamagedArchive),
    /// A struct argument has a member that is an address.
    #[error(
        "a struct argument holds an address, which loaders do not pass: pass the address as an argument of its own"
    )]
    AddressInStruct,
    /// A class has no champion.
    #[error("class `{class}` has variant `{variant}`, which is not in the artifact")]
    Variant {
        /// The class.
        class: String,
        /// The variant.
        variant: String,
    },
    /// The name of a class is not a value of the expression that makes classes.
    #[error("`{class}` is not a value of `{per}`")]
    Class {
        /// The class.
        class: String,
        /// The expression.
        per: String,
    },
    /// The architecture is not known.
    #[error("`{0}` is not an architecture")]
    Architecture(String),
    /// No input says on which device a kernel runs.
    #[error("it has no input, which would say on which device it runs")]
    NoInput,
    /// Two targets of a kernel have other arguments.
    #[error("its arguments differ between targets")]
    Interface,
}

/// Why there are no loaders of an artifact.
#[derive(Debug, thiserror::Error)]
pub enum BindingsError {
    /// A kernel needs what loaders cannot do.
    #[error("{kernel} has no loader: {why}")]
    Unsupported {
        /// The kernel with its types and target.
        kernel: String,
        /// The reason.
        why: Unsupported,
    },
    /// A file of the artifact is missing.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// A template is wrong: a bug.
    #[error("BUG: a template of a loader is wrong: {0}")]
    Template(#[from] minijinja::Error),
    /// The package, version or licence could be read as something else in generated code.
    #[error("`{0}` is not a text that generated code can hold: expected letters, digits, spaces and `.-_+()`")]
    Text(String),
    /// A version that Python does not have.
    #[error(
        "version `{0}` has no form in Python: expected `1.2.3`, or `1.2.3-rc.1` with `alpha`, `beta`, `rc` or `dev`"
    )]
    Version(String),
    /// A file cannot be packed.
    #[error("cannot pack a wheel: {0}")]
    Wheel(#[from] zip::result::ZipError),
    /// A document has no JSON form: a bug.
    #[error("BUG: {0}")]
    Json(#[from] serde_json::Error),
    /// A file in memory cannot be written: a bug.
    #[error("BUG: {0}")]
    Memory(#[from] std::io::Error),
}

//! What a table of the manifest may hold, as data: the same tables drive the structural check and the JSON Schema. Knows no particular table.

/// What a value may be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ty {
    /// A string, with a description.
    Str(&'static str),
    /// A string of a vocabulary that the schema lists, with a description.
    Known(Vocabulary, &'static str),
    /// An integer.
    Int,
    /// An integer or a float.
    Number,
    /// `true` or `false`.
    Bool,
    /// Only `true`.
    True,
    /// One of these words; the second list holds words of later versions.
    Words(&'static [&'static str], &'static [&'static str]),
    /// An expression as a string, or a number or truth value of its kind; with the kind of value that it must give.
    Expr(&'static str),
    /// A list.
    List(&'static Ty),
    /// A list with a minimum and a maximum length.
    Some(&'static Ty, usize, usize),
    /// A table of these fields.
    Table(&'static Spec),
    /// A table with free keys.
    Map(&'static str, &'static Ty),
    /// One of several kinds.
    Any(&'static [Ty]),
    /// A tolerance table, or a table of tolerances by dtype or written tensor.
    Tolerance,
}

/// Words that the schema lists. Decoding checks them itself, with messages that say more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// Dtypes.
    Dtype,
    /// Dtypes, or the name of one of the operator's types.
    DtypeOrType,
    /// `cpu` and architectures of GPUs.
    Arch,
    /// Built-in operators as `builtin:name`, or functions.
    Reference,
    /// Names of built-in operators.
    Builtin,
}

/// A table.
#[derive(Debug)]
pub(super) struct Spec {
    /// What the table is about.
    pub(super) doc: &'static str,
    /// Its keys.
    pub(super) fields: &'static [Field],
    /// For other keys: what they are, and what they hold.
    pub(super) rest: Option<(&'static str, Ty)>,
}

/// A key of a table.
#[derive(Debug)]
pub(super) struct Field {
    /// The key.
    pub(super) name: &'static str,
    /// What its value may be.
    pub(super) ty: Ty,
    /// Whether it is required.
    pub(super) required: bool,
    /// What it means.
    pub(super) doc: &'static str,
}

/// An optional key.
pub(super) const fn opt(name: &'static str, ty: Ty, doc: &'static str) -> Field {
    Field { name, ty, required: false, doc }
}

/// A required key.
pub(super) const fn req(name: &'static str, ty: Ty, doc: &'static str) -> Field {
    Field { name, ty, required: true, doc }
}

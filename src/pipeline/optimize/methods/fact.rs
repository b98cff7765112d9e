//! Facts about an operator, a kernel and its machine code that decide whether a method makes sense. Knows how to derive each fact from declarations and
//! inspections; a fact that cannot be derived is unknown.

use std::collections::BTreeMap;

use serde::Deserialize;

use kforge_types::model::{DType, Kernel, Operator, Reference, TypeChoice};
use kforge_types::record::Inspection;

/// A fact, which holds or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// The operator multiplies matrices.
    MatrixProduct,
    /// The operator normalizes exponentials.
    Softmax,
    /// The operator combines values along a dim.
    Reduces,
    /// The operator is a convolution.
    Convolution,
    /// A tensor holds single precision.
    Float32,
    /// A tensor holds f16 or bf16.
    LowPrecision,
    /// A tensor holds floats of eight bits or fewer.
    Float8,
    /// A tensor holds integers of eight bits or fewer.
    PackedIntegers,
    /// Every tensor is contiguous.
    Contiguous,
    /// The kernel has several launches.
    SeveralLaunches,
    /// The machine code uses shared memory.
    SharedMemory,
    /// The machine code waits at barriers of a block.
    Barriers,
    /// The machine code has atomic operations.
    Atomics,
    /// The machine code keeps values in local memory because registers run out.
    Spills,
    /// The machine code computes exponentials.
    Exponentials,
    /// The machine code divides integers by a value that is unknown at compile time.
    IntegerDivision,
    /// The machine code copies by tensor maps.
    TensorCopies,
}

impl Fact {
    /// Every fact.
    pub const ALL: [Fact; 17] = [
        Fact::MatrixProduct,
        Fact::Softmax,
        Fact::Reduces,
        Fact::Convolution,
        Fact::Float32,
        Fact::LowPrecision,
        Fact::Float8,
        Fact::PackedIntegers,
        Fact::Contiguous,
        Fact::SeveralLaunches,
        Fact::SharedMemory,
        Fact::Barriers,
        Fact::Atomics,
        Fact::Spills,
        Fact::Exponentials,
        Fact::IntegerDivision,
        Fact::TensorCopies,
    ];

    /// Its name in data files and parameters: `matrix_product`.
    pub fn name(self) -> &'static str {
        match self {
            Fact::MatrixProduct => "matrix_product",
            Fact::Softmax => "softmax",
            Fact::Reduces => "reduces",
            Fact::Convolution => "convolution",
            Fact::Float32 => "float32",
            Fact::LowPrecision => "low_precision",
            Fact::Float8 => "float8",
            Fact::PackedIntegers => "packed_integers",
            Fact::Contiguous => "contiguous",
            Fact::SeveralLaunches => "several_launches",
            Fact::SharedMemory => "shared_memory",
            Fact::Barriers => "barriers",
            Fact::Atomics => "atomics",
            Fact::Spills => "spills",
            Fact::Exponentials => "exponentials",
            Fact::IntegerDivision => "integer_division",
            Fact::TensorCopies => "tensor_copies",
        }
    }

    /// The fact as text, to follow "where".
    pub fn text(self) -> &'static str {
        match self {
            Fact::MatrixProduct => "the operator multiplies matrices",
            Fact::Softmax => "the operator normalises exponentials",
            Fact::Reduces => "the operator combines values along a dim",
            Fact::Convolution => "the operator is a convolution",
            Fact::Float32 => "a tensor holds f32",
            Fact::LowPrecision => "a tensor holds f16 or bf16",
            Fact::Float8 => "a tensor holds floats of eight bits or fewer",
            Fact::PackedIntegers => "a tensor holds integers of eight bits or fewer",
            Fact::Contiguous => "every tensor is contiguous",
            Fact::SeveralLaunches => "the kernel has several launches",
            Fact::SharedMemory => "the kernel uses shared memory",
            Fact::Barriers => "the kernel waits at barriers",
            Fact::Atomics => "the kernel has atomic operations",
            Fact::Spills => "registers spill",
            Fact::Exponentials => "the kernel takes exponentials",
            Fact::IntegerDivision => "the kernel divides integers",
            Fact::TensorCopies => "the kernel copies by tensor maps",
        }
    }
}

/// Which facts are known to hold, and which are known not to. An absent fact is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts(pub BTreeMap<Fact, bool>);

impl Facts {
    /// By name, for the parameters of steps.
    pub fn named(&self) -> BTreeMap<String, bool> {
        self.0.iter().map(|(fact, holds)| (fact.name().to_string(), *holds)).collect()
    }

    /// The facts of an operator under a choice of types, of a kernel, and of its machine code if it was inspected. Facts from opcodes need a disassembly.
    pub fn of(operator: &Operator, choice: &TypeChoice, kernel: &Kernel, inspection: Option<&Inspection>) -> Self {
        let mut facts = BTreeMap::new();
        // What a package's own reference computes is unknown.
        if let Reference::Builtin { name, .. } = &operator.reference {
            let one_of = |names: &[&str]| names.contains(&name.as_str());
            facts.insert(Fact::MatrixProduct, one_of(&["matmul", "attention", "conv2d"]));
            facts.insert(Fact::Softmax, one_of(&["softmax", "log_softmax", "cross_entropy", "attention"]));
            facts.insert(Fact::Reduces, !one_of(&["elementwise", "transpose", "gather", "embedding", "dropout"]));
            facts.insert(Fact::Convolution, one_of(&["conv2d"]));
        }
        let dtypes: Vec<DType> = operator.tensors.iter().filter_map(|t| t.dtype.under(choice)).collect();
        let holds = |of: &[DType]| dtypes.iter().any(|d| of.contains(d));
        facts.insert(Fact::Float32, holds(&[DType::F32]));
        facts.insert(Fact::LowPrecision, holds(&[DType::F16, DType::Bf16]));
        facts.insert(Fact::Float8, holds(&[DType::F8e4m3, DType::F8e5m2, DType::F4e2m1x2]));
        facts.insert(Fact::PackedIntegers, holds(&[DType::I8, DType::U8, DType::I4x2]));
        facts.insert(Fact::Contiguous, operator.tensors.iter().all(|t| t.strides.is_none()));
        facts.insert(Fact::SeveralLaunches, kernel.launches.len() > 1);
        if let Some(seen) = inspection.filter(|i| i.disassembled) {
            let has = |starts: &[&str]| {
                let mut opcodes = seen.functions.iter().flat_map(|f| f.opcodes.keys());
                opcodes.any(|o| {
                    starts
                        .iter()
                        .any(|s| o.strip_prefix(s).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
                })
            };
            facts.insert(
                Fact::SharedMemory,
                has(&["LDS", "STS", "ATOMS", "LDSM", "STSM", "LDGSTS", "UBLKCP", "UTMALDG"]),
            );
            facts.insert(Fact::Barriers, has(&["BAR"]));
            facts.insert(Fact::Atomics, has(&["ATOM", "ATOMG", "ATOMS", "RED", "REDG"]));
            facts.insert(Fact::Exponentials, has(&["MUFU.EX2"]));
            facts.insert(Fact::IntegerDivision, has(&["F2I"]) && has(&["MUFU.RCP"]));
            facts.insert(Fact::TensorCopies, has(&["UTMALDG", "UTMASTG", "UTMAREDG"]));
        }
        let spills: Option<Vec<u64>> =
            inspection.and_then(|i| i.functions.iter().map(|f| f.spill_stores).collect::<Option<_>>());
        if let Some(spills) = spills {
            facts.insert(Fact::Spills, spills.iter().any(|bytes| *bytes > 0));
        }
        Facts(facts)
    }
}

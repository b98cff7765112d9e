//! Kernels in Triton without a compiler: which machine code a shape needs, what it would ask of its launches, and both as an artifact describes them.

use std::collections::BTreeMap;
use std::fs;

use crate::lab::root;
use kforge::model::bound::{Buffer, Launch};
use kforge::model::description::LaunchSequence;
use kforge::model::triton::SpecialisedFunction;
use kforge::model::{Kernel, Language, Operator, Problem, TypeChoice, Variant};
use kforge::plan::triton::Compiled;
use kforge::record::contract::{self, TritonFacts};
use kforge::record::contract_description;
use kforge::record::params::CompileFacts;
use kforge::source::python::functions;

/// The machine code of a variant that serves a shape.
#[derive(Clone)]
pub(crate) struct Specialised {
    pub(crate) class: String,
    pub(crate) described: LaunchSequence,
    bound: Vec<Launch>,
    pub(crate) entries: Vec<String>,
    facts: Vec<TritonFacts>,
}

impl Specialised {
    /// The launches as kforge itself makes them. Adds scratch to the workspaces.
    pub(crate) fn launches(&self, workspaces: &mut Vec<Buffer>) -> Vec<Launch> {
        let mut launches = self.bound.clone();
        let facts = CompileFacts { triton: self.facts.clone(), ..CompileFacts::default() };
        contract::complete(&mut launches, workspaces, &self.entries, &facts).unwrap();
        launches
    }
}

/// The machine code of a variant for a problem; none if the kernel is not written in Triton.
pub(crate) fn specialised(
    operator: &Operator,
    kernel: &Kernel,
    variant: &Variant,
    choice: &TypeChoice,
    problem: &Problem,
) -> Option<Specialised> {
    if kernel.language != Language::Triton {
        return None;
    }
    let folders = ["examples/triton", "tests/gpu/triton"].map(|folder| root().join(folder).join(&kernel.source));
    let source = fs::read_to_string(folders.iter().find(|path| path.is_file()).unwrap()).unwrap();
    let functions: BTreeMap<_, _> = functions(&source);
    let compiled = Compiled { kernel, variant, choice, functions: &functions };
    let found = compiled.at(problem).unwrap();
    // On sm_90 a descriptor that a kernel makes lies in global scratch.
    let descriptors = source.matches("make_tensor_descriptor").count() as u64;
    let of = |(at, function): (usize, &SpecialisedFunction)| TritonFacts {
        version: [3, 9],
        name: function.compile.function.clone(),
        // The compiler may add warps.
        num_warps: function.compile.options.num_warps + if descriptors > 0 { 4 } else { 0 },
        num_ctas: function.compile.options.num_ctas,
        shared: 256 * u64::from(function.compile.options.num_stages) + 128 * at as u64,
        global_scratch_size: 128 * descriptors,
        global_scratch_align: if descriptors > 0 { 128 } else { 1 },
        profile_scratch_size: 0,
        profile_scratch_align: 1,
        cooperative: false,
        pdl: false,
        // Descriptors of the host are passed in parts.
        descriptors: 0,
        maps: vec![],
    };
    let facts: Vec<TritonFacts> = found.functions.iter().enumerate().map(of).collect();
    let entries = found.entries();
    let mut described = compiled.described(problem).unwrap();
    let tensors = operator.interface(choice).unwrap().tensors;
    contract_description::complete(&mut described, &tensors, &entries, &facts).unwrap();
    Some(Specialised { class: found.class, described, bound: found.launches, entries, facts })
}

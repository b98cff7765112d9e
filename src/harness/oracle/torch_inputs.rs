//! Inputs that a function of the package makes with PyTorch. Each call is a confined copy of a process that has imported PyTorch. The head of `torch_inputs.py`
//! documents what such a function may rely on.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::call::{Call, InFile};
use super::python::{arguments, made, places};
use super::source::Named;
use super::torch::invoke;
use crate::message::Response;
use crate::task::Task;
use kforge_types::model::{Problem, Role};
use kforge_types::record::params::Trial;

const DRIVER: &str = concat!(
    include_str!("known.py"),
    "\n\n",
    include_str!("read_call.py"),
    "\n\n",
    include_str!("torch_imports.py"),
    "\n\n",
    include_str!("torch_module.py"),
    "\n\n",
    include_str!("torch_processor.py"),
    "\n\n",
    include_str!("torch_inputs.py")
);

/// The call, as the driver reads it.
#[derive(Serialize)]
struct InputsCall<'a> {
    seed: u64,
    arguments: BTreeMap<String, Value>,
    outputs: &'a [(String, InFile)],
}

/// Makes inputs with a function: those that it returns, each rounded to the type of its tensor.
pub(super) fn inputs(
    task: &Task,
    problem: &Problem,
    trial: &Trial,
    (file, function): (&str, &str),
) -> Result<Named, Response> {
    let call = Call::new(task)?;
    let outputs = places(problem, |tensor| tensor.role != Role::Output);
    let described = InputsCall { seed: trial.seed, arguments: arguments(problem), outputs: &outputs };
    invoke(task, &call, (DRIVER, file, function), &described)?;
    made(&call, problem, &outputs)
}

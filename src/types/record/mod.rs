//! What is reported and stored: verdicts, outcomes, specs of steps, their results and observations, device classes, provenance, events.
//! Values only: knows no files, clock or processes, and computes nothing but names.

pub mod answer;
pub mod candidate;
pub mod class;
pub mod contract;
pub mod contract_description;
pub mod device;
pub mod diagnosis;
pub mod event;
pub mod fatbin;
#[cfg(test)]
mod golden;
pub mod implementation;
pub mod inspection;
pub mod kind;
pub mod machine_code;
pub mod metric;
pub mod observation;
pub mod params;
pub mod peaks;
pub mod profile;
pub mod result;
pub mod round;
pub mod search;
pub mod spec;
pub mod standing;
#[doc(hidden)]
pub mod testing;
pub mod timing;
pub mod tool_message;
pub mod verdict;

pub use class::{DeviceClass, Provenance};
pub use device::{Device, Devices, Uuids};
pub use diagnosis::{Arrangement, Axis, Diagnosis, Fit, Function, WrongPattern};
pub use implementation::Implementations;
pub use inspection::{FunctionFacts, Inspection};
pub use kind::{Lane, Platform, Runs, StepKind, Validity};
pub use observation::{
    CheckObserved, Determinism, Finding, FindingKind, Fresh, FreshTrial, FrontPoint, OutputObserved, Space,
    TrialObserved, VerifyObservation,
};
pub use result::{LaunchField, LaunchPart, Note, StepResult};
pub use spec::{Form, Input, Spec};
pub use standing::Standing;
pub use tool_message::{SourcePlace, ToolMessage};
pub use verdict::{Outcome, Unknown, Verdict};

/// The version of the formats that this program writes into events, evidence and reports. Version 2 has the reason `indecisive` of a verdict that is unknown,
/// which version 1 rules out.
pub const FORMAT_VERSION: u32 = 2;

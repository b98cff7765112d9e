//! The types of kforge's own interface: what a client sends, and what it gets. Knows JSON; runs nothing.
//!
//! Fields are only added, and a client ignores what it does not know. A request with a field that does not exist is refused, because a misspelt field would
//! otherwise be ignored.

mod request;
mod result;
mod table;
mod task;

pub use request::{
    Batch, BatchAnswer, BatchEntry, Candidate, EvaluationRequest, Language, MOST_IN_BATCH, Measure, OperatorCandidate,
    PackageCandidate, Priority,
};
pub use result::{
    Cause, EvaluationResult, FindingReport, HoldoutReport, KernelResult, MessageResult, MessageSeverity, ShapeResult,
    TimeResult, VariantResult, VerdictWord,
};
pub use table::{Table, TableValue};
pub use task::{
    ErrorAnswer, ErrorCode, Health, HealthStatus, Progress, StepDone, Task, TaskList, TaskStatus, TaskSummary,
};

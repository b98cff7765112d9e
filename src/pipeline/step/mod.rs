//! One file a kind: what a step of that kind does with its spec. Pure kinds run here, in the coordinator; the others hand their spec to a worker process.
//! Knows specs and workers; does not know the plan, packages or caches.

pub mod attribute;
pub mod calibrate;
pub mod generate;
pub mod io;
pub mod judge;
pub mod matching;
pub mod roofline;
pub mod round;
pub mod runners;
pub mod search;
pub mod select;

pub use runners::Runners;

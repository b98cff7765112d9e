//! Settings from files, environment and flags; the only reader of the environment. A setting may change how work is done, but not what a result is, except
//! through values that enter keys. Does not know packages or steps.

pub mod environment;
pub mod keys;
pub mod settings;

pub use environment::Environment;
pub use settings::{Origin, Settings, Value};

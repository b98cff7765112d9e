//! Settings from files, environment and flags. The only code that reads the environment. A setting may change how work is done, but it changes a result only
//! through values that enter keys. Does not know packages or steps.

pub mod environment;
pub mod keys;
pub mod server_url;
pub mod settings;

pub use environment::Environment;
pub use server_url::{NotAServer, ServerUrl};
pub use settings::{Origin, Settings, Value};

//! Digests, the canonical encoding of keys, diagnostics with spans, atomic files. Knows nothing of kernels, steps or the environment.

pub mod count;
pub mod diag;
pub mod digest;
pub mod encode;
pub mod files;
pub mod hidden;
pub mod lock;
pub mod pieces;
pub mod render;
#[doc(hidden)]
pub mod testing;
pub mod witness;
pub mod words;

pub use count::count;
pub use diag::{Diagnostic, Label, Severity, SourceFile, Span};
pub use digest::Digest;
pub use hidden::{is_hidden, unhidden};
pub use witness::Witness;
pub use words::{plain, worded};

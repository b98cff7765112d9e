//! Templates: kernels made from their operators. A template is a declaration (`template.toml`) and a source (`kernel.cu.j2`), both rendered with what is known
//! of the operator; what comes out is an ordinary kernel. The built-in ones lie in `templates/generate/`, a package's own in folders of it; they are alike.
//!
//! | part | knows |
//! |---|---|
//! | [`builtin`] | which templates kforge has |
//! | [`make`] | operator, kernel and template to a complete kernel: a pure function |
//! | `context` | what of an operator templates are told |
//! | `render` | rendering, and how templates refuse |
//! | `rows` | an operator seen as rows that are reduced |
//! | `fused` | an elementwise operator as code: what is read where, and the expressions |
//! | `cpp` | expressions in CUDA C++ |

mod builtin;
mod context;
mod cpp;
mod fused;
mod make;
mod render;
mod rows;
#[cfg(test)]
mod tests;

pub use builtin::{builtin, names};
pub use make::make;

use kforge_project::workspace::generated::Templates;

/// Every template there is, for loading workspaces.
pub const TEMPLATES: Templates = Templates { builtin, names, make };

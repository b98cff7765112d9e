//! Templates: kernels made from their operators. A template is a declaration (`template.toml`) and a source (`kernel.cu.j2`, in Triton `kernel.py.j2`), both
//! rendered with what is known of the operator. The result is an ordinary kernel. Built-in templates are in `templates/generate/`, a package's own in its folders; both have the same form.
//!
//! | part | knows |
//! |---|---|
//! | [`builtin`] | which templates kforge has |
//! | [`make`] | from operator, kernel and template to a complete kernel: a pure function |
//! | `context` | what templates receive about an operator |
//! | `render` | rendering, and how templates refuse |
//! | `rows` | an operator seen as rows that are reduced |
//! | `fused` | an elementwise operator as code: the elements that it reads, and the expressions |
//! | `cpp` | expressions in CUDA C++ |
//! | `python` | expressions in Triton |

mod builtin;
mod context;
mod cpp;
mod fused;
mod instantiate;
mod python;
mod render;
mod rows;
#[cfg(test)]
mod tests;

pub use builtin::{builtin, names};
pub use instantiate::make;

use kforge_project::workspace::generated::Templates;

/// The built-in templates, for loading workspaces.
pub const TEMPLATES: Templates = Templates { builtin, names, make };

//! Reads `kernel.toml`. One set of field tables drives the structural check and the schema; then values are read with their types. See [`parse`].

mod baseline_fields;
mod check;
mod decode;
mod decode_agent;
mod decode_baseline;
mod decode_candidate;
mod decode_host;
mod decode_kernel;
mod decode_launch;
mod decode_operator;
mod decode_search;
mod decode_shape;
mod decode_torch;
mod decode_triton;
mod fields;
mod policy_fields;
mod read;
mod schema;
mod spec;
mod torch_fields;
mod unclosed;

#[cfg(test)]
mod tests;

pub use decode::parse;
pub use decode_kernel::parse_template;
pub(crate) use decode_shape::RawShape;
pub use schema::schema;

//! Reading `kernel.toml`: the structural check and the schema from one set of field tables, then typed values. See [`parse`].

mod check;
mod decode;
mod decode_kernel;
mod decode_operator;
mod fields;
mod read;
mod schema;
mod spec;

#[cfg(test)]
mod tests;

pub use decode::parse;
pub(crate) use decode_operator::RawShape;
pub use schema::schema;

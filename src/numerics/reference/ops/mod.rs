//! The built-in operators, one file per family.

pub(super) mod attention;
pub(super) mod conv;
pub(super) mod dropout;
pub(super) mod elementwise;
pub(super) mod index;
pub(super) mod loss;
pub(super) mod matmul;
pub(super) mod norm;
pub(super) mod reduce;
pub(super) mod scan;
pub(super) mod softmax;

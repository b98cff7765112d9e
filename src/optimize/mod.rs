//! What could make a kernel, and make it faster: templates that make one from its operator, and the registry of methods. Knows what each method is for, when it
//! applies and what shows it, and what each template serves; does not plan, run or measure anything. Pure.

pub mod contract;
pub mod methods;
pub mod templates;

//! What could make a kernel faster: the registry of methods. Knows what each method is for, when it applies and what shows it; does not plan, run or measure
//! anything. Pure.

pub mod methods;

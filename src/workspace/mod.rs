//! From a folder to packages: the root, its members, what each inherits, what was selected, which files each kernel can reach. Reads files; does not plan.

pub mod find;
pub mod includes;
pub mod closure;

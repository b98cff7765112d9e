//! From a folder to packages: the root, its members, what each inherits, what was selected, which files each kernel can reach, what is locked. Reads files;
//! does not plan.

pub mod accepted;
pub mod changes;
pub mod closure;
pub mod declaration;
pub mod edit;
pub mod entries;
pub mod find;
pub mod generated;
pub mod includes;
pub mod join;
pub mod load;
pub mod lockfile;
mod members;
pub mod select;

pub use load::{Member, Workspace, load};

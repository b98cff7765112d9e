//! From a folder to packages: the root, its members, what each member inherits, the selection, the files that each kernel can reach, and the lockfile. Reads
//! files; does not plan.

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

pub use load::{Member, Workspace, load, root_folder};

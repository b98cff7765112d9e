//! The `[workspace]` table: members and what they can inherit. Knows globs as text; does not look for folders.

use std::collections::BTreeMap;

use super::Text;
use super::package::Inheritable;
use super::target::{CudaSpec, Dependency, Target, TorchSpec};

/// The root manifest's `[workspace]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkspaceTable {
    /// Globs of the members' folders.
    pub members: Vec<String>,
    /// Globs of folders that are not members.
    pub exclude: Vec<String>,
    /// Globs of the members on which commands in the root act. If empty, all members.
    pub default_members: Vec<String>,
    /// `[workspace.package]`.
    pub package: BTreeMap<&'static str, Text>,
    /// `[workspace.targets]`.
    pub targets: BTreeMap<String, Target>,
    /// `cuda` of `[workspace.toolchain]`.
    pub cuda: Option<CudaSpec>,
    /// `triton` of `[workspace.toolchain]`.
    pub triton: Option<Text>,
    /// `torch` of `[workspace.toolchain]`.
    pub torch: Option<TorchSpec>,
    /// `[workspace.dependencies]`; paths are relative to the root.
    pub dependencies: BTreeMap<String, Dependency>,
}

/// `[package]` as written.
#[derive(Debug, Clone, PartialEq)]
pub struct PackageTable {
    /// Its name.
    pub name: Text,
    /// Its version.
    pub version: Option<Inheritable<Text>>,
    /// Its license.
    pub license: Option<Inheritable<Text>>,
    /// The oldest kforge that can build it.
    pub kforge: Option<Inheritable<Text>>,
}

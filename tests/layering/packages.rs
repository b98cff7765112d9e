//! The packages of the workspace: their folders, their names in code, and the parts of them that execute steps. Knows each `parts.rs`; decides nothing.

use std::path::{Path, PathBuf};

#[path = "../../build/package.rs"]
pub(crate) mod digest;

use digest::Part;

/// A package of the workspace.
pub(crate) struct Package {
    /// The folder below `src`; `cli` for the root package's own code.
    pub(crate) name: &'static str,
    /// The package's name in the code of other packages.
    pub(crate) crate_name: &'static str,
    /// Whether it has several rooms, each a folder.
    pub(crate) rooms: bool,
    /// The parts whose code enters keys.
    pub(crate) parts: &'static [Part],
    /// The code that does not, and why.
    pub(crate) apart: &'static [(&'static str, &'static str)],
}

// The `parts.rs` of each package.
#[path = "../../src/cuda/parts.rs"]
mod cuda;
#[path = "../../src/emulator/parts.rs"]
mod emulator;
#[path = "../../src/foundation/parts.rs"]
mod foundation;
#[path = "../../src/harness/parts.rs"]
mod harness;
#[path = "../../src/numerics/parts.rs"]
mod numerics;
#[path = "../../src/pipeline/parts.rs"]
mod pipeline;
#[path = "../../src/project/parts.rs"]
mod project;
#[path = "../../src/types/parts.rs"]
mod types;
#[path = "../../src/worker/parts.rs"]
mod worker;

macro_rules! package {
    ($name:ident, $rooms:literal) => {
        Package {
            name: stringify!($name),
            crate_name: concat!("kforge_", stringify!($name)),
            rooms: $rooms,
            parts: $name::PARTS,
            apart: $name::APART,
        }
    };
}

/// All packages except the root package, which executes no step.
pub(crate) const PACKAGES: &[Package] = &[
    package!(foundation, true),
    package!(types, true),
    package!(numerics, true),
    package!(project, true),
    Package {
        name: "engine",
        crate_name: "kforge_engine",
        rooms: false,
        parts: &[],
        apart: &[(".", "carries specs and results, and looks into neither")],
    },
    Package {
        name: "remote",
        crate_name: "kforge_remote",
        rooms: false,
        parts: &[],
        apart: &[(".", "carries results and contents, and looks into neither")],
    },
    package!(harness, false),
    package!(emulator, false),
    package!(cuda, false),
    package!(worker, false),
    package!(pipeline, true),
    Package {
        name: "ops",
        crate_name: "kforge_ops",
        rooms: false,
        parts: &[],
        apart: &[(".", "decides which steps there are by plans, and does none")],
    },
    Package {
        name: "serve",
        crate_name: "kforge_serve",
        rooms: false,
        parts: &[],
        apart: &[(".", "asks for builds, and does no step")],
    },
];

impl Package {
    /// Its folder.
    pub(crate) fn folder(&self) -> PathBuf {
        src().join(self.name)
    }
}

/// Every Rust file below a folder.
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().map(Result::unwrap);
    let files = walk.filter(|e| e.file_type().is_file()).map(walkdir::DirEntry::into_path);
    files.filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

/// The folder of sources.
pub(crate) fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

//! Grids that depend on the device: `sm_count * occupancy`. Knows the two names and how such a grid becomes numbers on a device; knows no device except the
//! emulator.
//!
//! The key of a step leaves the device out. Such a launch therefore enters the key as its expressions and the values of their other names. Its `grid` is 0, 0,
//! 0, which cannot be launched. Whoever runs the launch fills in the numbers of the device that runs it. Evidence from another product therefore comes from
//! another grid of the same expressions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bound::{KernelLaunch, Launch};
use super::expr::{Expr, Scope, Value, Want};
use super::place::Place;
use kforge_foundation::base::{Diagnostic, SourceFile};

/// Multiprocessors of the device.
pub const SM_COUNT: &str = "sm_count";
/// How many blocks of the launched entry, with its threads and shared memory, a multiprocessor holds at once.
pub const OCCUPANCY: &str = "occupancy";

/// Maximum blocks of a grid along x, y, z (CUDA C++ programming guide, compute capabilities).
pub(crate) const GRID_LIMITS: [u32; 3] = [0x7fff_ffff, 65535, 65535];

/// The numbers of a device that grids may depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// [`SM_COUNT`].
    pub processors: u32,
    /// [`OCCUPANCY`].
    pub occupancy: u32,
}

/// The numbers of the emulator: few blocks, so that each block works on several tiles, and more than one block per multiprocessor. Changing them changes what
/// verifications on `cpu` observe, and needs a new version of their protocol.
pub const EMULATED: Room = Room { processors: 8, occupancy: 2 };

/// The numbers with which grids are tried when a manifest is read. They are larger than those of most devices, so a grid that does not fit with them fits
/// nowhere.
pub(crate) const TRIED: Room = Room { processors: 128, occupancy: 2 };

/// A value of a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum NameValue {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(String),
}

impl NameValue {
    fn of(value: &Value) -> Self {
        match value {
            Value::Bool(b) => NameValue::Bool(*b),
            Value::Int(i) => NameValue::Int(*i),
            Value::Float(f) => NameValue::Float(*f),
            Value::Str(s) => NameValue::Str(s.clone()),
        }
    }

    fn value(&self) -> Value {
        match self {
            NameValue::Bool(b) => Value::Bool(*b),
            NameValue::Int(i) => Value::Int(*i),
            NameValue::Float(f) => Value::Float(*f),
            NameValue::Str(s) => Value::Str(s.clone()),
        }
    }
}

/// A grid that is known only on the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OpenGrid {
    /// Blocks along x, y, z as the manifest states them; one along axes that are left out.
    pub extents: Vec<String>,
    /// The values of the names in `extents`, without [`SM_COUNT`] and [`OCCUPANCY`].
    pub names: BTreeMap<String, NameValue>,
}

impl OpenGrid {
    /// The grid of these expressions; none if it does not depend on the device.
    pub(crate) fn of(extents: &[Expr], scope: &Scope) -> Option<Self> {
        let names = || extents.iter().flat_map(Expr::names);
        names().find(|name| is_of_device(name))?;
        let known = |name: &str| Some((name.to_string(), NameValue::of(scope.get(name)?)));
        let extents = extents.iter().map(|e| e.text().to_string()).collect();
        Some(OpenGrid { extents, names: names().filter_map(known).collect() })
    }

    /// The number of blocks for the numbers of a device, or why there is none.
    fn blocks(&self, room: Room) -> Result<[u32; 3], GridError> {
        let mut scope: Scope = self.names.iter().map(|(name, known)| (name.clone(), known.value())).collect();
        scope.extend(room.names());
        let mut blocks = [1; 3];
        for (axis, text) in self.extents.iter().enumerate().take(3) {
            // Errors point into the text of the expression, because a launch does not know its place in the manifest.
            let file = Arc::new(SourceFile { name: "grid".into(), text: text.as_str().into() });
            let place = Place::new(&file, 0..text.len());
            let value = Expr::parse(text, Want::Int, place).and_then(|expr| expr.int(&scope));
            let value = value.map_err(|error| GridError::Expression { error: Box::new(error), room })?;
            let fits = u32::try_from(value).ok().filter(|n| (1..=GRID_LIMITS[axis]).contains(n));
            blocks[axis] = fits.ok_or_else(|| GridError::Blocks {
                text: text.clone(),
                blocks: value,
                along: AXES[axis],
                most: GRID_LIMITS[axis],
                room,
            })?;
        }
        Ok(blocks)
    }
}

/// Why a launch has no grid on a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GridError {
    /// An expression has no value on the device.
    #[error("{}, {room}", .error.message)]
    Expression {
        /// What is wrong with the expression.
        error: Box<Diagnostic>,
        /// The device.
        room: Room,
    },
    /// An expression gives more or fewer blocks than an axis can have.
    #[error("`{text}` is {blocks} blocks along {along}, {room}: 1 to {most} are possible")]
    Blocks {
        /// The expression.
        text: String,
        /// The number of blocks that the expression gives.
        blocks: i64,
        /// The axis: `x`, `y` or `z`.
        along: &'static str,
        /// The largest number that is possible.
        most: u32,
        /// The device.
        room: Room,
    },
    /// The number of blocks is not a multiple of the cluster's.
    #[error("{blocks} blocks along {along} are not a multiple of the cluster's {cluster}, {room}")]
    Clusters {
        /// The blocks.
        blocks: u32,
        /// The axis: `x`, `y` or `z`.
        along: &'static str,
        /// Blocks of a cluster along the axis.
        cluster: u32,
        /// The device.
        room: Room,
    },
}

/// A launch that has no grid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` cannot be launched: {why}")]
pub struct NotLaunched {
    /// The entry.
    pub entry: String,
    /// Why there is no grid.
    #[source]
    pub why: GridError,
}

/// Names of the axes.
const AXES: [&str; 3] = ["x", "y", "z"];

/// Whether a name is a number of the device.
pub(crate) fn is_of_device(name: &str) -> bool {
    matches!(name, SM_COUNT | OCCUPANCY)
}

impl Room {
    /// The two names and their values.
    pub(crate) fn names(self) -> [(String, Value); 2] {
        let value = |n: u32| Value::Int(n.into());
        [(SM_COUNT.into(), value(self.processors)), (OCCUPANCY.into(), value(self.occupancy))]
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "with {SM_COUNT} = {} and {OCCUPANCY} = {}", self.processors, self.occupancy)
    }
}

impl KernelLaunch {
    /// The blocks of this launch on a device: the stated blocks, or the values of its expressions on the device. The error says why it cannot be launched.
    pub fn grid_in(&self, room: Room) -> Result<[u32; 3], GridError> {
        let Some(open) = &self.open_grid else { return Ok(self.grid) };
        let blocks = open.blocks(room)?;
        let cluster = self.cluster.unwrap_or([1; 3]);
        match (0..3).find(|axis| !blocks[*axis].is_multiple_of(cluster[*axis])) {
            None => Ok(blocks),
            Some(axis) => {
                Err(GridError::Clusters { blocks: blocks[axis], along: AXES[axis], cluster: cluster[axis], room })
            }
        }
    }
}

/// The launches with the grids that the emulator uses. The error says which launch is impossible and why.
pub fn emulated(launches: &[Launch]) -> Result<Vec<Launch>, NotLaunched> {
    launches
        .iter()
        .map(|launch| match launch {
            Launch::Kernel(kernel) => {
                let why = |why| NotLaunched { entry: kernel.entry.clone(), why };
                let grid = kernel.grid_in(EMULATED).map_err(why)?;
                Ok(Launch::Kernel(KernelLaunch { grid, open_grid: None, ..kernel.clone() }))
            }
            Launch::Memset { .. } => Ok(launch.clone()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(extents: &[&str], names: &[(&str, NameValue)]) -> KernelLaunch {
        let extents = extents.iter().map(ToString::to_string).collect();
        let names = names.iter().map(|(name, known)| (name.to_string(), known.clone())).collect();
        KernelLaunch { entry: "k".into(), open_grid: Some(OpenGrid { extents, names }), ..KernelLaunch::default() }
    }

    const H200: Room = Room { processors: 132, occupancy: 3 };

    #[test]
    fn a_grid_is_what_the_device_makes_of_it() {
        let launch = open(
            &["min(sm_count * occupancy, tiles)", "2 if T == \"f16\" else 1"],
            &[("tiles", NameValue::Int(300)), ("T", NameValue::Str("f16".into()))],
        );
        assert_eq!(launch.grid_in(H200), Ok([300, 2, 1]));
        assert_eq!(launch.grid_in(EMULATED), Ok([16, 2, 1]));
        let text = serde_json::to_string(&launch).unwrap();
        assert_eq!(serde_json::from_str::<KernelLaunch>(&text).unwrap(), launch);
    }

    #[test]
    fn what_no_device_of_that_size_takes_is_said_with_its_numbers() {
        let none = open(&["sm_count // 200"], &[]).grid_in(H200).unwrap_err().to_string();
        let said = "`sm_count // 200` is 0 blocks along x, with sm_count = 132 and occupancy = 3: 1 to 2147483647 are possible";
        assert_eq!(none, said);
        let zero = open(&["64 // (sm_count - 132)"], &[]).grid_in(H200).unwrap_err().to_string();
        assert!(zero.contains("zero") && zero.contains("sm_count = 132"), "{zero}");
        let odd = KernelLaunch { cluster: Some([1, 2, 1]), ..open(&["1", "occupancy"], &[]) };
        assert!(
            odd.grid_in(H200)
                .unwrap_err()
                .to_string()
                .starts_with("3 blocks along y are not a multiple of the cluster's 2")
        );
    }

    #[test]
    fn the_emulator_is_a_small_device() {
        let fixed = KernelLaunch { grid: [7, 1, 1], ..KernelLaunch::default() };
        let memset = Launch::Memset { buffer: "y".into(), value: 0 };
        let all = [Launch::Kernel(open(&["sm_count * occupancy"], &[])), memset.clone(), Launch::Kernel(fixed.clone())];
        let known = emulated(&all).unwrap();
        let Launch::Kernel(first) = &known[0] else { panic!("a kernel") };
        assert_eq!((first.grid, &first.open_grid), ([16, 1, 1], &None));
        assert_eq!(known[1..], [memset, Launch::Kernel(fixed)]);
        let why = emulated(&[Launch::Kernel(open(&["sm_count - 8"], &[]))]).unwrap_err().to_string();
        assert!(why.starts_with("`k` cannot be launched: `sm_count - 8` is 0 blocks"), "{why}");
    }
}

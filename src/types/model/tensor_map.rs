//! Tensor maps: how a copy engine sees a tensor, as a launch passes it by value. Knows the driver's requirements, so that errors in a manifest are found before
//! a device reports them; does not encode tensor maps.
//!
//! All requirements are those of `cuTensorMapEncodeTiled` (CUDA driver API 13.0, "Tensor Map Object Management"). Axes are counted like the hardware's
//! coordinates: the innermost first, which is the last axis of a shape. A descriptor of Triton has the same requirements, but its block may be larger than a box,
//! which the compiler chooses.

use serde::{Deserialize, Serialize};

use super::DType;
use super::bind::count;
use super::expr::{Expr, Scope};
use super::place::{Place, Text};
use kforge_foundation::base::Diagnostic;

/// Bytes of a tensor map as a parameter (`CUtensorMap`).
pub const BYTES: u64 = 128;
/// The lowest capability that has copy engines for tensors.
pub const LEAST: u32 = 90;
/// Possible spans of swizzles in bytes; 0 for no swizzle.
const SWIZZLES: [u64; 4] = [0, 32, 64, 128];
/// Possible widths of fetches in the L2 cache, in bytes; 0 for no widening.
const PROMOTIONS: [u64; 4] = [0, 64, 128, 256];
/// Required alignment of addresses, strides and rows of a box, in bytes.
const UNIT: u64 = 16;
/// Maximum number of elements of a box along an axis.
const MOST_OF_A_BOX: u64 = 256;
/// Maximum number of elements of a block in Triton.
const MOST_OF_A_BLOCK: u64 = 1 << 20;
/// Maximum number of axes.
const MOST_AXES: usize = 5;

/// A tensor map with its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TensorMap {
    /// The tensor or workspace.
    pub buffer: String,
    /// Its element type.
    pub dtype: DType,
    /// Extents in elements, innermost first.
    pub extents: Vec<u64>,
    /// Bytes between neighbors along every axis except the innermost.
    pub strides: Vec<u64>,
    /// Elements that one copy moves, along each axis.
    #[serde(rename = "box")]
    pub tile: Vec<u32>,
    /// Bytes over which rows are swizzled in shared memory; 0 for no swizzle.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub swizzle: u32,
    /// Whether elements outside the tensor read as NaN rather than zero.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nan: bool,
    /// Bytes to which fetches are widened in the L2 cache; 0 for no widening.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub l2_promotion: u32,
    /// Whether it is a descriptor of Triton before its binary is known: the box is the block that a load gives, and how the binary takes it is in the binary's
    /// facts ([`crate::record::contract`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub descriptor: bool,
}

impl TensorMap {
    /// The extents, the outermost first.
    pub fn shape(&self) -> impl Iterator<Item = u64> {
        self.extents.iter().rev().copied()
    }

    /// Elements between neighbors along each axis, the outermost first.
    pub fn element_strides(&self) -> impl Iterator<Item = u64> {
        self.strides.iter().rev().map(|bytes| bytes / self.dtype.bytes()).chain([1])
    }

    /// The block of a descriptor of Triton, the outermost extent first.
    pub fn block(&self) -> impl Iterator<Item = u32> {
        self.tile.iter().rev().copied()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A tensor map, before names become numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct MapDecl {
    /// The tensor or workspace.
    pub buffer: Text,
    /// The box, innermost first.
    pub tile: Vec<Expr>,
    /// Where the box is declared.
    pub tile_place: Place,
    /// Bytes over which rows are swizzled.
    pub swizzle: Option<Expr>,
    /// Where it says that elements outside the tensor read as NaN, if it says so.
    pub nan: Option<Place>,
    /// Bytes to which fetches are widened.
    pub l2_promotion: Option<Expr>,
    /// Whether it is a descriptor of Triton, whose box is its block.
    pub descriptor: bool,
}

/// A tensor or workspace that is mapped: outermost axis first, strides in elements.
pub(super) struct Mapped {
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    pub(super) strides: Vec<u64>,
    /// Alignment of its first byte.
    pub(super) align: u64,
}

impl MapDecl {
    /// The map of `of`. Fails if the driver would fail.
    pub(super) fn bind(&self, of: &Mapped, scope: &Scope) -> Result<TensorMap, Diagnostic> {
        let name = &self.buffer;
        let bytes = of.dtype.bytes();
        let wrong = |message: String| name.place.error("manifest.tensor-map", message);
        let rank = of.shape.len();
        if !(1..=MOST_AXES).contains(&rank) {
            let error = wrong(format!("`{name}` has {rank} axes"));
            return Err(error.expected(format!("a tensor of 1 to {MOST_AXES} axes")));
        }
        // Triton passes extents as integers with a sign also.
        let bits = if self.descriptor { 31 } else { 32 };
        let most = if self.descriptor { (1 << bits) - 1 } else { 1 << bits };
        if let Some(axis) = of.shape.iter().position(|extent| !(1..=most).contains(extent)) {
            let error = wrong(format!("axis {axis} of `{name}` has {} elements", of.shape[axis]));
            return Err(error.expected(format!("1 to 2^{bits} elements along every axis")));
        }
        if of.strides[rank - 1] != 1 {
            let error = wrong(format!("elements of `{name}` lie {} apart along its last axis", of.strides[rank - 1]));
            return Err(error.expected("neighbours along the last axis"));
        }
        if !of.align.is_multiple_of(UNIT) {
            let error = wrong(format!("`{name}` is aligned to {} bytes", of.align));
            return Err(error.expected(format!("an `align` of {UNIT} or more")));
        }
        for axis in 0..rank - 1 {
            let stride = of.strides[axis].saturating_mul(bytes);
            if !stride.is_multiple_of(UNIT) || stride >= 1 << 40 {
                let error = wrong(format!("neighbours along axis {axis} of `{name}` lie {stride} bytes apart"));
                let error = error.expected(format!("a multiple of {UNIT} bytes, less than 2^40"));
                return Err(
                    error.hint("leave such shapes to another kernel with `requires`, or give the tensor `strides`")
                );
            }
        }
        let tile = self.tile(rank, scope)?;
        let row = u64::from(tile[0]) * bytes;
        let first = || self.tile.first().map_or(&self.tile_place, Expr::place);
        if !row.is_multiple_of(UNIT) {
            let error = first().error("manifest.tensor-map", format!("a row of the {} has {row} bytes", self.noun()));
            return Err(error.expected(format!("a multiple of {UNIT} bytes")));
        }
        let swizzle = one_of(self.swizzle.as_ref(), &SWIZZLES, "swizzle", scope)?;
        if swizzle > 0 && row > u64::from(swizzle) {
            let error = first().error("manifest.tensor-map", format!("a row of the box has {row} bytes"));
            let error = error.expected(format!("at most the {swizzle} bytes of the swizzle"));
            return Err(error.hint("copy several boxes side by side"));
        }
        if let Some(place) = self.nan.as_ref().filter(|_| !has_nan(of.dtype)) {
            let error =
                place.error("manifest.tensor-map", format!("`{name}` is of dtype {}, which has no NaN", of.dtype));
            return Err(error.expected("`oob = \"zero\"`, or one of f64, f32, f16, bf16"));
        }
        Ok(TensorMap {
            buffer: name.value.clone(),
            dtype: of.dtype,
            extents: of.shape.iter().rev().copied().collect(),
            strides: of.strides.iter().rev().skip(1).map(|stride| stride * bytes).collect(),
            tile,
            swizzle,
            nan: self.nan.is_some(),
            l2_promotion: one_of(self.l2_promotion.as_ref(), &PROMOTIONS, "l2_promotion", scope)?,
            descriptor: self.descriptor,
        })
    }

    fn tile(&self, rank: usize, scope: &Scope) -> Result<Vec<u32>, Diagnostic> {
        if self.tile.len() != rank {
            let message =
                format!("a {} of {} axes for `{}`, which has {rank}", self.noun(), self.tile.len(), self.buffer);
            let error = self.tile_place.error("manifest.tensor-map", message);
            let first = if self.descriptor { "outermost" } else { "innermost" };
            return Err(error.expected(format!("an extent for each axis, the {first} first")));
        }
        if self.descriptor {
            return self.block(scope);
        }
        let extent = |expr: &Expr| {
            let elements = count(expr, scope, "extent")?;
            if !(1..=MOST_OF_A_BOX).contains(&elements) {
                let error = expr.place().error("manifest.tensor-map", format!("`{}` is {elements}", expr.text()));
                return Err(error.expected(format!("1 to {MOST_OF_A_BOX} elements of a box along an axis")));
            }
            Ok(elements as u32)
        };
        self.tile.iter().map(extent).collect()
    }

    /// What the box is called.
    fn noun(&self) -> &'static str {
        if self.descriptor { "block" } else { "box" }
    }

    /// The block of a descriptor of Triton.
    fn block(&self, scope: &Scope) -> Result<Vec<u32>, Diagnostic> {
        let mut elements = 1;
        let mut tile = vec![];
        for expr in &self.tile {
            let extent = count(expr, scope, "extent")?;
            elements = extent.saturating_mul(elements);
            if !extent.is_power_of_two() || elements > MOST_OF_A_BLOCK {
                let error = expr.place().error("manifest.tensor-map", format!("`{}` is {extent}", expr.text()));
                return Err(error.expected(format!("powers of two, and at most {MOST_OF_A_BLOCK} elements of a block")));
            }
            tile.push(extent as u32);
        }
        Ok(tile)
    }
}

fn one_of(expr: Option<&Expr>, all: &[u64], what: &str, scope: &Scope) -> Result<u32, Diagnostic> {
    let Some(expr) = expr else { return Ok(0) };
    let value = count(expr, scope, what)?;
    let found = all.contains(&value).then_some(value as u32);
    found.ok_or_else(|| {
        let words: Vec<String> = all.iter().map(u64::to_string).collect();
        let error = expr.place().error("manifest.tensor-map", format!("`{what}` is {value}"));
        error.expected(format!("one of {} bytes", words.join(", ")))
    })
}

/// Whether the hardware treats the type as floating point. It has no floating-point types of eight bits; it copies such elements as bytes.
fn has_nan(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::Bf16)
}

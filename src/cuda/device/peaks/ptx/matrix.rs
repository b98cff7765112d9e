//! The ways to use matrix units, and the kernel of each: on fragments in registers (`mma.sync`), or on tiles in shared memory (`wgmma`).
//!
//! The operands of matrix units are random numbers, because the power that zeros need says nothing about real data. The operands are laid out like those of a
//! product, although the product itself is meaningless.

use std::fmt::Write as _;

use super::{THREADS, head, kept, listed};

/// Bytes of operands of a matrix kernel: the shared memory of a `wgmma` block, which has four stages of two tiles of 64 rows and one of 256, with 128 bytes per
/// row.
pub(in super::super) const OPERANDS: u64 = STAGES * STAGE;
const STAGES: u64 = 4;
const STAGE: u64 = 2 * 64 * 128 + 256 * 128;

const fn is_whole(unit: &str) -> bool {
    matches!(unit.as_bytes(), b"i8")
}

/// A way to use matrix units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Matrix {
    /// The unit, as in [`kforge_types::record::profile::Peaks::ops_per_s`].
    pub(in super::super) unit: &'static str,
    /// The instruction.
    pub(in super::super) with: &'static str,
    /// Rows, columns and depth of one instruction.
    shape: [u64; 3],
    /// 32-bit registers per thread for both operands and the sum; zero for operands in shared memory.
    registers: [u64; 3],
    /// Whether sums are integers.
    whole: bool,
    /// Lowest and highest architecture on which it is or may be the fastest way.
    archs: (u32, u32),
    /// The PTX version that supports it.
    version: &'static str,
}

impl Matrix {
    const fn warp(
        unit: &'static str,
        with: &'static str,
        shape: [u64; 3],
        registers: [u64; 3],
        (archs, version): ((u32, u32), &'static str),
    ) -> Matrix {
        Matrix { unit, with, shape, registers, whole: is_whole(unit), archs, version }
    }

    const fn group(unit: &'static str, with: &'static str, depth: u64) -> Matrix {
        let (shape, registers) = ([64, 256, depth], [0, 0, 128]);
        Matrix { unit, with, shape, registers, whole: is_whole(unit), archs: (90, 90), version: "8.0" }
    }

    fn is_group(self) -> bool {
        self.registers[0] == 0
    }

    /// Operations of a block per round; a multiplication and an addition count as two.
    pub(in super::super) fn ops(self) -> u64 {
        let [m, n, k] = self.shape;
        // Instructions per round, times the warp groups or warps of a block.
        let calls = if self.is_group() { STAGES * 4 * 2 } else { TILES * TILES * u64::from(THREADS) / 32 };
        2 * m * n * k * calls
    }

    /// Masks of the bits of random words that stay and that are set. They give numbers of both signs between an eighth and two; integers keep all bits.
    pub(in super::super) fn numbers(self) -> (u32, u32) {
        match self.unit {
            "f16" => (0x8fff_8fff, 0x3000_3000),
            "bf16" => (0x81ff_81ff, 0x3e00_3e00),
            "tf32" => (0x81ff_ffff, 0x3e00_0000),
            "f8" => (0x9f9f_9f9f, 0x2020_2020),
            _ => (u32::MAX, 0),
        }
    }

    /// Bytes of shared memory per block.
    pub(in super::super) fn shared(self) -> u64 {
        if self.is_group() { OPERANDS } else { 0 }
    }

    /// Blocks per multiprocessor.
    pub(in super::super) fn blocks(self) -> u32 {
        if self.is_group() { 1 } else { 2 }
    }
}

/// Fragments of each operand that a warp holds; it multiplies every pair of them.
const TILES: u64 = 4;

/// The architectures on which `mma.sync` on 16 by 8 tiles is the fastest instruction: not 9.0, which has `wgmma`, and not 10.x, whose `tcgen05.mma` is not used
/// here.
const MMA: (u32, u32) = (80, 121);

/// All ways. On some products of an architecture, ways that accumulate in `f16` are twice as fast as those that accumulate in `f32`.
const WAYS: [Matrix; 15] = [
    Matrix::group("f16", "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", 16),
    Matrix::group("bf16", "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", 16),
    Matrix::group("tf32", "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32", 8),
    Matrix::group("f8", "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3", 32),
    Matrix::group("i8", "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8", 32),
    Matrix::warp("f16", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", [16, 8, 16], [4, 2, 2], (MMA, "7.0")),
    Matrix::warp("f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", [16, 8, 16], [4, 2, 4], (MMA, "7.0")),
    Matrix::warp("bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", [16, 8, 16], [4, 2, 4], (MMA, "7.0")),
    Matrix::warp("tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", [16, 8, 8], [4, 2, 4], (MMA, "7.0")),
    Matrix::warp("i8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", [16, 8, 32], [4, 2, 4], (MMA, "7.0")),
    Matrix::warp(
        "f8",
        "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16",
        [16, 8, 32],
        [4, 2, 2],
        ((120, 121), "8.7"),
    ),
    Matrix::warp(
        "f8",
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
        [16, 8, 32],
        [4, 2, 4],
        ((89, 121), "8.4"),
    ),
    Matrix::warp("f16", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", [16, 8, 8], [2, 1, 2], ((75, 75), "6.5")),
    Matrix::warp("f16", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", [16, 8, 8], [2, 1, 4], ((75, 75), "6.5")),
    Matrix::warp("i8", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", [8, 8, 16], [1, 1, 2], ((75, 75), "6.5")),
];

/// The ways to measure matrix units of a device of this architecture (`90` for `sm_90`): for each unit the fastest way, or the candidates for it.
pub(in super::super) fn ways(arch: u32) -> Vec<Matrix> {
    let best = |way: &&Matrix| {
        let own = way.is_group() || !(90..120).contains(&arch);
        own && (way.archs.0..=way.archs.1).contains(&arch)
    };
    WAYS.iter().filter(best).copied().collect()
}

/// The module of one way with its kernel `matrix(operands, rounds, to)`.
pub(in super::super) fn matrix(way: Matrix) -> String {
    if way.is_group() { group(way) } else { warp(way) }
}

fn opened(way: Matrix, target: &str, registers: &str, shared: &str) -> String {
    format!(
        "{}{shared}
.visible .entry matrix(.param .u64 operands, .param .u32 rounds, .param .u64 to)
{{
    .reg .pred %p, %q;
    .reg .b32 %t<8>, %d<{}>;
{registers}    .reg .b64 %to, %z, %at;
    ld.param.u64 %at, [operands];
    cvta.to.global.u64 %at, %at;
",
        head(way.version, target),
        way.registers[2] * if way.is_group() { 1 } else { TILES * TILES },
    )
}

/// Adds the sums and stores them.
fn closed(way: Matrix, sums: u64) -> String {
    let mut out = String::new();
    for i in 1..sums {
        let _ = match way.whole {
            true => writeln!(out, "    add.s32 %d0, %d0, %d{i};"),
            false => writeln!(out, "    xor.b32 %d0, %d0, %d{i};"),
        };
    }
    out.push_str(&kept("%d0"));
    out.push_str("    ret;\n}\n");
    out
}

fn warp(way: Matrix) -> String {
    let [a, b, d] = way.registers;
    let target = format!("sm_{}", way.archs.0);
    let registers = format!("    .reg .b32 %a<{}>, %b<{}>;\n", a * TILES, b * TILES);
    let mut out = opened(way, &target, &registers, "");
    // The words of a thread are one block of threads apart.
    out.push_str("    mov.u32 %t0, %tid.x;\n    mul.wide.u32 %z, %t0, 4;\n    add.u64 %at, %at, %z;\n");
    let words = (0..a * TILES).map(|i| format!("a{i}")).chain((0..b * TILES).map(|i| format!("b{i}")));
    for (i, word) in words.enumerate() {
        let _ = writeln!(out, "    ld.global.u32 %{word}, [%at+{}];", i as u64 * u64::from(THREADS) * 4);
    }
    for i in 0..d * TILES * TILES {
        let _ = writeln!(out, "    mov.b32 %d{i}, 0;");
    }
    out.push_str("    ld.param.u32 %t0, [rounds];\nagain:\n");
    for i in 0..TILES {
        for j in 0..TILES {
            let sum = listed("d", (i * TILES + j) * d, d);
            let (left, right) = (listed("a", i * a, a), listed("b", j * b, b));
            let _ = writeln!(out, "    {} {sum}, {left}, {right}, {sum};", way.with);
        }
    }
    out.push_str("    sub.u32 %t0, %t0, 1;\n    setp.ne.u32 %p, %t0, 0;\n    @%p bra again;\n");
    out.push_str(&closed(way, d * TILES * TILES));
    out
}

/// Two warp groups, each with its own rows and all columns, over four stages of four steps of 32 bytes. The descriptors are for tiles with rows of 128 bytes,
/// swizzled by 128, with groups of eight rows 1024 bytes apart (PTX ISA, "Matrix descriptor format").
fn group(way: Matrix) -> String {
    let shared = ".extern .shared .align 1024 .b8 tiles[];\n";
    let mut out = opened(way, "sm_90a", "    .reg .b32 %v<4>;\n    .reg .b64 %da, %db, %x, %y;\n", shared);
    let _ = write!(
        out,
        "    mov.u32 %t0, %tid.x;
    shl.b32 %t1, %t0, 4;
    mov.u32 %t2, tiles;
    add.u32 %t3, %t2, %t1;
    cvt.u64.u32 %z, %t1;
    add.u64 %at, %at, %z;
    mov.u32 %t4, {};
load:
    ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%at];
    st.shared.v4.u32 [%t3], {{%v0, %v1, %v2, %v3}};
    add.u64 %at, %at, {};
    add.u32 %t3, %t3, {};
    sub.u32 %t4, %t4, 1;
    setp.ne.u32 %p, %t4, 0;
    @%p bra load;
    fence.proxy.async;
    bar.sync 0;
    and.b32 %t2, %t2, 0x3ffff;
    shr.u32 %t2, %t2, 4;
    cvt.u64.u32 %db, %t2;
    or.b64 %db, %db, 0x{:x};
    shr.u32 %t5, %t0, 7;
    mul.lo.u32 %t5, %t5, {};
    cvt.u64.u32 %da, %t5;
    add.u64 %da, %da, %db;
    add.u64 %db, %db, {};
    setp.ne.u32 %q, %t0, 0xffffffff;
",
        OPERANDS / 16 / u64::from(THREADS),
        16 * THREADS,
        16 * THREADS,
        1u64 << 62 | 64 << 32 | 1 << 16,
        64 * 128 / 16,
        2 * 64 * 128 / 16,
    );
    for i in 0..way.registers[2] {
        let _ = writeln!(out, "    mov.b32 %d{i}, 0;");
    }
    out.push_str("    ld.param.u32 %t0, [rounds];\nagain:\n    wgmma.fence.sync.aligned;\n");
    let (sum, scales) = (
        listed("d", 0, way.registers[2]),
        match way.unit {
            "f16" | "bf16" => ", 1, 1, 0, 0",
            "i8" => "",
            _ => ", 1, 1",
        },
    );
    for stage in 0..STAGES {
        for step in 0..4 {
            let at = (stage * STAGE + step * 32) / 16;
            let _ = writeln!(
                out,
                "    add.u64 %x, %da, {at};\n    add.u64 %y, %db, {at};\n    {} {sum}, %x, %y, %q{scales};",
                way.with
            );
        }
    }
    out.push_str("    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 1;\n");
    out.push_str("    sub.u32 %t0, %t0, 1;\n    setp.ne.u32 %p, %t0, 0;\n    @%p bra again;\n    wgmma.wait_group.sync.aligned 0;\n");
    out.push_str(&closed(way, way.registers[2]));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_architecture_has_its_fastest_instructions() {
        let of = |arch| -> Vec<(&str, &str)> {
            ways(arch).iter().map(|way| (way.unit, way.with.split('.').next().unwrap())).collect()
        };
        assert_eq!(of(90), ["f16", "bf16", "tf32", "f8", "i8"].map(|unit| (unit, "wgmma")));
        assert_eq!(of(80), ["f16", "f16", "bf16", "tf32", "i8"].map(|unit| (unit, "mma")));
        assert_eq!(of(89).iter().filter(|(unit, _)| *unit == "f8").count(), 1);
        assert_eq!(of(120).iter().filter(|(unit, _)| *unit == "f8").count(), 2);
        assert_eq!(of(75), [("f16", "mma"), ("f16", "mma"), ("i8", "mma")]);
        assert!(of(100).is_empty() && of(103).is_empty(), "their fastest instruction is not used here");
        assert!(of(130).is_empty() && of(70).is_empty());
    }

    #[test]
    fn operations_are_those_of_the_shapes() {
        let first = |arch: u32| ways(arch)[0];
        // 32 instructions of 64 x 256 x 16; 128 of 16 x 8 x 16.
        assert_eq!((first(90).ops(), first(90).shared(), first(90).blocks()), (32 * 2 * 64 * 256 * 16, 196_608, 1));
        assert_eq!((first(80).ops(), first(80).shared()), (128 * 2 * 16 * 8 * 16, 0));
    }

    #[test]
    fn operands_are_numbers_between_an_eighth_and_two() {
        for way in ways(90) {
            let (keep, set) = way.numbers();
            for bits in [0u32, u32::MAX, 0x1234_5678, 0x8765_4321] {
                let word = bits & keep | set;
                let value = match way.unit {
                    "f16" => half::f16::from_bits(word as u16).to_f32(),
                    "bf16" => half::bf16::from_bits(word as u16).to_f32(),
                    "tf32" => f32::from_bits(word),
                    // e4m3: one sign, four bits of exponent with a bias of seven, three of mantissa.
                    "f8" => (1.0 + (word & 7) as f32 / 8.0) * 2f32.powi((word >> 3 & 15) as i32 - 7),
                    _ => continue,
                };
                assert!((0.125..2.0).contains(&value.abs()), "{}: {word:x} is {value}", way.unit);
            }
        }
    }
}

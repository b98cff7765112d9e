//! The kernels that measure a device's peaks, as PTX, which any driver compiles for its device. Knows instructions; measures nothing.
//!
//! The text is generated here instead of compiled from CUDA C++, because it repeats a few instructions and the choice of these instructions is what matters.
//!
//! | kernel | work of a thread block |
//! |---|---|
//! | `fill(area, words, keep, set, seed)` | fills memory with random words; the bits `keep` stay random and the bits `set` are set |
//! | `read`, `copy`, `copy_single`, `write` `(to, from)` | vectors of 16 bytes ([`STREAMS`] has their number per thread), each a grid's width from the last |
//! | `fma(rounds, to)` | [`FMA_OPS`] operations per round: independent chains of fused multiply-adds |
//! | `matrix(operands, rounds, to)` | [`Matrix::ops`] operations per round: on fragments in registers (`mma.sync`), or on tiles in shared memory (`wgmma`) |
//!
//! All sums are stored at the end, so that no compiler can remove the computation.

use std::fmt::Write as _;

mod matrix;

pub(super) use matrix::{Matrix, OPERANDS, matrix, ways};

/// Threads per block of each kernel.
pub(super) const THREADS: u32 = 256;
/// A kernel that streams a range of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stream {
    /// The kernel.
    pub(super) name: &'static str,
    /// The rate that it measures, as in [`kforge_types::record::peaks::PeaksObserved::dram_bytes_per_s`].
    pub(super) of: &'static str,
    /// Whether it reads from `from`.
    pub(super) reads: bool,
    /// Whether it writes to `to`.
    pub(super) writes: bool,
    /// Vectors of 16 bytes that a thread has in flight at once.
    vectors: u64,
}

/// All stream kernels. Reads are fastest with several vectors in flight. A copy is fastest with one, which keeps reads and writes closer to each other in
/// memory (by 3 % on an H200); other devices may differ, so the faster kernel counts.
pub(super) const STREAMS: [Stream; 4] = [
    Stream { name: "read", of: "read", reads: true, writes: false, vectors: 4 },
    Stream { name: "copy", of: "copy", reads: true, writes: true, vectors: 4 },
    Stream { name: "copy_single", of: "copy", reads: true, writes: true, vectors: 1 },
    Stream { name: "write", of: "write", reads: false, writes: true, vectors: 4 },
];

impl Stream {
    /// Bytes of the range that a block moves.
    pub(super) const fn block(self) -> u64 {
        self.vectors * 16 * THREADS as u64
    }

    /// How often each byte of the range is moved: twice for a copy.
    pub(super) fn times(self) -> u64 {
        u64::from(self.reads) + u64::from(self.writes)
    }
}
/// Chains of fused multiply-adds per thread: enough to hide the latency of four cycles.
const CHAINS: u64 = 16;
/// Multiply-adds per chain and round.
const REPEATS: u64 = 16;
/// Operations of a block of `fma` per round.
pub(super) const FMA_OPS: u64 = 2 * CHAINS * REPEATS * THREADS as u64;
fn head(version: &str, target: &str) -> String {
    format!(".version {version}\n.target {target}\n.address_size 64\n")
}

/// The module with `fill`, the stream kernels and `fma`.
pub(super) fn plain() -> String {
    let mut out = head("6.3", "sm_75");
    out.push_str(FILL);
    STREAMS.iter().for_each(|of| out.push_str(&stream(*of)));
    out.push_str(&fma());
    out
}

/// Splitmix64's finalizer, applied to the index of a word: random enough for a realistic power draw.
const FILL: &str = "
.visible .entry fill(.param .u64 area, .param .u64 words, .param .u32 keep, .param .u32 set, .param .u64 seed)
{
    .reg .pred %p;
    .reg .b32 %t<6>;
    .reg .b64 %i, %n, %s, %at, %z, %y, %step;
    ld.param.u64 %at, [area];
    cvta.to.global.u64 %at, %at;
    ld.param.u64 %n, [words];
    ld.param.u32 %t0, [keep];
    ld.param.u32 %t1, [set];
    ld.param.u64 %s, [seed];
    mov.u32 %t2, %ctaid.x;
    mov.u32 %t3, %ntid.x;
    mov.u32 %t4, %tid.x;
    mul.wide.u32 %i, %t2, %t3;
    cvt.u64.u32 %z, %t4;
    add.u64 %i, %i, %z;
    mov.u32 %t5, %nctaid.x;
    mul.wide.u32 %step, %t5, %t3;
again:
    setp.ge.u64 %p, %i, %n;
    @%p bra done;
    add.u64 %z, %i, %s;
    mul.lo.u64 %z, %z, 0x9e3779b97f4a7c15;
    shr.u64 %y, %z, 30;
    xor.b64 %z, %z, %y;
    mul.lo.u64 %z, %z, 0xbf58476d1ce4e5b9;
    shr.u64 %y, %z, 27;
    xor.b64 %z, %z, %y;
    mul.lo.u64 %z, %z, 0x94d049bb133111eb;
    shr.u64 %y, %z, 31;
    xor.b64 %z, %z, %y;
    cvt.u32.u64 %t2, %z;
    and.b32 %t2, %t2, %t0;
    or.b32 %t2, %t2, %t1;
    shl.b64 %y, %i, 2;
    add.u64 %y, %y, %at;
    st.global.u32 [%y], %t2;
    add.u64 %i, %i, %step;
    bra again;
done:
    ret;
}
";

/// Neighboring threads access neighboring vectors.
fn stream(of: Stream) -> String {
    let Stream { name, reads, writes, vectors, .. } = of;
    let mut out = format!(
        "
.visible .entry {name}(.param .u64 to, .param .u64 from)
{{
    .reg .pred %p;
    .reg .b32 %t<4>, %v<{}>, %sum;
    .reg .b64 %to, %from, %i, %z, %step;
    ld.param.u64 %to, [to];
    cvta.to.global.u64 %to, %to;
    ld.param.u64 %from, [from];
    cvta.to.global.u64 %from, %from;
    mov.u32 %t0, %ctaid.x;
    mov.u32 %t1, %ntid.x;
    mov.u32 %t2, %tid.x;
    mul.wide.u32 %i, %t0, %t1;
    cvt.u64.u32 %z, %t2;
    add.u64 %i, %i, %z;
    shl.b64 %i, %i, 4;
    mov.u32 %t3, %nctaid.x;
    mul.wide.u32 %step, %t3, %t1;
    shl.b64 %step, %step, 4;
    add.u64 %from, %from, %i;
",
        4 * vectors
    );
    let four = |vector: u64| listed("v", 4 * vector, 4);
    if reads {
        for vector in 0..vectors {
            let _ =
                writeln!(out, "    ld.global.nc.v4.u32 {}, [%from];\n    add.u64 %from, %from, %step;", four(vector));
        }
    } else {
        // The words differ, because the rate for equal words says nothing about real data.
        out.push_str("    cvt.u32.u64 %sum, %i;\n");
        for word in 0..4 * vectors {
            let odd = 0x9e37_79b9_u32.wrapping_mul(2 * word as u32 + 1);
            let _ = writeln!(out, "    mul.lo.u32 %v{word}, %sum, 0x{odd:08x};");
        }
    }
    if writes {
        out.push_str("    add.u64 %to, %to, %i;\n");
        for vector in 0..vectors {
            let _ = writeln!(out, "    st.global.v4.u32 [%to], {};\n    add.u64 %to, %to, %step;", four(vector));
        }
    } else {
        out.push_str("    mov.u32 %sum, 0;\n");
        for word in 0..4 * vectors {
            let _ = writeln!(out, "    xor.b32 %sum, %sum, %v{word};");
        }
        // Almost never true, but no compiler can know that.
        out.push_str("    setp.eq.u32 %p, %sum, 0x2545f491;\n    @%p st.global.u32 [%to], %sum;\n");
    }
    out.push_str("    ret;\n}\n");
    out
}

fn fma() -> String {
    let mut out = format!(
        "
.visible .entry fma(.param .u32 rounds, .param .u64 to)
{{
    .reg .pred %p;
    .reg .b32 %t<3>;
    .reg .f32 %a<{CHAINS}>, %b, %c;
    .reg .b64 %to, %z;
    ld.param.u32 %t0, [rounds];
    mov.u32 %t1, %tid.x;
    cvt.rn.f32.u32 %a0, %t1;
    // Around 0.99 and -0.5: a chain goes to and fro and to its rest, and never overflows.
    fma.rn.f32 %b, %a0, 0fb727c5ac, 0fbf7d70a4;
    fma.rn.f32 %c, %a0, 0f38d1b717, 0fbf000000;
"
    );
    for chain in 1..CHAINS {
        let _ = writeln!(out, "    add.f32 %a{chain}, %a0, 0f{:08x};", (chain as f32 * 1.37).to_bits());
    }
    out.push_str("again:\n");
    for _ in 0..REPEATS {
        for chain in 0..CHAINS {
            let _ = writeln!(out, "    fma.rn.f32 %a{chain}, %a{chain}, %b, %c;");
        }
    }
    out.push_str("    sub.u32 %t0, %t0, 1;\n    setp.ne.u32 %p, %t0, 0;\n    @%p bra again;\n");
    for chain in 1..CHAINS {
        let _ = writeln!(out, "    add.f32 %a0, %a0, %a{chain};");
    }
    out.push_str("    mov.b32 %t2, %a0;\n");
    out.push_str(&kept("%t2"));
    out.push_str("    ret;\n}\n");
    out
}

/// Stores one word per thread, so that the computation is needed.
fn kept(word: &str) -> String {
    format!(
        "    ld.param.u64 %to, [to];
    cvta.to.global.u64 %to, %to;
    mov.u32 %t0, %ctaid.x;
    mov.u32 %t1, %ntid.x;
    mul.wide.u32 %z, %t0, %t1;
    shl.b64 %z, %z, 2;
    add.u64 %to, %to, %z;
    mov.u32 %t1, %tid.x;
    mul.wide.u32 %z, %t1, 4;
    add.u64 %to, %to, %z;
    st.global.u32 [%to], {word};
"
    )
}

fn listed(prefix: &str, from: u64, count: u64) -> String {
    let all: Vec<String> = (from..from + count).map(|i| format!("%{prefix}{i}")).collect();
    format!("{{{}}}", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_reads_or_writes_every_byte_of_its_stretch_once() {
        for of in STREAMS {
            let text = stream(of);
            let count = |what: &str| text.matches(what).count() as u64;
            let vectors = of.block() / 16 / u64::from(THREADS);
            let wanted = (u64::from(of.reads) * vectors, u64::from(of.writes) * vectors);
            assert_eq!((count("ld.global.nc.v4"), count("st.global.v4")), wanted, "{}", of.name);
            assert_eq!(of.times(), u64::from(of.reads) + u64::from(of.writes));
        }
        let measured: std::collections::BTreeSet<&str> = STREAMS.iter().map(|of| of.of).collect();
        assert_eq!(measured.into_iter().collect::<Vec<_>>(), ["copy", "read", "write"]);
    }

    #[test]
    fn a_module_asks_no_more_of_a_driver_than_it_needs() {
        assert!(plain().starts_with(".version 6.3\n.target sm_75\n"));
        for name in ["fill", "fma"].into_iter().chain(STREAMS.map(|of| of.name)) {
            assert!(plain().contains(&format!(".visible .entry {name}(")), "{name}");
        }
        assert!(matrix(ways(90)[0]).starts_with(".version 8.0\n.target sm_90a\n"));
        assert!(matrix(ways(80)[0]).starts_with(".version 7.0\n.target sm_80\n"));
    }
}

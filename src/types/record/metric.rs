//! The metrics of a profile by their canonical names: what each metric is, its unit, and its names in `ncu`. Knows names; does not measure or compute.
//!
//! | set | what | source |
//! |---|---|---|
//! | [`Set::Table`] | the 24 metrics that distinguish fast kernels from slow ones | CudaForge (arXiv 2511.01884), its Table 10 and `run_ncu.py` |
//! | [`Set::Roofline`] | further metrics that gaps and triggers need | the metrics that KernelFlow's profile step names |
//! | [`Set::Derived`] | metrics computed from other metrics and from what the operator states | here, by the formula of each metric |
//!
//! `ncu` has renamed metrics between architectures and versions, so a metric lists several names. Each name is valid from an architecture on, and the newest
//! name comes first. A profile asks the installed `ncu` which metrics it has (`--query-metrics`) and takes the first name that exists. If none exists, the
//! metric is unknown.

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Per cent.
    Percent,
    /// A number of something.
    Count,
    /// Clock cycles.
    Cycles,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// The ratio of two values.
    Ratio,
}

impl Unit {
    /// The text after a value; empty for counts and ratios.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Percent => "%",
            Unit::Cycles => "cycles",
            Unit::Bytes => "B",
            Unit::BytesPerSecond => "B/s",
            Unit::Nanoseconds => "ns",
            Unit::Count | Unit::Ratio => "",
        }
    }
}

/// Why a metric is in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// One of the 24.
    Table,
    /// Further metrics that gaps and triggers need.
    Roofline,
    /// Computed from other metrics.
    Derived,
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its canonical name.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Why it is in the list.
    pub set: Set,
    /// Its names in `ncu`, each with the capability from which it is valid. The first valid name that exists is used. Empty for derived metrics.
    pub ncu: &'static [(u32, &'static str)],
    /// What it is; for a derived metric, the formula.
    pub meaning: &'static str,
}

impl Metric {
    /// The names to ask `ncu` for on a capability (90), in order of preference.
    pub fn names(&self, capability: u32) -> impl Iterator<Item = &'static str> {
        self.ncu.iter().filter(move |(from, _)| *from <= capability).map(|(_, name)| *name)
    }
}

/// The metric of that name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|m| m.name == name)
}

const fn table(name: &'static str, unit: Unit, ncu: &'static [(u32, &'static str)], meaning: &'static str) -> Metric {
    Metric { name, unit, set: Set::Table, ncu, meaning }
}

const fn roofline(
    name: &'static str,
    unit: Unit,
    ncu: &'static [(u32, &'static str)],
    meaning: &'static str,
) -> Metric {
    Metric { name, unit, set: Set::Roofline, ncu, meaning }
}

const fn derived(name: &'static str, unit: Unit, meaning: &'static str) -> Metric {
    Metric { name, unit, set: Set::Derived, ncu: &[], meaning }
}

/// Every metric: the table in its original order, then the others.
pub const METRICS: &[Metric] = &[
    table(
        "cycles_active",
        Unit::Cycles,
        &[(0, "sm__cycles_active.avg")],
        "cycles with a warp resident, mean over multiprocessors",
    ),
    table(
        "warps_active",
        Unit::Percent,
        &[(0, "sm__warps_active.avg.pct_of_peak_sustained_active")],
        "resident warps, as a share of the maximum of a multiprocessor",
    ),
    table(
        "limit_blocks",
        Unit::Count,
        &[(0, "launch__occupancy_limit_blocks")],
        "maximum resident blocks of a multiprocessor, by its block limit",
    ),
    table(
        "limit_registers",
        Unit::Count,
        &[(0, "launch__occupancy_limit_registers")],
        "maximum resident blocks of a multiprocessor, by registers",
    ),
    table(
        "limit_shared",
        Unit::Count,
        &[(0, "launch__occupancy_limit_shared_mem")],
        "maximum resident blocks of a multiprocessor, by shared memory",
    ),
    table("registers", Unit::Count, &[(0, "launch__registers_per_thread")], "registers a thread"),
    table("instructions", Unit::Count, &[(0, "sm__inst_executed.sum")], "instructions that warps executed"),
    table(
        "issue_fp32",
        Unit::Percent,
        &[
            (0, "sm__inst_executed_pipe_fp32.avg.pct_of_peak_sustained_active"),
            (0, "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"),
        ],
        "instructions of the single-precision pipe, of its peak",
    ),
    table(
        "issue_tensor",
        Unit::Percent,
        &[(0, "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active")],
        "instructions of the tensor pipe, of its peak",
    ),
    table("dram_read", Unit::Bytes, &[(0, "dram__bytes_read.sum")], "bytes read from device memory"),
    table("dram_write", Unit::Bytes, &[(0, "dram__bytes_write.sum")], "bytes written to device memory"),
    table(
        "dram_throughput",
        Unit::Percent,
        &[(0, "dram__throughput.avg.pct_of_peak_sustained_elapsed")],
        "throughput of device memory, of its peak",
    ),
    table(
        "dram_rate",
        Unit::BytesPerSecond,
        &[(0, "dram__bytes.sum.per_second")],
        "bytes to and from device memory a second",
    ),
    table(
        "gpu_dram_throughput",
        Unit::Percent,
        &[(0, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")],
        "throughput of device memory as seen from the GPU; nearly `dram_throughput`",
    ),
    table("l1_hit", Unit::Percent, &[(0, "l1tex__t_sector_hit_rate.pct")], "sectors that hit in L1"),
    table(
        "l1_throughput",
        Unit::Percent,
        &[(0, "l1tex__throughput.avg.pct_of_peak_sustained_active")],
        "throughput of L1, of its peak",
    ),
    table("l2_hit", Unit::Percent, &[(0, "lts__t_sector_hit_rate.pct")], "sectors that hit in L2"),
    table(
        "l2_throughput",
        Unit::Percent,
        &[(0, "lts__throughput.avg.pct_of_peak_sustained_active")],
        "throughput of L2, of its peak",
    ),
    table(
        "stall_memory_dependency",
        Unit::Percent,
        &[(0, "smsp__warp_issue_stalled_memory_dependency_per_warp_active.pct")],
        "warps that wait for memory; newer versions report this only by cause",
    ),
    table(
        "stall_short_scoreboard",
        Unit::Percent,
        &[(0, "smsp__warp_issue_stalled_short_scoreboard_per_warp_active.pct")],
        "warps that wait for shared memory or the special function unit",
    ),
    table(
        "stall_long_scoreboard",
        Unit::Percent,
        &[(0, "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct")],
        "warps that wait for global or local memory",
    ),
    table(
        "stall_barrier",
        Unit::Percent,
        &[(0, "smsp__warp_issue_stalled_barrier_per_warp_active.pct")],
        "warps that wait at a barrier of their block",
    ),
    table(
        "stall_branch",
        Unit::Percent,
        &[(0, "smsp__warp_issue_stalled_branch_resolving_per_warp_active.pct")],
        "warps that wait for the target of a branch",
    ),
    table(
        "branch_uniformity",
        Unit::Percent,
        &[(0, "smsp__sass_average_branch_targets_threads_uniform.pct")],
        "branches whose threads all took the same way",
    ),
    roofline(
        "pipe_tensor",
        Unit::Percent,
        &[
            (80, "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"),
            (0, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"),
        ],
        "cycles in which the tensor pipe multiplied floats, of its peak",
    ),
    roofline(
        "pipe_tensor_integer",
        Unit::Percent,
        &[(80, "sm__pipe_tensor_op_imma_cycles_active.avg.pct_of_peak_sustained_active")],
        "cycles in which the tensor pipe multiplied integers, of its peak",
    ),
    roofline(
        "pipe_fp32",
        Unit::Percent,
        &[
            (0, "sm__pipe_fp32_cycles_active.avg.pct_of_peak_sustained_active"),
            (0, "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"),
        ],
        "cycles in which the single-precision pipe worked, of its peak",
    ),
    roofline(
        "sm_throughput",
        Unit::Percent,
        &[(0, "sm__throughput.avg.pct_of_peak_sustained_elapsed")],
        "throughput of the busiest part of the multiprocessors, of its peak",
    ),
    roofline(
        "memory_throughput",
        Unit::Percent,
        &[(0, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed")],
        "throughput of the busiest part of the memory system, of its peak",
    ),
    roofline(
        "ipc",
        Unit::Ratio,
        &[(0, "sm__inst_executed.avg.per_cycle_active")],
        "instructions a cycle with a warp resident",
    ),
    roofline(
        "sm_active",
        Unit::Percent,
        &[(0, "sm__cycles_active.avg.pct_of_peak_sustained_elapsed")],
        "cycles with a warp resident, of all",
    ),
    roofline("duration", Unit::Nanoseconds, &[(0, "gpu__time_duration.sum")], "time from first start to last end"),
    roofline(
        "stall_mio_throttle",
        Unit::Percent,
        &[(0, "smsp__warp_issue_stalled_mio_throttle_per_warp_active.pct")],
        "warps that wait for room in the queue of shared memory and special functions",
    ),
    roofline(
        "stall_lg_throttle",
        Unit::Percent,
        &[(0, "smsp__warp_issue_stalled_lg_throttle_per_warp_active.pct")],
        "warps that wait for room in the queue of global memory",
    ),
    roofline(
        "stall_wait",
        Unit::Percent,
        &[(0, "smsp__warp_issue_stalled_wait_per_warp_active.pct")],
        "warps that wait for an instruction of fixed latency",
    ),
    roofline(
        "stall_membar",
        Unit::Percent,
        &[(0, "smsp__warp_issue_stalled_membar_per_warp_active.pct")],
        "warps that wait at a memory barrier",
    ),
    roofline(
        "shared_load_conflicts",
        Unit::Count,
        &[(0, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum")],
        "cycles that loads of shared memory lost to bank conflicts",
    ),
    roofline(
        "shared_store_conflicts",
        Unit::Count,
        &[(0, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum")],
        "cycles that stores to shared memory lost to bank conflicts",
    ),
    roofline(
        "shared_loads",
        Unit::Count,
        &[(0, "smsp__inst_executed_op_shared_ld.sum")],
        "instructions that loaded from shared memory",
    ),
    roofline(
        "shared_stores",
        Unit::Count,
        &[(0, "smsp__inst_executed_op_shared_st.sum")],
        "instructions that stored to shared memory",
    ),
    roofline(
        "special_instructions",
        Unit::Count,
        &[(0, "smsp__inst_executed_pipe_xu.sum")],
        "instructions of the special function unit",
    ),
    roofline(
        "waves",
        Unit::Ratio,
        &[(0, "launch__waves_per_multiprocessor")],
        "blocks of the launch over the blocks resident at once",
    ),
    derived(
        "traffic_excess",
        Unit::Ratio,
        "(dram_read + dram_write) over the bytes that the operator must move: 1 where nothing moves twice",
    ),
    derived("write_excess", Unit::Ratio, "dram_write over the bytes of the tensors that the operator writes"),
    derived(
        "bank_conflict_rate",
        Unit::Ratio,
        "(shared_load_conflicts + shared_store_conflicts) over (shared_loads + shared_stores); 0 where shared memory is not used",
    ),
    derived("xu_share", Unit::Ratio, "special_instructions over instructions"),
    derived(
        "register_limit",
        Unit::Ratio,
        "limit_registers over the lesser of limit_blocks and limit_shared: below 1 registers are what limits residency",
    ),
    derived(
        "wave_tail",
        Unit::Percent,
        "100 (1 - waves / ceil(waves)): the share of the last wave's places that stays empty, of all waves",
    ),
    derived("relative_error", Unit::Ratio, "the largest relative error that verify saw"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_the_table_has_24() {
        let names: BTreeSet<&str> = METRICS.iter().map(|m| m.name).collect();
        assert_eq!(names.len(), METRICS.len());
        assert_eq!(METRICS.iter().filter(|m| m.set == Set::Table).count(), 24);
        for metric in METRICS {
            assert_eq!(metric.ncu.is_empty(), metric.set == Set::Derived, "{}", metric.name);
            assert!(!metric.meaning.is_empty() && metric.ncu.iter().all(|(_, n)| n.contains("__")), "{}", metric.name);
        }
    }

    #[test]
    fn names_follow_the_architecture() {
        let names = |at: u32| metric("pipe_tensor").unwrap().names(at).collect::<Vec<_>>();
        assert_eq!(names(75), ["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"]);
        assert_eq!(names(90).first(), Some(&"sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"));
        assert_eq!(metric("pipe_tensor_integer").unwrap().names(75).count(), 0);
        assert_eq!(metric("sm__cycles_active.avg"), None);
    }

    #[test]
    fn of_names_from_the_same_architecture_on_the_newest_comes_first() {
        for metric in METRICS {
            assert!(metric.ncu.windows(2).all(|w| w[0].0 >= w[1].0), "{}", metric.name);
        }
    }
}

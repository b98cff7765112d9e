//! The resources that steps use while they run: processor slots, memory, devices. Knows amounts; does not know which step comes first.

use std::collections::{BTreeMap, BTreeSet};

use super::{Node, Resources};
use kforge_types::record::Uuids;
use kforge_types::record::event::WaitReason;

/// The resources of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// Processor slots; at least one.
    pub cpus: u32,
    /// Slots of pure steps, which run in this process; as many as the others if none are named.
    pub pure: Option<u32>,
    /// The total memory in MiB that running steps may be expected to need.
    pub memory_mib: u64,
    /// The number of steps that may share a device that no step holds exclusively; at least one.
    pub shared: u32,
    /// Whether steps that need exclusive use of a device wait for it themselves, after preparing everything that needs no device. They are then admitted like
    /// steps that share a device, and only their work on the device is serialized.
    pub takes_turns: bool,
    /// Whether steps that load the processors wait while a device measures, and measurements wait until those steps have ended.
    pub quiet: bool,
}

impl Default for Capacity {
    fn default() -> Self {
        Capacity { cpus: 1, pure: None, memory_mib: u64::MAX, shared: 1, takes_turns: false, quiet: false }
    }
}

/// The resources of one step on this machine: never more than the machine has, so that every step can run when no other step does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Need {
    pure: bool,
    cpus: u32,
    memory_mib: u64,
    /// The devices that suit the step, which needs one of them; never empty.
    device: Option<Uuids>,
    exclusive: bool,
}

/// The resources that a step has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Allocation {
    need: Need,
    /// The UUID of the step's device.
    pub(super) device: Option<String>,
}

impl Allocation {
    /// Whether its release may end a wait for this reason, of a step that then took `device`.
    pub(super) fn held(&self, reason: WaitReason, device: Option<&str>) -> bool {
        match reason {
            WaitReason::Dependency => false,
            WaitReason::PureSlot => self.need.pure,
            WaitReason::Processor => self.need.cpus > 0,
            WaitReason::Memory => self.need.memory_mib > 0,
            WaitReason::Quiet => loads(&self.need) || self.need.exclusive,
            WaitReason::Device => self.device.is_some() && self.device.as_deref() == device,
        }
    }
}

/// Resources that a more urgent step waits for, so that less urgent ones may not take them.
#[derive(Debug, Default)]
pub(super) struct Reservation {
    pure: bool,
    cpus: bool,
    memory: bool,
    devices: BTreeSet<String>,
    silence: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct InUse {
    sharing: u32,
    exclusive: bool,
}

/// The free resources.
#[derive(Debug)]
pub(super) struct Pool {
    capacity: Capacity,
    pure: u32,
    cpus: u32,
    memory_mib: u64,
    /// By UUID.
    devices: BTreeMap<String, InUse>,
    /// The number of running steps that load the processors and do not measure.
    loading: u32,
    /// The number of running steps that need a device exclusively.
    measuring: u32,
}

impl Pool {
    pub(super) fn new(capacity: &Capacity) -> Pool {
        let capacity = Capacity { cpus: capacity.cpus.max(1), shared: capacity.shared.max(1), ..capacity.clone() };
        let (cpus, memory_mib) = (capacity.cpus, capacity.memory_mib);
        let pure = capacity.pure.unwrap_or(cpus).max(1);
        Pool { capacity, pure, cpus, memory_mib, devices: BTreeMap::new(), loading: 0, measuring: 0 }
    }

    /// The resources that a node needs here. A step that is neither pure nor on a device takes a slot even if it asks for none, so that the number of such
    /// steps is limited.
    pub(super) fn need(&self, node: &Node) -> Need {
        let Resources { cpus, memory_mib, device, exclusive } = &node.resources;
        let pure = node.kind.is_pure();
        let least = u32::from(!pure && device.is_none());
        Need {
            pure,
            cpus: if pure { 0 } else { (*cpus).clamp(least, self.capacity.cpus) },
            memory_mib: coarse(*memory_mib).min(self.capacity.memory_mib),
            device: device.clone().filter(|uuids| !uuids.is_empty()),
            exclusive: *exclusive && device.as_ref().is_some_and(|uuids| !uuids.is_empty()),
        }
    }

    /// Whether a step keeps all others off its device while it runs.
    fn excludes(&self, need: &Need) -> bool {
        need.exclusive && !self.capacity.takes_turns
    }

    /// Takes the resources if they are free and no more urgent step wants them.
    ///
    /// # Errors
    /// What the step waits for, which is also noted in `wanted`.
    pub(super) fn try_take(&mut self, need: &Need, wanted: &mut Reservation) -> Result<Allocation, WaitReason> {
        // Of several reasons, the greatest is told.
        let mut lacks: Option<WaitReason> = None;
        if need.pure && (wanted.pure || self.pure == 0) {
            (wanted.pure, lacks) = (true, lacks.max(Some(WaitReason::PureSlot)));
        }
        if need.cpus > 0 && (wanted.cpus || self.cpus < need.cpus || self.is_kept(need, wanted)) {
            (wanted.cpus, lacks) = (true, lacks.max(Some(WaitReason::Processor)));
        }
        if need.memory_mib > 0 && (wanted.memory || self.memory_mib < need.memory_mib) {
            (wanted.memory, lacks) = (true, lacks.max(Some(WaitReason::Memory)));
        }
        let mut device = None;
        if let Some(uuids) = &need.device {
            device = self.free(uuids, self.excludes(need), wanted);
            if device.is_none() {
                wanted.devices.extend(uuids.iter().cloned());
                lacks = lacks.max(Some(WaitReason::Device));
            }
        }
        if self.capacity.quiet {
            let is_loaded = need.exclusive && self.loading > 0;
            wanted.silence |= is_loaded;
            if is_loaded || (loads(need) && (self.measuring > 0 || wanted.silence)) {
                lacks = lacks.max(Some(WaitReason::Quiet));
            }
        }
        if let Some(reason) = lacks {
            return Err(reason);
        }
        self.take(need, device.as_deref());
        Ok(Allocation { need: need.clone(), device })
    }

    /// Whether the slots that a step would take are kept for the steps on devices. While a more urgent step waits for a device, preparing further steps sooner
    /// is useless, because they would wait too. The processes that are at work for the device, such as a verifier and the runner that holds the device, must
    /// get processors at once. So a quarter of all slots is kept for them. A step may exceed that limit if no other step runs.
    fn is_kept(&self, need: &Need, wanted: &Reservation) -> bool {
        let (all, used) = (self.capacity.cpus, self.capacity.cpus - self.cpus);
        !wanted.devices.is_empty() && need.device.is_none() && used > 0 && used + need.cpus > all - all / 4
    }

    /// A device that has room and that no more urgent step wants. For a step that needs the device exclusively, the first unused one; for a step that shares
    /// it, the one with the fewest steps.
    fn free(&self, uuids: &Uuids, exclusive: bool, wanted: &Reservation) -> Option<String> {
        let of = |uuid: &str| self.devices.get(uuid).copied().unwrap_or_default();
        let limit = if exclusive { 1 } else { self.capacity.shared };
        let room = |uuid: &&String| !of(uuid).exclusive && of(uuid).sharing < limit;
        let free = uuids.iter().filter(|uuid| !wanted.devices.contains(*uuid)).filter(room);
        free.min_by_key(|uuid| of(uuid).sharing).cloned()
    }

    fn take(&mut self, need: &Need, device: Option<&str>) {
        self.pure -= u32::from(need.pure);
        self.cpus -= need.cpus;
        self.memory_mib -= need.memory_mib;
        self.loading += u32::from(loads(need));
        self.measuring += u32::from(need.exclusive);
        let excludes = self.excludes(need);
        if let Some(uuid) = device {
            let use_ = self.devices.entry(uuid.to_string()).or_default();
            use_.exclusive = excludes;
            use_.sharing += u32::from(!excludes);
        }
    }

    /// Releases the resources that [`Pool::try_take`] took.
    pub(super) fn release(&mut self, Allocation { need, device }: &Allocation) {
        self.pure += u32::from(need.pure);
        self.cpus += need.cpus;
        self.memory_mib += need.memory_mib;
        self.loading -= u32::from(loads(need));
        self.measuring -= u32::from(need.exclusive);
        let excludes = self.excludes(need);
        if let Some(use_) = device.as_ref().and_then(|uuid| self.devices.get_mut(uuid)) {
            use_.exclusive = false;
            use_.sharing -= u32::from(!excludes);
        }
    }
}

/// Rounds up to one of eight values between powers of two, so that there are few distinct needs, however many shapes there are.
fn coarse(mib: u64) -> u64 {
    let step = (mib.max(1).ilog2().saturating_sub(3)).min(60);
    mib.checked_next_multiple_of(1 << step).unwrap_or(mib)
}

/// Whether a step disturbs a measurement.
fn loads(need: &Need) -> bool {
    need.cpus > 0 && !need.exclusive
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;
    use kforge_types::record::StepKind;

    fn need(pool: &Pool, kind: StepKind, cpus: u32, device: Option<&str>, exclusive: bool) -> Need {
        let mut node = node("n", kind, &[]);
        node.resources =
            Resources { cpus, memory_mib: 0, device: device.map(|uuid| [uuid.to_string()].into()), exclusive };
        pool.need(&node)
    }

    fn take(pool: &mut Pool, need: &Need) -> bool {
        pool.try_take(need, &mut Reservation::default()).is_ok()
    }

    /// Releases the resources, on the first of the devices.
    fn release(pool: &mut Pool, need: &Need) {
        let device = need.device.as_ref().map(|uuids| uuids[0].clone());
        pool.release(&Allocation { need: need.clone(), device });
    }

    #[test]
    fn a_step_that_asks_for_more_than_there_is_runs_alone() {
        let mut pool = Pool::new(&Capacity { cpus: 2, memory_mib: 100, ..Capacity::default() });
        let mut big = node("n", StepKind::Compile, &[]);
        big.resources = Resources { cpus: 64, memory_mib: 1000, ..Resources::default() };
        let big = pool.need(&big);
        assert!(take(&mut pool, &big));
        let one = need(&pool, StepKind::Compile, 1, None, false);
        assert!(!take(&mut pool, &one));
        release(&mut pool, &big);
        assert!(take(&mut pool, &one));
    }

    #[test]
    fn steps_that_need_more_memory_together_than_there_is_wait_for_each_other() {
        let mut pool = Pool::new(&Capacity { cpus: 9, memory_mib: 1000, ..Capacity::default() });
        let of = |mib: u64| {
            let mut node = node("n", StepKind::Verify, &[]);
            node.resources = Resources { cpus: 1, memory_mib: mib, ..Resources::default() };
            pool.need(&node)
        };
        let (large, small) = (of(600), of(300));
        assert!(take(&mut pool, &large) && !take(&mut pool, &large) && take(&mut pool, &small));
        release(&mut pool, &large);
        assert!(take(&mut pool, &large));
        let sorts: BTreeSet<u64> = (1..100_000).map(coarse).collect();
        assert!(sorts.len() < 150 && (1..100_000).all(|n| coarse(n) >= n && coarse(n) <= n + n / 8));
    }

    #[test]
    fn a_device_is_shared_up_to_its_limit_and_exclusive_alone() {
        let mut pool = Pool::new(&Capacity { cpus: 9, shared: 2, ..Capacity::default() });
        let verify = need(&pool, StepKind::Verify, 0, Some("gpu-0"), false);
        let bench = need(&pool, StepKind::Bench, 0, Some("gpu-0"), true);
        assert!(take(&mut pool, &verify) && take(&mut pool, &verify));
        assert!(!take(&mut pool, &verify), "a third shares");
        assert!(!take(&mut pool, &bench), "measures beside others");
        release(&mut pool, &verify);
        release(&mut pool, &verify);
        assert!(take(&mut pool, &bench));
        assert!(!take(&mut pool, &verify), "shares what another has for itself");
        release(&mut pool, &bench);
        assert!(take(&mut pool, &verify));
    }

    #[test]
    fn while_a_step_waits_for_a_device_a_quarter_of_the_processors_is_kept_for_who_is_there() {
        let mut pool = Pool::new(&Capacity { cpus: 16, ..Capacity::default() });
        let (one, all) =
            (need(&pool, StepKind::Compile, 1, None, false), need(&pool, StepKind::Oracle, 16, None, false));
        let verify = need(&pool, StepKind::Verify, 0, Some("gpu"), false);
        let count = |pool: &mut Pool, wanted: &mut Reservation| {
            (0..).take_while(|_| pool.try_take(&one, wanted).is_ok()).count()
        };
        assert!(take(&mut pool, &verify));
        let mut wanted = Reservation::default();
        assert!(pool.try_take(&verify, &mut wanted).is_err(), "it waits");
        assert_eq!(count(&mut pool, &mut wanted), 12);
        // Once no step waits, all slots are available.
        assert_eq!(count(&mut pool, &mut Reservation::default()), 4);
        (0..16).for_each(|_| release(&mut pool, &one));
        // A step that wants all slots may start when no other runs, even if a step waits for a device.
        let mut wanted = Reservation::default();
        assert!(pool.try_take(&verify, &mut wanted).is_err());
        assert!(pool.try_take(&all, &mut wanted).is_ok());
        let mut two = Pool::new(&Capacity { cpus: 2, ..Capacity::default() });
        let mut wanted = Reservation::default();
        assert!(take(&mut two, &verify) && two.try_take(&verify, &mut wanted).is_err());
        assert_eq!(count(&mut two, &mut wanted), 2, "of few none is kept");
    }

    #[test]
    fn of_devices_alike_each_measures_for_one_and_steps_spread_over_them() {
        let mut pool = Pool::new(&Capacity { cpus: 9, shared: 2, ..Capacity::default() });
        let both = |need: Need| Need { device: Some(["gpu-0".into(), "gpu-1".into()].into()), ..need };
        let verify = both(need(&pool, StepKind::Verify, 0, Some("gpu-0"), false));
        let bench = both(need(&pool, StepKind::Bench, 0, Some("gpu-0"), true));
        let mut units = vec![];
        let mut next = |pool: &mut Pool, need: &Need| {
            let taken = pool.try_take(need, &mut Reservation::default()).ok();
            units.push(taken.as_ref().map(|t| t.device.clone().unwrap()));
            taken
        };
        let first = next(&mut pool, &bench).unwrap();
        let second = next(&mut pool, &verify).unwrap();
        next(&mut pool, &bench);
        next(&mut pool, &verify);
        next(&mut pool, &verify);
        pool.release(&first);
        next(&mut pool, &verify);
        pool.release(&second);
        let units: Vec<Option<&str>> = units.iter().map(Option::as_deref).collect();
        assert_eq!(units, [Some("gpu-0"), Some("gpu-1"), None, Some("gpu-1"), None, Some("gpu-0")]);
    }

    #[test]
    fn a_step_for_which_no_device_is_here_takes_none() {
        let mut pool = Pool::new(&Capacity::default());
        let mut node = node("n", StepKind::Verify, &[]);
        node.resources = Resources { device: Some([].into()), exclusive: true, ..Resources::default() };
        let nowhere = pool.need(&node);
        assert_eq!((nowhere.device.clone(), nowhere.exclusive), (None, false));
        assert!(take(&mut pool, &nowhere));
    }

    #[test]
    fn where_steps_take_turns_by_themselves_those_that_measure_are_made_ready_beside_others() {
        let mut pool = Pool::new(&Capacity { cpus: 9, shared: 2, takes_turns: true, ..Capacity::default() });
        let verify = need(&pool, StepKind::Verify, 0, Some("h200"), false);
        let bench = need(&pool, StepKind::Bench, 0, Some("h200"), true);
        assert!(take(&mut pool, &bench) && take(&mut pool, &bench));
        assert!(!take(&mut pool, &verify), "a third");
        release(&mut pool, &bench);
        assert!(take(&mut pool, &verify) && !take(&mut pool, &bench));
        release(&mut pool, &verify);
        release(&mut pool, &bench);
        assert!(take(&mut pool, &verify) && take(&mut pool, &verify) && !take(&mut pool, &bench));
    }

    #[test]
    fn the_less_urgent_does_not_take_what_the_more_urgent_waits_for() {
        let mut pool = Pool::new(&Capacity { cpus: 2, ..Capacity::default() });
        let one = need(&pool, StepKind::Compile, 1, None, false);
        let two = need(&pool, StepKind::Compile, 2, None, false);
        assert!(take(&mut pool, &one));
        let mut wanted = Reservation::default();
        assert!(pool.try_take(&two, &mut wanted).is_err());
        assert!(pool.try_take(&one, &mut wanted).is_err(), "overtakes");
    }

    #[test]
    fn compiles_are_held_back_while_a_device_measures_where_that_is_asked() {
        for quiet in [false, true] {
            let mut pool = Pool::new(&Capacity { cpus: 9, quiet, ..Capacity::default() });
            let compile = need(&pool, StepKind::Compile, 1, None, false);
            let bench = need(&pool, StepKind::Bench, 1, Some("h200"), true);
            assert!(take(&mut pool, &bench));
            assert_eq!(take(&mut pool, &compile), !quiet);
            release(&mut pool, &bench);
            if !quiet {
                release(&mut pool, &compile);
            }
            assert!(take(&mut pool, &compile));
            let mut wanted = Reservation::default();
            assert_eq!(pool.try_take(&bench, &mut wanted).is_ok(), !quiet, "measuring waits for silence");
            assert_eq!(pool.try_take(&compile, &mut wanted).is_ok(), !quiet, "which new compiles do not break");
        }
    }

    #[test]
    fn pure_steps_take_no_slot_of_the_others() {
        let mut pool = Pool::new(&Capacity::default());
        let judge = need(&pool, StepKind::Judge, 3, None, false);
        let compile = need(&pool, StepKind::Compile, 0, None, false);
        assert!(take(&mut pool, &judge) && take(&mut pool, &compile));
        assert!(!take(&mut pool, &judge) && !take(&mut pool, &compile), "one slot each");
        // Where most of the others run elsewhere.
        let mut pool = Pool::new(&Capacity { cpus: 3, pure: Some(1), ..Capacity::default() });
        assert!(take(&mut pool, &judge) && !take(&mut pool, &judge));
        assert!((0..3).all(|_| take(&mut pool, &compile)) && !take(&mut pool, &compile));
    }
}

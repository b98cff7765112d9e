//! Call times of two kernels in PyTorch in turn, and of a baseline and a champion. Knows the order of calls; what a call is, and what is compared, is in
//! [`super::calls`].
//!
//! | decision | reason |
//! |---|---|
//! | each kernel has a process with a clock and a process of its own; both processes live through all blocks | starting PyTorch takes seconds; neither kernel reaches memory of the other |
//! | each call has inputs of its own, drawn when both have sealed themselves | as for timed calls: nothing that one kernel computes helps the other |
//! | samples are in ABBA order in blocks; which kernel comes first in a block is drawn, from the step's key | a drift of the device or of the host favours neither |
//! | outputs of a part of the calls are compared in every quarter of the series, and a pure step judges them for each kernel | a kernel may be careful only in its first calls |
//! | a baseline is called as a kernel is, by the same driver | a difference in the way would show as a difference of the work |
//! | in the end, its process takes samples of its device time, as beside other champions | they stand beside call times, and no ratio contains them; there are none if the device is under limits before or after them; of the champion there are none, because nobody outside its process can take them |

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use super::calls::{Calls, Ended, Open, PREPARE, Planned, fitting};
use super::place::{Place, Turn};
use crate::steps::interpreted::Importable;
use kforge_cuda::device::{self, Timed, TorchDevice};
use kforge_engine::evidence::PROVENANCE;
use kforge_foundation::base::{Severity, count};
use kforge_harness::candidate::{Baselined, Measured, Measurement};
use kforge_harness::fresh::{chosen, of_call};
use kforge_harness::message::Response;
use kforge_harness::task::{Task, failed};
use kforge_numerics::measure::sampling::{self, Side};
use kforge_types::model::baseline::{How, Product};
use kforge_types::model::torch::TorchLaunch;
#[cfg(any(debug_assertions, feature = "virtual-device"))]
use kforge_types::record::Provenance;
use kforge_types::record::device::device_id;
use kforge_types::record::kind::baseline::documents::{BaselineObserved, BaselineParams, Callee};
use kforge_types::record::params::{PairsParams, VerifyParams};
use kforge_types::record::timing::PairsObserved;
use kforge_types::record::{Note, Verdict};

/// ABBA rounds per block.
const ROUNDS: usize = 2;
/// Calls of a side in the blocks that always are taken, and in all blocks that may be.
const QUARTER: usize = 16 * ROUNDS;
const MOST: usize = 4 * QUARTER;
/// Calls of each side in a quarter whose outputs are compared: the least, and the most.
const COMPARED: (usize, usize) = (5, 10);
/// How long calls may take with the drawing of their inputs, and the computation of expected values of a quarter.
const CALLING: Duration = Duration::from_secs(90);
const COMPARING: Duration = Duration::from_secs(10);
/// The most bytes of outputs of a side that are kept until they are compared.
const KEPT: u64 = 256 << 20;
/// Samples of device time of a baseline, and those before them.
const DEVICE_SAMPLES: usize = 31;
const UNCOUNTED: usize = 5;
/// The code of the note that says why a baseline has no device time.
const NO_DEVICE_TIME: &str = "baseline.no-device-time";
/// How long a baseline may take for a call before the timed ones: `torch.compile` may try many kernels.
const PATIENCE: Duration = Duration::from_secs(900);

/// Executes a pairs step on a device: of kernels in PyTorch here, of others in the code for devices.
pub fn on_device(task: &Task) -> Response {
    let run = || -> Result<Response, Response> {
        let params: PairsParams = task.params()?;
        if params.a.torch.is_none() {
            return Ok(device::pairs(task));
        }
        let place = || Ok(Place::device(TorchDevice::find(task, &params.arch)?, params.protocol));
        pairs(task, &params, [place()?, place()?])
    };
    run().unwrap_or_else(|response| response)
}

/// Pairs kernels in PyTorch on the processor, in the place of a device.
#[cfg(any(debug_assertions, feature = "virtual-device"))]
pub(crate) fn stand_in(task: &Task, params: &PairsParams, provenance: &Provenance) -> Result<Response, Response> {
    pairs(task, params, [0, 1].map(|_| Place::stand_in(provenance.clone())))
}

/// Executes a baseline step: beside a champion in PyTorch here, beside others in the code for devices.
pub fn baseline_on_device(task: &Task) -> Response {
    let run = || -> Result<Response, Response> {
        let params: BaselineParams = task.params()?;
        if params.champion.torch.is_none() {
            return Ok(device::baseline(task));
        }
        let place = || Ok(Place::device(TorchDevice::find(task, &params.arch)?, params.protocol));
        beside(task, &params, [place()?, place()?])
    };
    run().unwrap_or_else(|response| response)
}

/// Times a baseline beside a champion in PyTorch on the processor, in the place of a device.
#[cfg(any(debug_assertions, feature = "virtual-device"))]
pub(crate) fn baseline_stand_in(
    task: &Task,
    params: &BaselineParams,
    provenance: &Provenance,
) -> Result<Response, Response> {
    beside(task, params, [0, 1].map(|_| Place::stand_in(provenance.clone())))
}

fn launch(params: &VerifyParams) -> Result<&TorchLaunch, Response> {
    params.torch.as_deref().ok_or_else(|| failed("BUG: calls of a kernel that is not in PyTorch are paired"))
}

fn pairs(task: &Task, params: &PairsParams, [at_a, at_b]: [Place; 2]) -> Result<Response, Response> {
    let [of_a, of_b] = [":a", ":b"].map(|side| task.document::<Importable>(&format!("binary{side}")));
    let (of_a, of_b) = (of_a?, of_b?);
    let a = Calls::new(task, &params.a, launch(&params.a)?, at_a, &of_a)?;
    let b = Calls::new(task, &params.b, launch(&params.b)?, at_b, &of_b)?;
    let Taken { mut sides, pairs, .. } = taken(task, [a, b])?;
    sides[0].write("called-a")?;
    sides[1].write("called-b")?;
    task.write_document("observation", &pairs)?;
    ended(task, &sides, &pairs, vec![])
}

fn beside(task: &Task, params: &BaselineParams, [at_a, at_b]: [Place; 2]) -> Result<Response, Response> {
    let champion: Importable = task.document("binary")?;
    let (files, launched) = match &params.calls {
        Callee::Function { file, function, call } => {
            let files = python_files(&task.required("tree:baseline")?)?;
            let launch = TorchLaunch { function: function.clone(), call: (**call).clone(), ..TorchLaunch::default() };
            (Importable { main: file.clone(), files }, launch)
        }
        Callee::Product(product) => {
            let (main, text) = product_of(product);
            let launch = TorchLaunch { function: "product".into(), ..TorchLaunch::default() };
            (Importable { files: [(main.clone(), text)].into(), main }, launch)
        }
    };
    let of_baseline = VerifyParams { torch: Some(Box::new(launched.clone())), ..params.champion.clone() };
    let mut baseline = Calls::new(task, &of_baseline, &launched, at_a, &files)?;
    let how = if params.how == How::Cublas { How::Eager } else { params.how };
    baseline.how = Some(Baselined { how, mode: params.mode.as_deref() });
    baseline.patience = PATIENCE.min(task.left() / 2);
    let champion = Calls::new(task, &params.champion, launch(&params.champion)?, at_b, &champion)?;
    let Taken { mut sides, pairs, measured } = taken(task, [baseline, champion])?;
    sides[1].write("called")?;
    sides[0].write("baseline-called")?;
    let [baseline, champion] = &sides;
    let (notes, (versions, device_ns, waited)) = match measured {
        Some(Measurement::Taken(measured)) => (vec![], counted(measured)),
        Some(Measurement::Absent(why)) => {
            let note = Note::new(Severity::Warning, NO_DEVICE_TIME, format!("the baseline has no device time: {why}"));
            (vec![note], Default::default())
        }
        None => Default::default(),
    };
    let seen = BaselineObserved {
        runs: params.runs(),
        versions,
        compared: baseline.seen.compared.clone(),
        converted: BTreeMap::new(),
        device_ns,
        champion_ns: champion.seen.call_ns.clone(),
        call_ns: baseline.seen.call_ns.clone(),
        waited,
        of_calls: true,
        pairs,
        device: task.device.as_deref().map(device_id).unwrap_or_default(),
    };
    task.write_document("observation", &seen)?;
    ended(task, &sides, &seen.pairs, notes)
}

/// A product of matrices as a file.
fn product_of(product: &Product) -> (String, String) {
    let operand = |name: &str| {
        let own = product.operands.get(name).map_or(name, String::as_str);
        (own.to_string(), if product.transposed.iter().any(|turned| turned == name) { ".mT" } else { "" })
    };
    let ((a, turned_a), (b, turned_b)) = (operand("a"), operand("b"));
    let text =
        format!("import torch\n\n\ndef product({a}, {b}):\n    return torch.matmul({a}{turned_a}, {b}{turned_b})\n");
    ("kforge_product.py".into(), text)
}

/// The Python files of a tree, by their names.
fn python_files(root: &Path) -> Result<BTreeMap<String, String>, Response> {
    let io = |e: std::io::Error| failed(format!("cannot read the baseline's files: {e}"));
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(name) = path.strip_prefix(root) {
                files.insert(name.display().to_string(), std::fs::read_to_string(&path).map_err(io)?);
            }
        }
    }
    Ok(files)
}

/// What pairs of calls gave.
struct Taken<'a> {
    sides: [Calls<'a>; 2],
    pairs: PairsObserved,
    /// Device times of the side that is a baseline, or why there are none; none if nothing was timed.
    measured: Option<Measurement>,
}

/// The response of a step whose outputs are written.
fn ended(task: &Task, sides: &[Calls<'_>; 2], pairs: &PairsObserved, notes: Vec<Note>) -> Result<Response, Response> {
    if let Some(provenance) = &sides[0].place.provenance {
        task.write_document(PROVENANCE, provenance)?;
    }
    let untimed = sides.iter().find_map(|side| side.seen.untimed.as_ref());
    let summary = match untimed {
        Some(why) => format!("not timed: {why}"),
        None => count(pairs.blocks.len(), "block"),
    };
    let passing = sides.iter().find_map(|side| side.passing().cloned());
    let forget = passing.is_some();
    Ok(Response::Done { verdict: passing.map(Verdict::Fail), notes, summary, forget })
}

/// The versions, the samples of device time that count, and during how many of these the device waited for the host.
fn counted(Measured { versions, ns, waited }: Measured) -> (BTreeMap<String, String>, Vec<f64>, u32) {
    let (ns, waited): (Vec<f64>, Vec<bool>) = ns.into_iter().zip(waited).skip(UNCOUNTED).unzip();
    (versions, ns, waited.into_iter().filter(|waited| *waited).count() as u32)
}

/// How long samples of device time may take: expected values are computed after them, and pairs without these are lost.
fn for_samples(left: Duration) -> Duration {
    left.saturating_sub(COMPARING) / 4
}

fn index(side: Side) -> usize {
    match side {
        Side::A => 0,
        Side::B => 1,
    }
}

/// Calls both kernels in turn, and compares outputs.
fn taken<'a>(task: &Task, mut sides: [Calls<'a>; 2]) -> Result<Taken<'a>, Response> {
    let io = |e: std::io::Error| failed(format!("cannot end a kernel's process: {e}"));
    let (mut pairs, mut planned, mut kept) = (PairsObserved::default(), [vec![], vec![]], [vec![], vec![]]);
    let mut took = Some(Duration::ZERO);
    let [a, b] = &mut sides;
    let mut open = [a.open()?, b.open()?];
    let pids = [0, 1].map(|of: usize| [open[of].process.pid(), open[of].clock.pid()]);
    for (of, rivals) in open.iter_mut().zip(pids.iter().rev()) {
        of.process.beside(rivals.iter().flatten().copied());
    }
    for (side, of) in sides.iter_mut().zip(&mut open) {
        let source = side.place.source(task, side.problem());
        let prepare = task.left().min(PREPARE.max(side.patience));
        let each = side.prepared(&mut of.clock, &mut of.process, &source, prepare)?;
        took = took.zip(each).map(|(all, each)| all + each);
    }
    if let Some(took) = took.filter(|_| !sides.iter().any(Calls::has_failed)) {
        let order = Order { task, seed: sampling::seed(task.spec.key().hash()), took };
        order.all(&mut sides, &mut open, (&mut planned, &mut kept), &mut pairs)?;
    }
    let mut measured = None;
    if let (Some(_), false) = (sides[0].how, pairs.blocks.is_empty() || sides.iter().any(Calls::has_failed)) {
        let _turn = sides[0].place.turn(task, Turn::Alone)?;
        let train = launch(sides[0].params())?.call.train;
        let limit = for_samples(task.left());
        let Open { clock, process, .. } = &mut open[0];
        let before = clock.is_limited();
        let taken = process.measure(train, UNCOUNTED + DEVICE_SAMPLES, limit)?;
        let is_limited = before | clock.is_limited();
        measured = Some(match taken {
            Measurement::Taken(_) if is_limited => Measurement::Absent("the device was under limits".into()),
            taken => taken,
        });
    }
    for of in open {
        of.process.end().map_err(io)?;
        if let Some(provenance) = &mut sides[0].place.provenance {
            of.clock.tell(provenance);
        }
    }
    for ((side, planned), kept) in sides.iter_mut().zip(&planned).zip(&kept) {
        let source = side.place.source(task, side.problem());
        side.compare(&source, planned, kept)?;
    }
    if sides.iter().any(Calls::has_failed) {
        pairs = PairsObserved::default();
    }
    Ok(Taken { sides, pairs, measured })
}

/// The calls of both kernels, and the outputs that are kept of them.
type Kept<'k> = (&'k mut [Vec<Planned>; 2], &'k mut [Vec<Ended>; 2]);

struct Order<'t> {
    task: &'t Task,
    /// The seed of the orders of blocks.
    seed: u64,
    /// How long a call of each takes together, with the drawing of inputs.
    took: Duration,
}

impl Order<'_> {
    fn all(
        &self,
        sides: &mut [Calls<'_>; 2],
        open: &mut [Open; 2],
        (planned, kept): Kept<'_>,
        pairs: &mut PairsObserved,
    ) -> Result<(), Response> {
        let calls = fitting(CALLING, self.took, MOST) / (2 * ROUNDS) * (2 * ROUNDS);
        if calls < QUARTER && self.took * QUARTER as u32 > self.task.left() / 2 {
            let why = format!("a call of each with the drawing of inputs takes {:.1?}", self.took);
            sides.iter_mut().for_each(|side| side.untimed((), why.clone()));
            return Ok(());
        }
        let Some(compared) = self.compared(sides)? else { return Ok(()) };
        let most = calls.max(QUARTER);
        let reserve = self.task.left() / 5;
        let _turn = sides[0].place.turn(self.task, Turn::Alone)?;
        for block in 0.. {
            if block >= sampling::most(pairs) || planned[0].len() + 2 * ROUNDS > most {
                break;
            }
            let lead = sampling::first(self.seed, block);
            let mut ratios = vec![];
            for _ in 0..ROUNDS {
                let (order, mut ns) = (sampling::order(lead), [0.0; 4]);
                for (at, side) in order.into_iter().enumerate() {
                    let of = index(side);
                    let Some(timed) =
                        self.call(&mut sides[of], &mut open[of], of, (&mut planned[of], &mut kept[of]), &compared)?
                    else {
                        return Ok(());
                    };
                    if let Timed::Took(took) = timed {
                        ns[at] = took;
                    }
                }
                // A call under limits has no time, and its round no ratio.
                ratios.extend(sampling::log_ratio(order, ns));
            }
            pairs.blocks.push(ratios);
            pairs.first.push(lead);
            if self.task.left() < reserve || sampling::known(&pairs.blocks) && planned[0].len() >= QUARTER {
                break;
            }
        }
        Ok(())
    }

    /// The positions of the calls of a side whose outputs are compared. None if outputs cannot be compared.
    fn compared(&self, sides: &mut [Calls<'_>; 2]) -> Result<Option<BTreeSet<usize>>, Response> {
        let of = &sides[0];
        let (trial, _) = of_call(of.params(), 0, false)?;
        let began = Instant::now();
        let held = of.held(&of.place.source(self.task, of.problem()), &trial);
        if let Err(why) = held {
            return match why {
                Response::Unavailable { why } | Response::NeedsTool { why, .. } => {
                    sides.iter_mut().for_each(|side| side.untimed((), why.clone()));
                    Ok(None)
                }
                why => Err(why),
            };
        }
        // Of both.
        let each = 2 * began.elapsed();
        let of_outputs: u64 = of.problem().written().map(|tensor| tensor.bytes()).sum();
        let room = usize::try_from(KEPT.min(self.task.memory_limit / 8) / of_outputs.max(1)).unwrap_or(usize::MAX);
        let quarters = MOST / QUARTER;
        let (least, most) = COMPARED;
        if room < least || each * least as u32 > self.task.left() / 4 {
            let why = format!(
                "the outputs of {least} calls cannot be compared: expected values take {each:.1?}, and memory suffices for {room} calls"
            );
            sides.iter_mut().for_each(|side| side.untimed((), why.clone()));
            return Ok(None);
        }
        let mut all = BTreeSet::new();
        for quarter in 0..quarters {
            let many = fitting(COMPARING, each, most).max(least).min(room - all.len());
            all.extend(chosen(QUARTER, many)?.into_iter().map(|at| quarter * QUARTER + at));
        }
        Ok(Some(all))
    }

    /// Calls one side once, on inputs of its own.
    fn call(
        &self,
        side: &mut Calls<'_>,
        open: &mut Open,
        of: usize,
        (planned, kept): (&mut Vec<Planned>, &mut Vec<Ended>),
        compared: &BTreeSet<usize>,
    ) -> Result<Option<Timed>, Response> {
        let at = planned.len();
        let number = side.params().trials.len() + 2 * at + of;
        let (trial, number) = of_call(side.params(), number as u32, false)?;
        let contents = side.contents(&side.place.source(self.task, side.problem()), &trial)?;
        planned.push(Planned { trial, number, stressed: false, compared: compared.contains(&at) });
        side.sample(&mut open.clock, &mut open.process, (at, &planned[at]), &contents, kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_a_function_of_the_operators_names() {
        let product = Product {
            operands: [("a".to_string(), "x".to_string()), ("b".to_string(), "w".to_string())].into(),
            transposed: vec!["b".into()],
        };
        let (_, text) = product_of(&product);
        assert!(text.ends_with("def product(x, w):\n    return torch.matmul(x, w.mT)\n"), "{text}");
    }

    #[test]
    fn samples_that_do_not_count_did_not_wait_and_leave_time_for_expected_values() {
        let ns = (0..8).map(f64::from).collect();
        let waited = vec![true, true, true, true, true, false, true, false];
        let measured = Measured { versions: BTreeMap::new(), ns, waited };
        assert_eq!(counted(measured), (BTreeMap::new(), vec![5.0, 6.0, 7.0], 1));
        let s = Duration::from_secs;
        assert_eq!([50, 10, 5].map(|left| for_samples(s(left))), [s(10), s(0), s(0)]);
    }

    #[test]
    fn the_files_of_a_tree_go_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("own")).unwrap();
        std::fs::write(folder.path().join("own/helper.py"), "x = 1\n").unwrap();
        std::fs::write(folder.path().join("task.py"), "y = 2\n").unwrap();
        let names: Vec<String> = python_files(folder.path()).unwrap().into_keys().collect();
        assert_eq!(names, ["own/helper.py", "task.py"]);
    }
}

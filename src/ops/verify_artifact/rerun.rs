//! Verifies and times the champions of an artifact again on the devices of this machine. Knows how a package is packed: what is observed here is packed from the
//! artifact's own sources, and compared with the artifact.
//!
//! | decision | because |
//! |---|---|
//! | the home has neither results nor evidence | only what is observed here and now counts |
//! | a binary that the compiler makes differently here is not judged | what was observed is of other machine code |
//! | times are compared between devices of one class only | a time of another device is no time of this one |
//! | a time holds if its interval begins within [`MARGIN`] of the recorded one | see there |

use std::path::Path;

use super::rebuild::pin;
use super::{package_of, read};
use crate::package::write::write_folder;
use crate::package::{Ground, PackageError, PackageRequest, RefusalReason, package};
use crate::session::devices::Devices;
use crate::session::fresh_home::fresh_home;
use crate::{Error, Session};
use kforge_engine::ClaimsOption;
use kforge_engine::temporary::{Purpose, Temporary};
use kforge_pipeline::release::artifact::files::ArtifactFiles;
use kforge_pipeline::release::artifact::kernels::{PackagedKernel, PackagedShape, PackagedTime};
use kforge_pipeline::release::artifact::{KernelsDocument, SOURCE};
use kforge_project::workspace::select::SelectionArgs;
use kforge_types::model::Arch;

/// How much slower a time may be here than the artifact says, as a share of it. Two cards of one class differ by up to 7 % in what was measured on them (the
/// peaks in `docs/gpu.md`), and a champion whose time depends on the clock by as much.
const MARGIN: f64 = 0.1;

/// The result of running an artifact's champions again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rerun {
    /// The number of shapes of the artifact whose kernels were run.
    pub shapes: u64,
    /// The number of those at which the champion passes here.
    pub passing: u64,
    /// The number of times in the artifact of those kernels.
    pub times: u64,
    /// The number of those that hold here.
    pub holding: u64,
    /// The number of shapes that were not run, because no device here runs their kernels.
    pub not_run: u64,
    /// What does not hold, or is not known.
    pub findings: Vec<Finding>,
}

impl Rerun {
    /// The findings that say more than that something is unknown.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.what.is_unknown())
    }
}

/// Something of an artifact that does not hold here, or about which nothing is known here.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The kernel with its types and target, and the shape if it is about one.
    pub place: String,
    /// What was found.
    pub what: RerunFault,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RerunFault {
    /// No device here runs the target.
    #[error("not run: it needs a device {needs}, and {}", there_is(.here))]
    NoDevice {
        /// The architecture that the target names, with the product if it names one.
        needs: String,
        /// The products of this machine.
        here: Vec<String>,
    },
    /// The champion is not known to be correct or fast here.
    #[error("{0}")]
    Refused(RefusalReason),
    /// The compiler makes other machine code here.
    #[error("compiled here, its machine code differs, so nothing of the artifact's was run; `--rebuild` says why")]
    OtherCode,
    /// The shape is not among the results.
    #[error("it was not verified here")]
    NotVerified,
    /// The artifact's times are of another device class.
    #[error("its time was measured on {recorded}, and this is {here}: the times are not compared")]
    OtherDevices {
        /// The device class in the artifact.
        recorded: String,
        /// The device class here.
        here: String,
    },
    /// The time is longer.
    #[error("it takes {here_ns:.0} ns here and {recorded_ns:.0} ns in the artifact")]
    Slower {
        /// The median in the artifact, in nanoseconds.
        recorded_ns: f64,
        /// The median here, in nanoseconds.
        here_ns: f64,
    },
}

fn there_is(here: &[String]) -> String {
    match here {
        [] => "this machine has none".into(),
        here => format!("this machine has only {}", here.join(", ")),
    }
}

impl RerunFault {
    /// Whether nothing is known here, and nothing is wrong.
    pub fn is_unknown(&self) -> bool {
        match self {
            Self::NoDevice { .. } | Self::OtherCode | Self::NotVerified | Self::OtherDevices { .. } => true,
            Self::Refused(why) => why.ground() == Ground::Unknown,
            Self::Slower { .. } => false,
        }
    }
}

/// Runs the champions of an artifact again. `name` is its path as the user gave it.
pub(super) fn rerun(
    session: &Session,
    name: &Path,
    files: &ArtifactFiles,
    document: &KernelsDocument,
) -> Result<Rerun, Error> {
    let temporary = Temporary::create(Purpose::Rerun).map_err(Error::write(std::env::temp_dir()))?;
    let folder = temporary.path();
    write_folder(&folder, files)?;
    let source = folder.join(SOURCE);
    let (workspace, member) = package_of(&source, name)?;
    let mut lock = workspace.lock.clone();
    pin(&mut lock, &member.package.name, document);
    lock.write(&source, false)?;
    let mut elsewhere = session.elsewhere(source, folder.join("target"));
    elsewhere.settings.home = folder.join("home");
    fresh_home(session, &elsewhere.settings.home)?;
    let devices = Devices::find(&session.environment, session.worker.program(), &elsewhere.settings)?.present;
    let runs = |kernel: &PackagedKernel| {
        let target = member.package.targets.get(&kernel.target);
        let product = target.and_then(|target| target.device.as_deref());
        target.is_some_and(|target| target.arch != Arch::Cpu) && devices.resolve(&kernel.arch, product).is_some()
    };
    let (here, absent): (Vec<&PackagedKernel>, Vec<&PackagedKernel>) = document.kernels.iter().partition(|k| runs(k));
    let shapes = || here.iter().flat_map(|kernel| &kernel.shapes);
    let times = shapes().filter(|shape| shape.time.is_some()).count() as u64;
    let not_run = absent.iter().map(|kernel| kernel.shapes.len() as u64).sum();
    let mut rerun = Rerun { shapes: shapes().count() as u64, times, not_run, ..Rerun::default() };
    let lacks = |kernel: &&PackagedKernel| {
        let product = member.package.targets.get(&kernel.target).and_then(|target| target.device.as_deref());
        let needs = product.map_or_else(|| kernel.arch.clone(), |product| format!("{} ({product})", kernel.arch));
        let here = devices.0.iter().map(|device| device.class.product.clone()).collect();
        Finding { place: kernel.title(), what: RerunFault::NoDevice { needs, here } }
    };
    rerun.findings.extend(absent.iter().map(lacks));
    if here.is_empty() {
        return Ok(rerun);
    }
    let mut targets: Vec<String> = here.iter().map(|kernel| kernel.target.clone()).collect();
    targets.sort();
    targets.dedup();
    let request = PackageRequest {
        words: SelectionArgs { targets, ..SelectionArgs::default() },
        output: Some(folder.join("package")),
        claims: ClaimsOption::None,
        ..PackageRequest::default()
    };
    let packed = match package(&elsewhere, &request, &|_| None) {
        Ok(packed) => packed,
        Err(Error::Package(PackageError::Refused { reasons, .. })) => {
            let findings = reasons.into_iter().map(|r| Finding { place: r.place, what: RerunFault::Refused(r.why) });
            rerun.findings.extend(findings);
            return Ok(rerun);
        }
        Err(other) => return Err(other),
    };
    for packed in packed {
        let observed = read(&packed.archive, &packed.archive).and_then(|files| KernelsDocument::of(&files));
        let observed = observed.map_err(|why| PackageError::Files { package: packed.index.package.clone(), why })?;
        here.iter().for_each(|kernel| compare(kernel, &observed, &mut rerun));
    }
    Ok(rerun)
}

/// Compares what an artifact says of a kernel with what was observed here.
fn compare(kernel: &PackagedKernel, observed: &KernelsDocument, rerun: &mut Rerun) {
    let same = |other: &&PackagedKernel| {
        (&other.kernel, &other.types, &other.target) == (&kernel.kernel, &kernel.types, &kernel.target)
    };
    let here = observed.kernels.iter().find(same);
    for shape in &kernel.shapes {
        let mut finds = |what| {
            rerun.findings.push(Finding { place: format!("{} at {}", kernel.title(), shape.shape), what });
        };
        let Some((own, at)) = here.and_then(|own| {
            let at = own.shapes.iter().find(|at| at.shape == shape.shape && at.variant == shape.variant)?;
            Some((own, at))
        }) else {
            finds(RerunFault::NotVerified);
            continue;
        };
        if code(kernel, shape) != code(own, at) {
            finds(RerunFault::OtherCode);
            continue;
        }
        rerun.passing += 1;
        match (&shape.time, &at.time) {
            (Some(_), Some(_)) if kernel.devices != own.devices => {
                let (recorded, here) = (kernel.devices.join(" "), own.devices.join(" "));
                finds(RerunFault::OtherDevices { recorded, here });
            }
            (Some(recorded), Some(measured)) if is_slower(recorded, measured) => {
                finds(RerunFault::Slower { recorded_ns: recorded.median_ns, here_ns: measured.median_ns });
            }
            (Some(_), Some(_)) => rerun.holding += 1,
            _ => {}
        }
    }
}

/// The machine code of the champion at a shape.
fn code<'a>(kernel: &'a PackagedKernel, shape: &PackagedShape) -> Option<&'a kforge_foundation::base::Digest> {
    kernel.variant_at(shape).map(|variant| &variant.digest)
}

/// Whether a time is longer than the margin allows, even at the near ends of both intervals.
fn is_slower(recorded: &PackagedTime, here: &PackagedTime) -> bool {
    let (least, most) = (
        here.interval_ns.map_or(here.median_ns, |(least, _)| least),
        recorded.interval_ns.map_or(recorded.median_ns, |(_, most)| most),
    );
    least > most * (1.0 + MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::base::Digest;

    #[test]
    fn a_time_is_longer_only_beyond_the_margin_and_both_intervals() {
        let time = |median_ns: f64, interval_ns| PackagedTime {
            question: Digest::of(b"q"),
            median_ns,
            interval_ns,
            samples: 100,
        };
        let recorded = time(1000.0, Some((990.0, 1010.0)));
        assert!(!is_slower(&recorded, &time(1150.0, Some((1110.0, 1190.0)))));
        assert!(is_slower(&recorded, &time(1150.0, Some((1112.0, 1190.0)))));
        assert!(
            !is_slower(&time(1000.0, None), &time(1099.0, None)) && is_slower(&time(1000.0, None), &time(1101.0, None))
        );
        assert!(!is_slower(&recorded, &time(500.0, None)), "a shorter time holds");
    }
}

//! Checks whether a profiler may read counters on this machine by reading one for a kernel of kforge's own. A list of counters shows nothing, because listing
//! needs no permission.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::client::{Client, Starter, WRITING, WrappingTool};
use super::super::facts::Probed;
use super::super::wire::Ask;
use super::log::ValueError;
use super::{args, judged};
use kforge_types::record::Unknown;

/// The kernel that is launched.
const KERNEL: &str = "kforge_show";
/// The counter that is read.
const COUNTER: &str = "sm__cycles_active.avg";

/// Why a profiler may not or cannot read counters.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// There is no device.
    #[error("there is no device")]
    NoDevice,
    /// The working folder cannot be created.
    #[error("a folder cannot be made: {0}")]
    Folder(std::io::Error),
    /// The profiler reports nothing.
    #[error("{0}")]
    Unknown(Unknown),
    /// The profiler counted nothing.
    #[error("nothing was counted")]
    Nothing,
    /// The value is missing, not a number, or in an unknown unit.
    #[error(transparent)]
    Value(#[from] ValueError),
}

/// Reads a counter with `ncu` on the first of these devices.
///
/// # Errors
/// `ncu` has no permission, or does not work.
pub fn counters(ncu: &Path, probed: &Probed) -> Result<(), CountersError> {
    let facts = probed.devices.first().ok_or(CountersError::NoDevice)?.clone();
    let folder = tempfile::tempdir().map_err(CountersError::Folder)?;
    let file: PathBuf = folder.path().join("profile.csv");
    let own = [KERNEL.to_string()].into();
    let mut args = args(&file, &[COUNTER].into(), &own, 1);
    // With a single launch, none must be skipped.
    if let Some(skip) = args.iter().position(|arg| arg == "--launch-skip") {
        args[skip + 1] = "0".into();
    }
    let under = WrappingTool { program: ncu.into(), args, folder: folder.path().into() };
    let ran = Client::begin(probed, facts, Duration::from_secs(60), &Starter::Under(&under)).and_then(|mut client| {
        let (set, name, limit) = (0, "counted".to_string(), Duration::from_secs(30));
        client.ask(Ask::Allocate { set, name: name.clone(), bytes: 8192, offset: 2048, own: 4096 }, limit)?;
        client.ask(Ask::Show { set, names: vec![name], canary: 0, salt: 1 }, limit)?;
        client.end(WRITING)
    });
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let log = judged(&text, 1, ran.map(|end| end.to_string())).map_err(CountersError::Unknown)?;
    log.value(log.launches.first().ok_or(CountersError::Nothing)?, COUNTER)?;
    Ok(())
}

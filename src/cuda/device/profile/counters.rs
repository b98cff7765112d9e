//! Whether a profiler may read counters on this machine: has it read one of a kernel of kforge's own. That it lists counters shows nothing: listing needs no permission.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::client::{Client, WRITING, WrappingTool};
use super::super::facts::Probed;
use super::super::wire::Ask;
use super::log::ValueError;
use super::{args, judged};
use kforge_types::record::Unknown;

/// What is launched.
const KERNEL: &str = "kforge_show";
/// What is counted.
const COUNTER: &str = "sm__cycles_active.avg";

/// Why a profiler may not read counters, or does not.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// There is no device.
    #[error("there is no device")]
    NoDevice,
    /// There is no working folder.
    #[error("a folder cannot be made: {0}")]
    Folder(std::io::Error),
    /// It reports nothing.
    #[error("{0}")]
    Unknown(Unknown),
    /// It counted nothing.
    #[error("nothing was counted")]
    Nothing,
    /// It counted something else.
    #[error(transparent)]
    Value(#[from] ValueError),
}

/// Has `ncu` read a counter on the first of these devices.
///
/// # Errors
/// It may not, or does not work.
pub fn counters(ncu: &Path, probed: &Probed) -> Result<(), CountersError> {
    let facts = probed.devices.first().ok_or(CountersError::NoDevice)?.clone();
    let folder = tempfile::tempdir().map_err(CountersError::Folder)?;
    let file: PathBuf = folder.path().join("profile.csv");
    let own = [KERNEL.to_string()].into();
    let mut args = args(&file, &[COUNTER].into(), &own, 1);
    // Of a single launch none is left out.
    if let Some(skip) = args.iter().position(|arg| arg == "--launch-skip") {
        args[skip + 1] = "0".into();
    }
    let under = WrappingTool { program: ncu.into(), args, folder: folder.path().into() };
    let ran = Client::begin(probed, facts, Duration::from_secs(60), Some(&under)).and_then(|mut client| {
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

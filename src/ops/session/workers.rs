//! Passes steps to worker processes, with the tools that their toolchain's digest identifies. Installs a toolchain when the first step needs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::tools::Tools;
#[cfg(feature = "remote")]
use crate::elsewhere::StepLimits;
use crate::event::Reporter;
use kforge_engine::{Execution, Job, RunError};
use kforge_harness::execute::{WarmUp, WorkerExecutor};
use kforge_harness::message::Places;
use kforge_harness::pool::Pool;
use kforge_pipeline::step::RemoteExecutor;
use kforge_types::record::device::is_remote;
use kforge_types::record::{Devices, StepKind};
use kforge_worker::compiled::NVCC;

/// The workers of a build.
pub(crate) struct Workers<'a> {
    /// The processes.
    pub pool: &'a Arc<Pool>,
    /// The devices at which the build has steps.
    pub devices: Devices,
    /// By UUID: the runner that was started at a device when the first compilation for it began.
    pub warm: &'a Mutex<BTreeMap<String, WarmUp>>,
    /// The tools of each toolchain.
    pub tools: &'a Tools,
    /// What workers get in addition to the tools of a step.
    pub beside: &'a BTreeMap<String, PathBuf>,
    /// The reporter of installations.
    pub reporter: &'a Reporter,
    /// The parent folder of the steps' folders.
    pub scratch: PathBuf,
    /// The folder of expected outputs by digest, and how many bytes of them to keep.
    pub expected: (PathBuf, u64),
    /// The limit of one run of candidate code, in seconds.
    pub run_limit_s: u64,
    /// The memory limit of candidate code, in bytes.
    pub memory_limit: u64,
    /// The memory limit of compilers, in bytes.
    pub compiler_memory: u64,
    /// Whether candidate code and compilers may run if the system cannot confine them.
    pub allow_unconfined: bool,
    /// The folder of this build in which candidates that timed out are remembered.
    pub hangs: &'a Path,
}

impl Workers<'_> {
    /// The limits of a step that another machine executes.
    #[cfg(feature = "remote")]
    pub(super) fn step_limits(&self, time_s: u64) -> StepLimits {
        let (run_s, memory, compiler_memory) = (self.run_limit_s, self.memory_limit, self.compiler_memory);
        StepLimits { time_s, run_s, memory, compiler_memory }
    }

    /// Starts a runner at a device that can run what this step compiles, if it is the first such step.
    pub(super) fn warm_up(&self, job: &Job<'_>) {
        let arch = job.spec.params.get("arch").and_then(|arch| arch.as_str());
        let Some(arch) = arch.filter(|_| job.spec.kind == StepKind::Compile) else { return };
        let resolved = self.devices.resolve(arch, None);
        if let Some(device) = resolved.as_ref().and_then(|resolved| resolved.uuids.first()) {
            let mut warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
            warm.entry(device.clone()).or_insert_with(|| {
                let limits = self.executor(BTreeMap::new(), &self.scratch);
                WarmUp::begin(self.pool.clone(), device, arch, &limits)
            });
        }
    }

    fn executor<'e>(&'e self, mut tools: BTreeMap<String, PathBuf>, scratch: &'e Path) -> WorkerExecutor<'e> {
        tools.extend(self.beside.clone());
        let places = Places { tools, read: self.tools.read().to_vec(), scratch: Some(self.expected.clone()) };
        WorkerExecutor {
            pool: self.pool,
            places,
            scratch,
            run_limit_s: self.run_limit_s,
            memory_limit: self.memory_limit,
            compiler_memory: self.compiler_memory,
            allow_unconfined: self.allow_unconfined,
            hangs: self.hangs,
        }
    }
}

impl RemoteExecutor for Workers<'_> {
    fn execute(&self, job: &Job<'_>) -> Result<Execution, RunError> {
        if job.device.is_some_and(is_remote) {
            let why = "the server of `remote.url` cannot be used, and only its workers have such a device";
            return Err(RunError::Unavailable(why.into()));
        }
        self.warm_up(job);
        let toolchain = job.spec.inputs.get("toolchain").and_then(|i| i.digest);
        let mut places = BTreeMap::new();
        // A step may use several toolchains: `toolchain:python` in addition to `toolchain:c++`.
        let named = job.spec.inputs.iter().filter(|(name, _)| name.split(':').next() == Some("toolchain"));
        for digest in named.filter_map(|(_, input)| input.digest) {
            let tools = self.tools.places(&digest, self.reporter);
            places.extend(tools.map_err(|missing| RunError::Unavailable(missing.to_string()))?);
        }
        match (self.executor(places, &self.scratch).execute(job), toolchain) {
            (Err(needs @ RunError::NeedsTool { .. }), Some(digest)) if needs.needs(NVCC) => {
                let places = self.tools.nvcc(&digest, self.reporter);
                let places = places.map_err(|e| RunError::Unavailable(format!("{needs}; {e}")))?;
                self.executor(places, &self.scratch).execute(job)
            }
            (result, _) => result,
        }
    }
}

//! Prepares a build from an open workspace, stage by stage: locks, journal, toolchains, sources, host tools, plan, evidence, engine. Each stage is a file;
//! packages below do the work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use super::devices::{Asking, Devices};
use super::evidence_policy::EvidencePolicy;
use super::open::{Opened, Session};
use super::package_files::Leaves;
use super::remote::BuildRemote;
#[cfg(feature = "remote")]
use super::remote_devices::HoldoutShapes;
#[cfg(feature = "remote")]
use super::remote_workers::Turns;
use super::rounds::Recorded;
use super::tools::Tools;
use crate::Error;
use crate::implementation::implementations;
use kforge_engine::action::ActionCache;
use kforge_engine::authentication::Authentication;
use kforge_engine::evidence::{self, Findings};
use kforge_engine::journal::{Journal, JournalMemory};
use kforge_engine::lock::Lock;
use kforge_engine::machine_key::MachineKey;
use kforge_engine::{Blobs, BuildOptions, Graph};
use kforge_foundation::base::{Digest, Witness};
use kforge_harness::execute::WarmUp;
use kforge_harness::pool::Pool;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::plan::expand::Expander;
use kforge_pipeline::release::bundle::Step;
use kforge_pipeline::release::signed::SignedDocuments;
use kforge_pipeline::release::trust::Trust;
use kforge_project::workspace::select::Selected;
use kforge_types::record::{self, Implementations, StepKind};

mod bundles;
mod engine;
mod sources;
mod host;
mod journal;
mod locks;
pub(crate) mod names;
mod packages;
mod plan;
mod resolve;
mod services;
mod toolchains;

pub use packages::Packages;

/// The request for a plan or a build.
pub struct PlanRequest {
    /// The selection.
    pub selected: Selected,
    /// How far to go.
    pub goal: Goal,
    /// The number of steps to run in parallel.
    pub jobs: Option<i64>,
    /// Continue after failures.
    pub keep_going: bool,
    /// Measure again.
    pub remeasure: bool,
    /// Which evidence counts.
    pub evidence: EvidencePolicy,
    /// The overlay.
    pub overlay: Option<PathBuf>,
    /// Whether to write the lockfile, the journal and the output folder. A dry run does not.
    pub write: bool,
    /// Whether the plan is only shown. Then nothing is compiled, so missing toolchains are not reported.
    pub looks: bool,
}

/// Everything that a build needs.
pub struct Ready<'a> {
    /// The plan's nodes, as a graph.
    pub graph: Graph,
    /// Adds nodes once champions are known.
    pub expander: Expander<'a>,
    /// The store, with leaves in front of it.
    pub leaves: Arc<Leaves>,
    /// The options of the build.
    pub options: BuildOptions,
    /// The toolchains.
    pub tools: Tools,
    /// This workspace's journal.
    pub journal: Arc<Journal>,
    /// The key of this machine, if it has one.
    pub machine_key: Option<Arc<MachineKey>>,
    /// The remote cache, if there is one.
    pub remote: BuildRemote,
    /// Which evidence counts.
    pub policy: EvidencePolicy,
    /// Which remembered results count.
    pub authentication: Authentication,
    /// What lookups in the evidence found besides answers.
    found: Mutex<Findings>,
    /// The digests of the code that executes steps.
    pub implementations: Implementations,
    /// The shared action cache.
    pub actions: ActionCache,
    /// The engine's memory of earlier builds.
    pub memory: JournalMemory,
    /// The worker processes.
    pub pool: Arc<Pool>,
    /// The runners that were started at devices, by UUID.
    pub warm: Arc<Mutex<BTreeMap<String, WarmUp>>>,
    /// The devices of this machine.
    pub devices: Devices,
    /// The holdout shapes of the packages, if workers of a server have devices.
    #[cfg(feature = "remote")]
    holdouts: HoldoutShapes,
    /// The devices that workers of a server hold, as the settings say.
    pub(crate) remote_devices: Vec<record::Device>,
    /// The turns at these devices.
    #[cfg(feature = "remote")]
    turns: Arc<Turns>,
    /// Whether workers of a server brought records of devices.
    brought: Arc<AtomicBool>,
    /// The UUIDs of the devices at which the plan has steps.
    pub observed: BTreeSet<String>,
    /// Records of bundles in the repository.
    pub committed: Arc<evidence::Beside>,
    /// The number of those records for each binary that the bundles contain.
    pub about: Arc<evidence::About>,
    /// The steps that asked the questions of those records where the bundles were created.
    pub known_as: BTreeMap<Digest, (StepKind, Vec<Step>)>,
    /// Whom the build trusts to sign evidence.
    pub trust: Arc<Trust>,
    /// The signed documents of imported bundles.
    pub signed: Arc<SignedDocuments>,
    /// The recorded rounds of the kernels.
    pub recorded: Vec<Recorded>,
    /// The file system queries that planning made.
    pub witness: Witness,
    /// Whether they determine the plan.
    pub decided: bool,
    /// Whether a toolchain could not be resolved although the network may be used.
    pub unresolved: bool,
    /// Held while the build runs.
    _locks: Vec<Lock>,
}

impl Session {
    /// Prepares a build: locks, reads sources, resolves toolchains, plans. If the request does not write, takes no lock.
    ///
    /// # Errors
    /// Any error that keeps a build from starting.
    pub fn ready<'p>(
        &self,
        opened: &mut Opened,
        packages: &'p Packages,
        asked: &PlanRequest,
    ) -> Result<Ready<'p>, Error> {
        let locks = self.locks(opened, asked)?;
        let journal = self.journal(opened, asked)?;
        let asking =
            self.shared.is_none().then(|| Asking::begin(&self.environment, self.worker.program(), &self.settings));
        let libraries = self.libraries(opened, packages, asked)?;
        let mut gathered = self.gathered(opened, packages, &journal.journal, &libraries)?;
        let cub = gathered.emulate_cub(packages);
        let toolchains = self.toolchains(opened, packages, asked, &cub)?;
        if asked.write {
            gathered.show(&opened.target, packages)?;
        }
        let mut witness = std::mem::take(&mut gathered.witness);
        libraries.values().for_each(|folder| witness.listed(folder));
        let mut hosted = self.hosted(opened, packages, asked, &journal.journal, &toolchains, &cub)?;
        let devices = match (asking, &self.shared) {
            (Some(asking), _) => asking.end(&self.settings)?,
            (None, Some(shared)) => shared.devices.clone(),
            (None, None) => Devices::default(),
        };
        // An installed CUDA is listed again each time. A missing CUDA may be available next time, and a present device may be gone next time.
        let decided = journal.whole && toolchains.decided && hosted.decided && devices.is_none();
        let inputs = hosted.inputs(opened, packages, &mut gathered);
        let elsewhere = self.remote_devices();
        #[cfg(feature = "remote")]
        let holdouts = if elsewhere.is_empty() { HoldoutShapes::default() } else { HoldoutShapes::of(packages) };
        let decided = decided && elsewhere.is_empty();
        let all = record::Devices(devices.present.0.iter().chain(&elsewhere).cloned().collect());
        let planned = self.planned(packages, asked, inputs, all)?;
        let at_devices = planned.graph.nodes().filter_map(|node| node.resources.device.as_ref());
        let observed = at_devices.flat_map(|uuids| uuids.iter().cloned()).collect();
        witness.add(hosted.witness);
        let trusted = self.trusted(Some(&opened.workspace.root), None)?;
        witness.add(trusted.witness.clone());
        let trust = self.told(trusted)?;
        let committed = self.committed(opened, packages, &trust, &mut witness);
        let mut documents = hosted.tools.documents().clone();
        documents.extend(committed.contents);
        documents.extend(gathered.texts);
        documents.extend(planned.documents);
        let machine_key = self.machine_key(asked.write);
        let sample = machine_key.clone();
        let remote = self.build_remote(opened, asked.evidence.refuses_claims(), self.local_jobs(asked)?, sample)?;
        let store = remote.behind(opened.store.clone());
        let leaves = Arc::new(Leaves::new(store, gathered.files, documents));
        let blobs: Arc<dyn Blobs> = leaves.clone();
        let authentication = Authentication::new(machine_key.clone(), asked.evidence.refuses_claims());
        Ok(Ready {
            options: self.build_options(asked, &locks, machine_key.clone(), &remote)?,
            pool: match &self.shared {
                Some(shared) => shared.pool.clone(),
                None => Arc::new(self.pool(&opened.home)?),
            },
            warm: self.shared.as_ref().map(|shared| shared.warm.clone()).unwrap_or_default(),
            observed,
            graph: planned.graph,
            expander: planned.expander,
            memory: JournalMemory::new(journal.journal.clone(), blobs.clone()),
            actions: ActionCache::new(&opened.home, blobs).with(authentication.clone()),
            authentication,
            machine_key,
            remote,
            policy: asked.evidence,
            found: Mutex::default(),
            leaves,
            tools: hosted.tools,
            journal: journal.journal,
            implementations: implementations(),
            devices,
            #[cfg(feature = "remote")]
            holdouts,
            brought: Arc::default(),
            remote_devices: elsewhere,
            #[cfg(feature = "remote")]
            turns: self.shared.as_ref().map(|shared| shared.turns.clone()).unwrap_or_default(),
            committed: Arc::new(committed.records),
            about: Arc::new(committed.about),
            known_as: committed.names,
            signed: Arc::new(SignedDocuments::new(&opened.home, trust.clone())),
            trust,
            recorded: gathered.recorded.into_iter().flatten().collect(),
            witness,
            decided,
            unresolved: toolchains.unresolved,
            _locks: locks,
        })
    }
}

impl Ready<'_> {
    /// Releases locks and ends worker processes. The rest is left to the end of this process, which comes next: freeing a plan of a hundred thousand nodes one
    /// by one takes longer than making a certificate of it.
    pub fn end(self) {
        let Ready { graph, expander, leaves, memory, pool, _locks, .. } = self;
        drop((pool, _locks));
        std::mem::forget((graph, expander, leaves, memory));
    }

    /// What lookups in the evidence found besides answers.
    pub fn findings(&self) -> Findings {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a toolchain could not be resolved or installed although the network may be used. If so, the build has failed, even if no step needed that
    /// toolchain.
    pub fn lacks_toolchain(&self) -> bool {
        self.unresolved || self.tools.is_refused()
    }
}

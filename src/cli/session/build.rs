//! From an open workspace to a build made ready: sources, toolchains, plan. Prints through the console; the rooms do the work.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::devices::{Asking, Devices};
use super::generated::{show_generated, show_written};
use super::implementation::implementations;
use super::leaves::Leaves;
use super::machine::Machine;
use super::open::{Context, Opened, make_target};
use super::rounds::{self, Recorded};
use super::sources::{self, Leaf, Sources};
use super::tools::{Host, Tools};
use crate::cli::exit::Exit;
use kforge_engine::action::ActionCache;
use kforge_engine::evidence;
use kforge_engine::journal::{Journal, JournalMemory};
use kforge_engine::lock::{Lock, LockError, Mode, Wait};
use kforge_engine::stat::StatCache;
use kforge_engine::{Blobs, BuildOptions, Capacity, Graph};
use kforge_foundation::base::{Digest, Witness};
use kforge_foundation::process::Command;
use kforge_harness::pool::{FOR_A_DEVICE, Pool};
use kforge_pipeline::optimize::methods::Facts;
use kforge_pipeline::plan::expand::Expander;
use kforge_pipeline::plan::{Goal, PackageInput, PlanInput, Planner, Selection};
use kforge_pipeline::release::bundle::Step;
use kforge_pipeline::release::committed;
use kforge_project::toolchain::Cuda;
use kforge_project::workspace::Member;
use kforge_project::workspace::select::Selected;
use kforge_types::model::{self, Package, Reference};
use kforge_types::record::{Implementations, StepKind};

mod names;
mod packages;
mod resolve;
mod services;

pub use packages::Packages;

/// What a build is asked.
pub struct Asked {
    /// What was selected.
    pub selected: Selected,
    /// How far to go.
    pub goal: Goal,
    /// Steps at once.
    pub jobs: Option<i64>,
    /// Go on after failures.
    pub keep_going: bool,
    /// Measure again.
    pub remeasure: bool,
    /// A private manifest.
    pub overlay: Option<PathBuf>,
    /// Whether to write: the lock, the journal, the output folder. A dry run does not.
    pub write: bool,
    /// Whether the plan is only looked at: nothing is compiled, so nothing is said of toolchains that cannot be had.
    pub looks: bool,
}

/// Everything a build needs, made ready.
pub struct Ready<'a> {
    /// The plan's nodes, as a graph.
    pub graph: Graph,
    /// Adds nodes when champions are known.
    pub expander: Expander<'a>,
    /// The store with leaves before it.
    pub leaves: Arc<Leaves>,
    /// How to build.
    pub options: BuildOptions,
    /// The toolchains.
    pub tools: Tools,
    /// This workspace's journal.
    pub journal: Arc<Journal>,
    /// The code that does steps.
    pub implementations: Implementations,
    /// The shared action cache.
    pub actions: ActionCache,
    /// The engine's memory.
    pub memory: JournalMemory,
    /// The worker processes.
    pub pool: Pool,
    /// The devices of this machine.
    pub devices: Devices,
    /// Records of bundles in the repository.
    pub committed: Arc<evidence::Beside>,
    /// How many of those are about each binary that they bring.
    pub about: Arc<evidence::About>,
    /// What asked the questions of those records where they come from.
    pub known_as: BTreeMap<Digest, (StepKind, Vec<Step>)>,
    /// The recorded rounds of the kernels.
    pub recorded: Vec<Recorded>,
    /// What planning asked of the file system; none where that does not decide the plan.
    pub witness: Option<Witness>,
    /// Whether a toolchain could not be resolved though the network may be used.
    pub unresolved: bool,
    /// Held while the build runs.
    _locks: Vec<Lock>,
}

impl Context {
    /// Locks the workspace, says so if it must wait.
    pub fn lock(&self, opened: &Opened, interrupted: &AtomicBool) -> Result<Vec<Lock>, Exit> {
        let path = opened.target.join(".lock");
        let mut blocked =
            || self.console.status("Blocking", "waiting for another kforge to finish with this workspace");
        let wait = if self.global.no_wait { Wait::No } else { Wait::Unless(interrupted, &mut blocked) };
        let own = Lock::acquire(&path, Mode::Exclusive, wait).map_err(|e| match e {
            LockError::Busy(_) => {
                self.console.error("another kforge works in this workspace, and --no-wait was given");
                Exit::Busy
            }
            LockError::Interrupted(_) => Exit::Interrupted,
            LockError::Io { .. } => self.fail(&e.to_string()),
        })?;
        let mut blocked = || self.console.status("Blocking", "waiting for the shared cache to be collected");
        let wait = if self.global.no_wait { Wait::No } else { Wait::Unless(interrupted, &mut blocked) };
        let cache = opened.home.lock_cache(Mode::Shared, wait).map_err(|e| match e {
            LockError::Busy(_) => Exit::Busy,
            LockError::Interrupted(_) => Exit::Interrupted,
            LockError::Io { .. } => self.fail(&e.to_string()),
        })?;
        Ok(vec![own, cache])
    }

    /// Makes a build ready: locks, reads sources, resolves toolchains, plans.
    pub fn ready<'p>(
        &self,
        opened: &mut Opened,
        packages: &'p Packages,
        asked: &Asked,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Ready<'p>, Exit> {
        let locks = if asked.write {
            make_target(&opened.target).map_err(|e| self.fail(&e.to_string()))?;
            let locks = self.lock(opened, interrupted)?;
            // Whoever was waited for may have resolved what this build would.
            opened.workspace.read_lock().map_err(|e| self.fail(&e.to_string()))?;
            locks
        } else {
            vec![]
        };
        let path = opened.target.join("journal");
        let opened_journal = if asked.write { Journal::open(&path) } else { Journal::view(&path).map(|j| (j, vec![])) };
        let (journal, warnings) = opened_journal.map_err(|e| self.fail(&e.to_string()))?;
        warnings.iter().for_each(|w| self.console.warn(w));
        let journal = Arc::new(journal);
        if asked.write {
            // Collection must know of this workspace before it has results to lose.
            opened.home.register(&path).map_err(|e| self.fail(&e.to_string()))?;
        }
        let devices = Asking::begin(&self.environment);
        let mut unresolved = false;
        let cudas = self.cudas(opened, packages, asked, &mut unresolved)?;
        let libraries = self.libraries(opened, packages, asked)?;
        // An installed CUDA is listed anew each time; one that could not be had may be had next time.
        let mut decided = warnings.is_empty() && cudas.values().all(|c| matches!(c, Ok(Cuda::Wheels(_))));
        let root = opened.workspace.root.clone();
        let stats = StatCache::new(&journal, &root, true);
        let tools_seen = RefCell::new(Witness::default());
        let mut leaf = Leaf::new(&stats, &root, &journal);
        let mut found: Vec<Sources> = Vec::new();
        let mut wrong = Vec::new();
        let mut recorded = Vec::new();
        for member in &packages.members {
            match sources::find(&opened.workspace, member, &libraries, &mut leaf) {
                Ok(mut sources) => {
                    let mut rounds = self.recorded(opened, member, &sources, &mut leaf.witness)?;
                    let written: Vec<&model::Kernel> =
                        rounds.iter().flat_map(|r| &r.attempts).filter_map(|a| a.written.as_ref()).collect();
                    sources::add(member, &written, &mut leaf, &mut sources);
                    rounds::refuse(&mut rounds, &sources);
                    found.push(sources);
                    recorded.push(rounds);
                }
                Err(diagnostics) => wrong.extend(diagnostics),
            }
        }
        self.say(&wrong)?;
        let files = std::mem::take(&mut leaf.files);
        let texts = std::mem::take(&mut leaf.texts);
        if asked.write {
            let written = recorded.iter().try_for_each(|of: &Vec<Recorded>| show_written(&opened.target, of));
            written.and_then(|()| show_generated(&opened.target, packages)).map_err(|e| {
                self.fail(&format!("cannot write the generated sources to `{}`: {e}", opened.target.display()))
            })?;
        }
        let mut witness = std::mem::take(&mut leaf.witness);
        libraries.values().for_each(|folder| witness.listed(folder));
        let mut tools = Tools::new(&opened.home.toolchains(), self.offline(), self.environment.all());
        let machine = Machine::open(&opened.home, asked.write);
        let memo = machine.as_ref().map_or(&*journal, Machine::journal);
        let tool_stats = StatCache::new(memo, &root, true);
        let stats_of = |path: &Path| -> io::Result<Digest> {
            tools_seen.borrow_mut().saw(path, true);
            let missing = || io::Error::new(io::ErrorKind::NotFound, format!("`{}` is gone", path.display()));
            tool_stats.digests(&[path.to_path_buf()]).pop().unwrap_or(Ok(None))?.ok_or_else(missing)
        };
        let wants_python = packages.members.iter().any(|m| uses_python(&m.package));
        let (cxx, python) = (self.settings.path("toolchain.cxx"), self.settings.path("toolchain.python"));
        let host =
            Host::find(cxx.as_deref(), python.as_deref(), self.environment.path(), wants_python, memo, &stats_of);
        match &host.witness {
            Some(seen) => witness.add(seen.clone()),
            None => decided = false,
        }
        let mut inputs = Vec::new();
        for ((member, sources), rounds) in packages.members.iter().zip(found).zip(&recorded) {
            let cuda_of = |p: &Package| {
                cudas.get(&p.name).cloned().unwrap_or_else(|| Err("the package has no device target".into()))
            };
            let toolchains = tools.of_package(&member.package, &host, &cuda_of, &stats_of);
            let pins = opened.workspace.lock.pins(&member.package.name);
            let pins = pins.map(|(s, pin)| {
                ((s.kernel.clone(), s.types.clone(), s.target.clone(), s.class.clone()), pin.identity())
            });
            inputs.push(PackageInput {
                package: &member.package,
                sources: sources.sources,
                references: sources.references,
                include: sources.include,
                toolchains,
                tried: rounds
                    .iter()
                    .map(|r| ((r.seat.kernel.clone(), r.seat.types.clone(), r.seat.target.clone()), r.attempts.clone()))
                    .collect(),
                pins: pins.collect(),
                accepted: opened.workspace.lock.accepted(&member.package.name),
            });
        }
        if let Some(machine) = machine {
            machine.close();
        }
        let devices = devices.end(&self.settings).map_err(|e| self.fail(&e))?;
        // A device that is there may be gone next time, so nothing is certified beside it.
        decided &= devices.present.is_empty() && devices.tools.is_empty();
        let mut planner = Planner::plan(PlanInput {
            packages: inputs,
            selection: Selection {
                kernels: asked.selected.kernels.clone(),
                operators: asked.selected.operators.clone(),
                shapes: asked.selected.shapes.clone(),
                targets: asked.selected.targets.clone(),
            },
            goal: asked.goal,
            emulator_limit: self.settings.number("emulator.max-work") as f64,
            oracle_limit: self.settings.number("oracle.max-work") as f64,
            time_limit_s: self.settings.number("build.time-limit"),
            devices: devices.present.clone(),
            methods: kforge_pipeline::optimize::methods::signatures(),
            facts: |operator, choice, kernel| Facts::of(operator, choice, kernel, None).named(),
        });
        self.say(&std::mem::take(&mut planner.diagnostics))?;
        let nodes = std::mem::take(&mut planner.nodes);
        if nodes.is_empty() {
            let kernels = packages.members.iter().any(|m| !m.package.kernels.is_empty());
            self.console.error(if kernels {
                "nothing to do: the selected kernels are not for the selected targets"
            } else {
                "nothing to do: the selected packages declare no kernel; add a `[kernel.NAME]` table"
            });
            return Err(Exit::NothingSelected);
        }
        witness.add(tools_seen.take());
        let graph = Graph::new(nodes).map_err(|e| {
            self.console.error(&format!("BUG: {e}"));
            Exit::Bug
        })?;
        let committed = self.committed(opened, packages, &mut witness);
        let mut documents: BTreeMap<Digest, Vec<u8>> = tools.documents().clone();
        documents.extend(committed.contents);
        documents.extend(texts);
        documents.extend(std::mem::take(&mut planner.documents));
        let leaves =
            Arc::new(Leaves::new(opened.store.clone(), files.into_iter().collect::<HashMap<_, _>>(), documents));
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let jobs = match asked.jobs {
            Some(0) => {
                self.console.error(
                    "`-j 0` runs nothing: expected a positive number, or a negative one for cores less that many",
                );
                return Err(Exit::Usage);
            }
            Some(n) if n > 0 => n as usize,
            Some(n) => cores.saturating_sub(n.unsigned_abs() as usize).max(1),
            None => self.settings.jobs(cores),
        };
        let remeasure = asked
            .remeasure
            .then(|| -> kforge_engine::services::Chosen { Arc::new(|node| node.resources.device.is_some()) });
        let options = BuildOptions {
            keep_going: asked.keep_going || self.settings.flag("build.keep-going"),
            capacity: Capacity {
                cpus: jobs as u32,
                memory_mib: super::memory::capacity_mib(&self.settings),
                shared: FOR_A_DEVICE,
                // Where locks hold nothing the steps of this build take turns all the same.
                takes_turns: locks.iter().all(Lock::is_held),
                ..Capacity::default()
            },
            interrupted: interrupted.clone(),
            remeasure,
            quiet_fresh: !self.console.json(),
            total: Arc::default(),
        };
        let blobs: Arc<dyn Blobs> = leaves.clone();
        let memory = JournalMemory::new(journal.clone(), blobs.clone());
        let actions = ActionCache::new(&opened.home, blobs);
        let program = std::env::current_exe().map_err(|e| self.fail(&format!("cannot find this program: {e}")))?;
        let pool = Pool::new(Command::new(program).arg("worker")).within(opened.home.steps());
        Ok(Ready {
            graph,
            expander: Expander::new(planner),
            leaves,
            options,
            tools,
            journal,
            implementations: implementations(),
            actions,
            devices,
            memory,
            pool,
            committed: Arc::new(committed.records),
            about: Arc::new(committed.about),
            known_as: committed.names,
            recorded: recorded.into_iter().flatten().collect(),
            witness: decided.then_some(witness),
            unresolved,
            _locks: locks,
        })
    }

    /// The bundles of evidence in the repository, for packages that have a target which they could be about. Says which are refused.
    fn committed(&self, opened: &Opened, packages: &Packages, witness: &mut Witness) -> committed::Committed {
        let on_device = |m: &&Member| m.package.targets.values().any(|t| t.arch != model::Arch::Cpu);
        let folders: Vec<PathBuf> = packages.members.iter().filter(on_device).map(|m| m.folder.clone()).collect();
        if folders.is_empty() {
            return committed::Committed::default();
        }
        let mut found = committed::read(&opened.workspace.root, folders);
        witness.add(std::mem::take(&mut found.witness));
        for (name, why) in &found.refused {
            self.console.warn(&format!(
                "the bundle of evidence `{name}` does not count: {why}; restore it from version control, or remove it"
            ));
        }
        found
    }
}

fn uses_python(package: &Package) -> bool {
    let compares = |o: &model::Operator| o.compare().values().any(|c| matches!(c, model::Compare::Python(..)));
    let uses = |o: &model::Operator| {
        matches!(o.reference, Reference::Python { .. }) || o.generate_inputs.is_some() || compares(o)
    };
    package.operators.iter().any(uses)
}

impl Ready<'_> {
    /// Ends what has to be ended: locks and worker processes. The rest is left to the end of this process, which comes next: to take a plan of a hundred
    /// thousand nodes apart again, one by one, takes longer than to make a certificate of it.
    pub fn end(self) {
        let Ready { graph, expander, leaves, memory, pool, _locks, .. } = self;
        drop((pool, _locks));
        std::mem::forget((graph, expander, leaves, memory));
    }

    /// Whether a toolchain could not be had though the network may be used: then the build has failed, whatever it could do without.
    pub fn lacks_toolchain(&self) -> bool {
        self.unresolved || self.tools.is_refused()
    }
}

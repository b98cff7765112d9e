//! From an open workspace to a finished build: sources, toolchains, plan, engine. Prints through the console; the rooms do the work.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::devices::{Asking, Devices};
use super::generated::{show_generated, show_written};
use super::leaves::Leaves;
use super::machine::Machine;
use super::open::{Context, Opened, make_target};
use super::rounds::{self, Recorded};
use super::sources::{self, Leaf, Libraries, Sources};
use super::tools::{self, Host, Tools, Wanted};
use super::workers::Workers;
use crate::base::{Diagnostic, Digest, Witness};
use crate::cli::args::Select;
use crate::cli::exit::Exit;
use crate::engine::action::{ActionCache, asks_device};
use crate::engine::evidence::{self, Brought, EvidenceCache, Index, Validity};
use crate::engine::journal::{Journal, JournalCache, JournalMemory};
use crate::engine::lock::{Lock, LockError, Mode, Wait};
use crate::engine::stat::StatCache;
use crate::engine::{Blobs, BuildOptions, BuildOutcome, Cache, Capacity, Graph, Runner, Services};
use crate::model::{self, Package, Reference};
use crate::optimize::methods::Facts;
use crate::plan::expand::Expander;
use crate::plan::{Goal, PackageInput, PlanInput, Planner, Selection};
use crate::process::Command;
use crate::record::StepKind;
use crate::record::event::CacheOrigin;
use crate::release::bundle::Step;
use crate::release::committed;
use crate::step::Runners;
use crate::step::runners::Remote;
use crate::toolchain::{Cuda, Pip, cuda};
use crate::worker::{AT_A_DEVICE, Pool};
use crate::workspace::Workspace;
use crate::workspace::select::Selected;

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

/// The packages of a build, kept while the plan borrows them.
pub struct Packages {
    members: Vec<crate::workspace::Member>,
}

impl Packages {
    /// The packages, in order.
    pub fn all(&self) -> impl Iterator<Item = &Package> {
        self.members.iter().map(|m| &m.package)
    }

    /// The member of that name.
    pub fn member(&self, package: &str) -> Option<&crate::workspace::Member> {
        self.members.iter().find(|m| m.package.name == package)
    }

    /// Has so many rounds planned of every kernel that has rounds; none leaves what the manifests say.
    pub fn with_rounds(&mut self, rounds: Option<u32>) {
        let all = self.members.iter_mut().flat_map(|m| &mut m.package.kernels).filter_map(|k| k.rounds.as_mut());
        if let Some(rounds) = rounds {
            all.for_each(|of| of.rounds = rounds);
        }
    }
}

impl Context {
    /// The selected members, with a private manifest laid over them.
    pub fn packages(&self, opened: &Opened, asked: &Asked) -> Result<Packages, Exit> {
        let mut members: Vec<_> = asked.selected.members.iter().map(|i| opened.workspace.members[*i].clone()).collect();
        if let Some(path) = &asked.overlay {
            let (manifest, diagnostics) = self.overlay(path)?;
            self.say(&diagnostics)?;
            for member in &mut members {
                let diagnostics = model::overlay(&mut member.package, &manifest);
                self.say(&diagnostics)?;
            }
        }
        Ok(Packages { members })
    }

    /// What the words of the command line select where a private manifest is laid over the packages: its operators and shapes can be named too. What is wrong with it is
    /// said where it is laid over them to be built.
    pub fn select_over(&self, workspace: &Workspace, words: &Select, overlay: Option<&Path>) -> Result<Selected, Exit> {
        let Some(path) = overlay else { return self.select(workspace, words) };
        let (manifest, _) = self.overlay(path)?;
        let mut laid = workspace.clone();
        for member in &mut laid.members {
            drop(model::overlay(&mut member.package, &manifest));
        }
        self.select(&laid, words)
    }

    /// Reads a private manifest.
    fn overlay(&self, path: &Path) -> Result<(model::Manifest, Vec<Diagnostic>), Exit> {
        let path = self.cwd.join(path);
        let text = std::fs::read_to_string(&path)
            .map_err(|e| self.fail(&format!("cannot read the overlay `{}`: {e}", path.display())))?;
        let file = Arc::new(crate::base::SourceFile { name: path.display().to_string(), text });
        match model::parse(&file) {
            (Some(manifest), diagnostics) => Ok((manifest, diagnostics)),
            (None, diagnostics) => Err(self.say(&diagnostics).err().unwrap_or(Exit::NotBuilt)),
        }
    }

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
        let selected = |t: &&model::Target| Selection::takes(&asked.selected.targets, &t.name);
        let targets = || packages.members.iter().flat_map(|m| m.package.targets.values()).filter(selected);
        let devices = devices.end(&self.settings).map_err(|e| self.fail(&e))?;
        // Targets that mean one device take turns at it.
        let behind = |t: &model::Target| {
            let device = devices.for_arch(t.arch.name(), t.device.as_deref())?;
            Some((t.name.clone(), device.to_string()))
        };
        let behind: BTreeMap<String, String> = targets().filter_map(behind).collect();
        // A device that is there may be gone next time, so nothing is certified beside it.
        decided &= devices.classes.is_empty() && devices.tools.is_empty();
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
            devices: devices.classes.clone(),
            methods: crate::optimize::methods::signatures(),
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
            .then(|| -> crate::engine::services::Chosen { Arc::new(|node| node.resources.device.is_some()) });
        let options = BuildOptions {
            keep_going: asked.keep_going || self.settings.flag("build.keep-going"),
            capacity: Capacity {
                cpus: jobs as u32,
                memory_mib: super::memory::capacity_mib(&self.settings),
                devices: behind,
                alike: devices.alike(),
                shared: AT_A_DEVICE,
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
        let on_device = |m: &&crate::workspace::Member| m.package.targets.values().any(|t| t.arch != model::Arch::Cpu);
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

    /// The CUDA of each package with a device target; resolves what the lockfile lacks, if that is allowed. Sets `refused` where it is and fails.
    pub fn cudas(
        &self,
        opened: &mut Opened,
        packages: &Packages,
        asked: &Asked,
        refused: &mut bool,
    ) -> Result<BTreeMap<String, Result<Cuda, String>>, Exit> {
        let mut out = BTreeMap::new();
        let mut lock = opened.workspace.lock.clone();
        for member in &packages.members {
            // Nothing is resolved for targets that nobody asked for.
            let wanted = |t: &&model::Target| Selection::takes(&asked.selected.targets, &t.name);
            if member.package.targets.values().filter(wanted).all(|t| t.arch == model::Arch::Cpu) {
                continue;
            }
            let base = if member.package.from_root.contains("toolchain.cuda") {
                &opened.workspace.root
            } else {
                &member.folder
            };
            let wanted = tools::wanted(&member.package, base, self.environment.all());
            let wheels = matches!(wanted, Wanted::Release(_));
            let cuda = match wanted {
                Wanted::Local(cuda) => cuda,
                Wanted::Release(release) => match tools::locked(&lock.wheels, &release) {
                    Some(cuda) => Ok(cuda),
                    None if self.offline() || !asked.write => Err(format!(
                        "kforge.lock names no wheels for CUDA {release}: run `kforge build` with a network"
                    )),
                    None if self.locked() => {
                        self.console.error(&format!(
                            "kforge.lock must change: it names no wheels for CUDA {release}, and --locked was given"
                        ));
                        return Err(Exit::NotBuilt);
                    }
                    None => {
                        self.console.status("Resolving", &format!("CUDA {release}"));
                        let resolved =
                            Pip::find(None, self.environment.all()).and_then(|pip| cuda::resolve(&release, &pip));
                        resolved.map(|wheels| {
                            lock.wheels.insert(tools::lock_name(&release), wheels.clone());
                            Cuda::Wheels(wheels)
                        })
                    }
                },
            };
            let is_refused = wheels && !self.offline() && asked.write;
            if let Err(why) = &cuda
                && is_refused
            {
                self.console.diagnostic(&tools::refusal(why));
            } else if let Err(why) = &cuda
                && !asked.looks
            {
                self.console.warn(&format!("no machine code can be made for package `{}`: {why}", member.package.name));
            }
            // What a step says of it is its cause.
            let cuda = cuda.map_err(|why| why.lines().next().unwrap_or_default().to_string());
            *refused |= is_refused && cuda.is_err();
            out.insert(member.package.name.clone(), cuda);
        }
        if lock != opened.workspace.lock {
            lock.write(&opened.workspace.root, self.locked()).map_err(|e| self.fail(&e.to_string()))?;
            self.console.status("Locking", "kforge.lock");
            opened.workspace.lock = lock;
        }
        Ok(out)
    }

    /// Header libraries from wheels: locked, and installed now, because their headers are part of what is planned.
    pub fn libraries(&self, opened: &mut Opened, packages: &Packages, asked: &Asked) -> Result<Libraries, Exit> {
        let mut lock = opened.workspace.lock.clone();
        let mut out = Libraries::new();
        for member in &packages.members {
            for (name, dependency) in &member.package.dependencies {
                let model::Dependency::Pypi { requirement, .. } = dependency else { continue };
                let seat = (member.package.name.clone(), name.clone());
                let folder = super::libraries::install(self, opened, &mut lock, &seat, requirement, asked.write)?;
                out.insert(seat, folder);
            }
        }
        if lock != opened.workspace.lock {
            lock.write(&opened.workspace.root, self.locked()).map_err(|e| self.fail(&e.to_string()))?;
            opened.workspace.lock = lock;
        }
        Ok(out)
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

    /// Calls `with` with everything the engine is given.
    pub fn with_services<R>(&self, context: &Context, opened: &Opened, with: impl FnOnce(&Services<'_>) -> R) -> R {
        let workers = Workers {
            pool: &self.pool,
            tools: &self.tools,
            console: &context.console,
            beside: &self.devices.tools,
            scratch: opened.home.steps(),
            expected: (opened.home.scratch(), context.settings.number("cache.scratch-size")),
            run_limit_s: context.settings.number("build.time-limit"),
            memory_limit: context.settings.number("build.memory-limit"),
            compiler_memory: context.settings.number("build.compiler-memory-limit"),
            allow_unconfined: context.global.allow_unconfined || !context.settings.flag("sandbox.required"),
        };
        self.with_remote(context, opened, workers, with)
    }

    /// The same, with somebody else to do what worker processes do.
    pub fn with_remote<R>(
        &self,
        context: &Context,
        opened: &Opened,
        workers: impl Remote,
        with: impl FnOnce(&Services<'_>) -> R,
    ) -> R {
        let runners = Runners { workers };
        let runner: &dyn Runner = &runners;
        let blobs: Arc<dyn Blobs> = self.leaves.clone();
        let from_journal = JournalCache::new(self.journal.clone(), blobs);
        let evidence = self.evidence(opened);
        let brought = Brought::new(evidence.index().clone());
        let caches: Vec<&dyn Cache> = vec![&brought, &from_journal, &self.actions, &evidence];
        let services = Services {
            runners: StepKind::ALL.into_iter().map(|k| (k, runner)).collect(),
            caches,
            blobs: &*self.leaves,
            memory: &self.memory,
            locks: &self.actions,
            expand: &self.expander,
        };
        let done = with(&services);
        // It is in the store whatever comes of this, and answers; but only the device could make it again.
        if let Err(e) = evidence.sync() {
            let message = format!("a power cut may take what the device was seen to do: {e}");
            let keep = "`kforge evidence export` writes it to a file that can be kept elsewhere";
            context.console.diagnostic(&Diagnostic::warning("evidence.sync", message).hint(keep));
        }
        done
    }

    /// What answers questions to devices: the home's index, with the bundles in the repository beside it.
    pub fn evidence(&self, opened: &Opened) -> EvidenceCache {
        let devices = self.devices.clone();
        let wanted = move |spec: &crate::record::Spec, product: Option<&str>| {
            let asks = asks_device(spec).then(|| spec.params.get("arch").and_then(|a| a.as_str()));
            Some(evidence::Wanted {
                here: devices.for_arch(asks??, product).cloned(),
                device: product.map(str::to_string),
                validity: Validity::of(spec.kind),
            })
        };
        let index = Index::new(&opened.home, self.leaves.clone()).with(self.committed.clone(), self.about.clone());
        EvidenceCache::new(index, wanted)
    }

    /// Whether a toolchain could not be had though the network may be used: then the build has failed, whatever it could do without.
    pub fn lacks_toolchain(&self) -> bool {
        self.unresolved || self.tools.is_refused()
    }

    /// Puts what bundles in the repository have answered into the store, where a certificate looks for it.
    pub fn keep_committed(&self, outcome: &BuildOutcome) -> io::Result<()> {
        let answered = outcome.steps.iter().filter(|done| done.cache == CacheOrigin::Evidence);
        let answered = answered.filter_map(|done| done.result.as_ref());
        for digest in answered.flat_map(|result| result.outputs.values()) {
            self.leaves.path(digest)?;
        }
        Ok(())
    }

    /// The rounds of every seat that has some, as reports tell of them.
    pub fn tried(&self) -> Vec<crate::report::rounds::Recorded> {
        let of = |recorded: &Recorded| {
            let seat = &recorded.seat;
            let parts = [&seat.package, &seat.kernel, &seat.types, &seat.target].map(Clone::clone);
            let id: Vec<&str> = parts.iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
            let selected = self.expander.selected(&format!("{}/{}", id.join("/"), StepKind::Select.name()));
            let candidate = |build: &crate::plan::variants::Build| {
                let name = build.written.as_ref().map_or("", |w| &w.written_in);
                let attempt = name.split_once('.').and_then(|(_, repair)| repair.parse().ok()).unwrap_or(0);
                (build.label.clone(), build.round, attempt)
            };
            // What was accepted is built without its rounds.
            let selected = selected.filter(|s| !s.accepted)?;
            Some(crate::report::rounds::Recorded {
                seat: parts,
                answers: recorded.answers.clone(),
                refused: recorded.refused.clone(),
                candidates: selected.builds.iter().map(candidate).collect(),
            })
        };
        self.recorded.iter().filter(|r| !r.answers.is_empty()).filter_map(of).collect()
    }

    /// Names of what search steps and select steps number that decide; none for those that only nominate.
    pub fn names(&self, id: &str) -> Option<crate::report::Names> {
        if let Some(searching) = self.expander.searching(id) {
            return Some(crate::report::Names {
                variants: (0..).zip(searching.labels()).collect(),
                classes: searching.classes.clone(),
                types: searching.choice.label.clone(),
                ..crate::report::Names::default()
            });
        }
        let selected = self.expander.selected(id).filter(|selected| selected.stage.is_last)?;
        let about = self.expander.about(&selected)?;
        Some(crate::report::Names {
            variants: selected.builds.iter().map(|b| (b.variant.order, b.label.clone())).collect(),
            classes: selected.classes.clone(),
            shapes: about.shapes.iter().map(|(name, _)| name.clone()).collect(),
            basis: about.timed.then(|| crate::report::document::BasisReport {
                hot: about.hot,
                declared: selected.builds.first().map(|b| b.label.clone()).unwrap_or_default(),
                whole: about.whole,
                classes: about.shapes.iter().cloned().collect(),
            }),
            types: selected.choice.label.clone(),
            per: about.per,
            accepted: selected.accepted,
            host: about.host,
        })
    }
}

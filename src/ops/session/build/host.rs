//! The tools of this machine, and the toolchains of each package.

use crate::session::tools::{NoCuda, NoTorch, NoTriton, TorchRequest};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::super::machine::Machine;
use super::super::needs;
use super::super::open::{Opened, Session};
use super::super::tools::{self, Host, Tools};
use super::sources::Gathered;
use super::toolchains::Resolved;
use super::{Packages, PlanRequest};
use crate::Error;
use kforge_engine::journal::Journal;
use kforge_engine::stat::StatCache;
use kforge_foundation::base::{Digest, Witness};
use kforge_pipeline::plan::{PackageInput, Selection, Toolchains};
use kforge_project::workspace::Member;
use kforge_project::workspace::select::Selected;
use kforge_types::model::{self, Arch, Package, Reference};

/// The toolchains of a build.
pub(super) struct Hosted {
    pub(super) tools: Tools,
    /// The toolchains of each member.
    of_members: Vec<Toolchains>,
    /// The file system queries that determined them.
    pub(super) witness: Witness,
    /// Whether those queries suffice to know that the same tools would be found again.
    pub(super) decided: bool,
}

impl Session {
    pub(super) fn hosted(
        &self,
        opened: &Opened,
        packages: &Packages,
        asked: &PlanRequest,
        journal: &Journal,
        resolved: &Resolved,
        cub: &BTreeSet<String>,
    ) -> Result<Hosted, Error> {
        let mut tools = Tools::new(&opened.home.toolchains(), self.offline(), self.environment.all());
        let machine = Machine::open(&opened.home, asked.write);
        let memo = machine.as_ref().map_or(journal, Machine::journal);
        let stats = StatCache::new(memo, &opened.workspace.root, true);
        let seen = RefCell::new(Witness::default());
        let digest_of = |path: &Path| -> io::Result<Digest> {
            seen.borrow_mut().saw(path, true);
            let missing = || io::Error::new(io::ErrorKind::NotFound, format!("`{}` is gone", path.display()));
            stats.digests(&[path.to_path_buf()]).pop().unwrap_or(Ok(None))?.ok_or_else(missing)
        };
        let wants_python = packages.members.iter().any(|m| uses_python(&m.package)) || !resolved.tritons.is_empty();
        let (cxx, python) = (self.settings.path("toolchain.cxx"), self.settings.path("toolchain.python"));
        let path = self.environment.path();
        let wants_torch = resolved.torches.values().any(|torch| matches!(torch, Ok(TorchRequest::System)));
        let wants = (wants_python, wants_torch);
        let mut host = Host::find(cxx.as_deref(), python.as_deref(), path, wants, memo, &digest_of);
        if let Some(error) = host.too_old.take().filter(|_| asked.write && uses_cxx(packages, &asked.selected)) {
            return Err(Error::Toolchain(error));
        }
        let cuda_of = |p: &Package| resolved.cudas.get(&p.name).cloned().unwrap_or(Err(NoCuda::NoTarget));
        let triton_of = |p: &Package| resolved.tritons.get(&p.name).cloned().unwrap_or(Err(NoTriton::NoKernel));
        let torch_of = |p: &Package| resolved.torches.get(&p.name).cloned().unwrap_or(Err(NoTorch::NoReference));
        let of = (&cuda_of as tools::CudaOf<'_>, &triton_of as tools::TritonOf<'_>, &torch_of as tools::TorchOf<'_>);
        let members = packages.members.iter();
        let of_member = |m: &Member| tools.of_package(&m.package, &host, of, cub.contains(&m.package.name), &digest_of);
        let of_members = members.map(of_member).collect();
        let decided = host.witness.is_some();
        let mut witness = seen.take();
        host.witness.into_iter().for_each(|of_host| witness.add(of_host));
        if let Some(machine) = machine {
            machine.close();
        }
        Ok(Hosted { tools, of_members, witness, decided })
    }
}

impl Hosted {
    /// The inputs of planning, one per package. Takes the sources out of `gathered`.
    pub(super) fn inputs<'p>(
        &mut self,
        opened: &Opened,
        packages: &'p Packages,
        gathered: &mut Gathered,
    ) -> Vec<PackageInput<'p>> {
        let found = std::mem::take(&mut gathered.sources);
        let of_members = std::mem::take(&mut self.of_members);
        let members = packages.members.iter().zip(found).zip(&gathered.recorded).zip(of_members);
        let lock = &opened.workspace.lock;
        let input = |(((member, sources), rounds), toolchains)| -> PackageInput<'p> {
            let member: &'p Member = member;
            let rounds: &Vec<super::Recorded> = rounds;
            let pins = lock.pins(&member.package.name);
            let pins = pins.map(|(s, pin)| {
                ((s.kernel.clone(), s.types.clone(), s.target.clone(), s.class.clone()), pin.identity())
            });
            let sources: super::super::sources::Sources = sources;
            PackageInput {
                package: &member.package,
                sources: sources.sources,
                references: sources.references,
                stored: sources.stored,
                include: sources.include,
                toolchains,
                tried: rounds
                    .iter()
                    .map(|r| ((r.seat.kernel.clone(), r.seat.types.clone(), r.seat.target.clone()), r.attempts.clone()))
                    .collect(),
                pins: pins.collect(),
                accepted: lock.accepted(&member.package.name),
            }
        };
        members.map(input).collect()
    }
}

/// Whether a build of the selection compiles C++ for this machine: kernels for the emulator, or references.
fn uses_cxx(packages: &Packages, selected: &Selected) -> bool {
    packages.all().any(|package| {
        package.kernels.iter().any(|kernel| {
            let is_cpu = |name: &&String| package.targets.get(*name).is_some_and(|target| target.arch == Arch::Cpu);
            let mut targets = kernel.targets.iter().filter(|name| Selection::takes(&selected.targets, name)).peekable();
            let is_cpp = |operator: &model::Operator| matches!(operator.reference, Reference::Cpp { .. });
            Selection::takes(&selected.kernels, &kernel.name)
                && Selection::takes(&selected.operators, &kernel.operator)
                && targets.peek().is_some()
                && (targets.any(|name| is_cpu(&name)) || package.operator(&kernel.operator).is_some_and(is_cpp))
        })
    })
}

fn uses_python(package: &Package) -> bool {
    let compares = |o: &model::Operator| o.compare().values().any(|c| matches!(c, model::Compare::Python(..)));
    let uses = |o: &model::Operator| {
        matches!(o.reference, Reference::Python { .. } | Reference::Torch { .. })
            || o.generate_inputs.is_some()
            || compares(o)
    };
    package.operators.iter().any(uses) || needs::runs_baselines(package) || needs::has_torch_kernels(package)
}

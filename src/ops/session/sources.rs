//! The files that each kernel's source and each of the package's own references can reach, by content. Knows packages and files; `workspace::closure` does the
//! search.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kforge_emulator::is_cub;
use kforge_engine::journal::Journal;
use kforge_engine::stat::StatCache;
use kforge_foundation::base::{Diagnostic, Digest, Witness};
use kforge_pipeline::plan::input::SourceReach;
use kforge_project::source::python::functions;
use kforge_project::workspace::closure::{self, Closure, ClosureError, Mount, Reader};
use kforge_project::workspace::includes::{Scan, scan};
use kforge_project::workspace::load::no_source;
use kforge_project::workspace::{Member, Workspace};
use kforge_types::model::{Arch, Compare, Dependency, Kernel, Language, Reference};
use kforge_types::record::spec::Tree;

/// The files of a member, for planning.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The reach of each source file.
    pub sources: BTreeMap<String, SourceReach>,
    /// The tree of each file with a reference of the package, a generator of inputs or a check.
    pub references: BTreeMap<String, Tree>,
    /// The content of each file with values of inputs.
    pub stored: BTreeMap<String, Digest>,
    /// Include folders by their names in the tree.
    pub include: Vec<String>,
    /// Sources that agents wrote and that cannot be compiled, and why.
    pub refused: BTreeMap<String, Vec<Diagnostic>>,
    /// The folders that are searched for files.
    pub mounts: Vec<Mount>,
    /// The files that the package's own kernels reach.
    pub own: BTreeSet<String>,
}

impl Sources {
    /// Whether a kernel that `member` builds for `cpu` includes cub.
    pub fn emulate_cub(&self, member: &Member) -> bool {
        let with_cub = |kernel: &&Kernel| self.sources.get(&kernel.source).is_some_and(|reach| reach.cub);
        member.package.kernels.iter().filter(with_cub).any(|kernel| is_emulated(member, kernel))
    }
}

/// The folder of each installed header library, by package and dependency.
pub(crate) type Libraries = BTreeMap<(String, String), PathBuf>;

/// Reads each leaf only once, through the stat cache and the journal's memo of scans.
pub(crate) struct Leaf<'a> {
    /// Digests by stat.
    pub stats: &'a StatCache<'a>,
    /// The workspace's root. Rows of files below it stay valid when the workspace moves.
    pub root: &'a Path,
    /// The memo of scans.
    pub journal: &'a Journal,
    /// The paths of files by digest, for the store.
    pub files: HashMap<Digest, PathBuf>,
    /// The file system queries.
    pub witness: Witness,
    /// Generated sources by digest: they are not files.
    pub texts: BTreeMap<Digest, Vec<u8>>,
    seen: HashMap<PathBuf, Option<(Digest, Arc<Scan>)>>,
}

impl<'a> Leaf<'a> {
    /// A reader.
    pub(crate) fn new(stats: &'a StatCache<'a>, root: &'a Path, journal: &'a Journal) -> Self {
        let (witness, texts) = (Witness::default(), BTreeMap::new());
        Leaf { stats, root, journal, files: HashMap::new(), witness, texts, seen: HashMap::new() }
    }

    /// Uses a generated source as the file at `path`, where no file exists.
    pub(crate) fn generated(&mut self, path: PathBuf, text: &str) {
        let digest = Digest::of(text.as_bytes());
        self.texts.insert(digest, text.as_bytes().to_vec());
        self.seen.insert(path, Some((digest, Arc::new(scan(text)))));
    }

    /// The digest of a file; none if it does not exist.
    pub(crate) fn digest(&mut self, path: &Path) -> io::Result<Option<Digest>> {
        let asked = path.strip_prefix(self.root).unwrap_or(path).to_path_buf();
        let digest = self.stats.digests(&[asked]).pop().unwrap_or(Ok(None))?;
        self.witness.saw(path, digest.is_some());
        if let Some(d) = digest {
            self.files.entry(d).or_insert_with(|| path.to_path_buf());
        }
        Ok(digest)
    }
}

impl Reader for Leaf<'_> {
    fn read(&mut self, path: &Path) -> io::Result<Option<(Digest, Arc<Scan>)>> {
        if let Some(known) = self.seen.get(path) {
            return Ok(known.clone());
        }
        let Some(digest) = self.digest(path)? else {
            self.seen.insert(path.to_path_buf(), None);
            return Ok(None);
        };
        let memo = self.journal.scan(&digest).and_then(|bytes| serde_json::from_slice::<Scan>(&bytes).ok());
        let found = match memo {
            Some(scan) => scan,
            None => {
                // Comments in sources may have other encodings. A scan depends only on ASCII.
                let found = scan(&String::from_utf8_lossy(&std::fs::read(path)?));
                self.journal.record_scan(&digest, &serde_json::to_vec(&found).map_err(io::Error::other)?)?;
                found
            }
        };
        let entry = Some((digest, Arc::new(found)));
        self.seen.insert(path.to_path_buf(), entry.clone());
        Ok(entry)
    }

    fn is_file(&mut self, path: &Path) -> bool {
        self.witness.is_file(path)
    }

    fn listed(&mut self, folder: &Path) {
        self.witness.listed(folder);
    }
}

/// Finds everything a member's kernels and references can reach.
pub(crate) fn find(
    workspace: &Workspace,
    member: &Member,
    libraries: &Libraries,
    leaf: &mut Leaf<'_>,
) -> Result<Sources, Vec<Diagnostic>> {
    let mut out = Sources::default();
    let mut wrong = Vec::new();
    let mut mounts = vec![Mount { name: String::new(), folder: member.folder.clone() }];
    for (name, dependency) in &member.package.dependencies {
        let base = if member.package.from_root.contains(name) { &workspace.root } else { &member.folder };
        let (folder, include) = match dependency {
            Dependency::Path { path, include } => (base.join(path), include),
            Dependency::Pypi { include, .. } => match libraries.get(&(member.package.name.clone(), name.clone())) {
                Some(folder) => (folder.clone(), include),
                None => continue,
            },
        };
        let mount = format!("@{name}");
        let include = include.trim_start_matches("./").trim_matches('/');
        out.include.push(if include.is_empty() || include == "." {
            mount.clone()
        } else {
            format!("{mount}/{include}")
        });
        mounts.push(Mount { name: mount, folder });
    }
    for kernel in member.package.kernels.iter().filter(|kernel| !kernel.is_unstarted()) {
        reach(member, kernel, &mounts, leaf, &mut out).unwrap_or_else(|found| wrong.extend(found));
    }
    out.own = out.sources.values().flat_map(|reach| reach.files.keys().cloned()).collect();
    for operator in &member.package.operators {
        let own = match &operator.reference {
            Reference::Python { file, .. } | Reference::Torch { file, .. } | Reference::Cpp { file, .. } => {
                Some(("the reference", file))
            }
            Reference::Builtin { .. } => None,
        };
        let inputs = operator.generate_inputs.as_ref().map(|own| ("the generator of inputs", own.file()));
        let compare = operator.compare();
        let checks = compare.values().filter_map(|compare| match compare {
            Compare::Python(file, _) => Some(("the check", file)),
            Compare::Elements | Compare::ArgmaxOf(_) | Compare::Unordered => None,
        });
        for (what, file) in own.into_iter().chain(inputs).chain(checks) {
            if out.references.contains_key(file) {
                continue;
            }
            match kin(&member.folder, file, leaf) {
                Ok(Some(mut tree)) => {
                    tree.files.retain(|name, _| !is_of_kernel(member, name, file));
                    out.references.insert(file.clone(), tree);
                }
                Ok(None) => wrong.push(
                    operator
                        .place
                        .error(
                            "package.no-reference",
                            format!("{what} `{file}` of operator `{}` does not exist", operator.name),
                        )
                        .expected("a file of the package"),
                ),
                Err(e) => wrong.push(
                    operator.place.error("package.unreadable", format!("cannot read the files beside `{file}`: {e}")),
                ),
            }
        }
    }
    for operator in &member.package.operators {
        super::stored::add(&member.folder, operator, leaf, &mut out.stored, &mut wrong);
    }
    for baseline in &member.package.baselines {
        let Some((file, _)) = baseline.source.as_ref().filter(|(file, _)| !out.references.contains_key(file)) else {
            continue;
        };
        let error = |code, message: String| baseline.place.error(code, message);
        match kin(&member.folder, file, leaf) {
            Ok(Some(tree)) => {
                out.references.insert(file.clone(), tree);
            }
            Ok(None) => {
                let message = format!("`{file}` of baseline `{}` does not exist", baseline.name);
                wrong.push(error("package.no-reference", message).expected("a file of the package"));
            }
            Err(e) => wrong.push(error("package.unreadable", format!("cannot read the files beside `{file}`: {e}"))),
        }
    }
    out.mounts = mounts;
    if wrong.is_empty() { Ok(out) } else { Err(wrong) }
}

/// Whether a file is a kernel's in PyTorch rather than the reference's: its source, or in the folder of its source or below unless the reference is there, too.
/// Otherwise each edit of a kernel would be one of the reference.
fn is_of_kernel(member: &Member, name: &str, reference: &str) -> bool {
    let kernels = member.package.kernels.iter().filter(|kernel| kernel.language == Language::Torch);
    kernels.into_iter().any(|kernel| {
        let below = |file: &str| {
            let folder = Path::new(&kernel.source).parent().filter(|folder| *folder != Path::new(""));
            folder.is_some_and(|folder| Path::new(file).starts_with(folder))
        };
        name != reference && (name == kernel.source || below(name) && !below(reference))
    })
}

/// Whether files include headers of cub that are not among them.
fn includes_cub(found: &Closure) -> bool {
    let has = |name: &str| found.files.keys().any(|file| file == name || file.ends_with(&format!("/{name}")));
    let named = found.scans.values().flat_map(|scan| scan.angled.iter().chain(&scan.quoted));
    named.filter(|name| is_cub(name)).any(|name| !has(name))
}

/// Reads files as they are, without memos.
struct Direct;

impl Reader for Direct {
    fn read(&mut self, path: &Path) -> io::Result<Option<(Digest, Arc<Scan>)>> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some((Digest::of(&bytes), Arc::new(scan(&String::from_utf8_lossy(&bytes)))))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// Whether a kernel that a member builds for `cpu` includes cub, from the files of the package alone. What cannot be read does not.
pub(crate) fn emulates_cub(member: &Member) -> bool {
    let mounts = [Mount { name: String::new(), folder: member.folder.clone() }];
    let found = |kernel: &Kernel| closure::closure(&kernel.source, &kernel.include, &mounts, &mut Direct);
    let kernels = member.package.kernels.iter().filter(|kernel| !kernel.is_unstarted());
    let kernels = kernels.filter(|kernel| kernel.language == Language::Cuda);
    let emulated = kernels.filter(|kernel| is_emulated(member, kernel));
    emulated.into_iter().any(|kernel| found(kernel).is_ok_and(|found| includes_cub(&found)))
}

/// Whether a kernel is built for `cpu`.
fn is_emulated(member: &Member, kernel: &Kernel) -> bool {
    let is_cpu = |name: &String| member.package.targets.get(name).is_some_and(|target| target.arch == Arch::Cpu);
    kernel.targets.iter().any(is_cpu)
}

/// Finds the files that kernels from agents can reach. `found` holds those of the member's own kernels.
pub(crate) fn add(member: &Member, written: &[&Kernel], leaf: &mut Leaf<'_>, found: &mut Sources) {
    let mounts = std::mem::take(&mut found.mounts);
    for kernel in written {
        if let Err(wrong) = reach(member, kernel, &mounts, leaf, found) {
            found.refused.insert(kernel.source.clone(), wrong);
        }
    }
    found.mounts = mounts;
}

/// Finds the files that the sources of one kernel can reach. Returns only the errors if there are any.
fn reach(
    member: &Member,
    kernel: &Kernel,
    mounts: &[Mount],
    leaf: &mut Leaf<'_>,
    out: &mut Sources,
) -> Result<(), Vec<Diagnostic>> {
    match kernel.language {
        Language::Triton => return reach_python(member, kernel, leaf, out),
        Language::Torch => return reach_torch(member, kernel, leaf, out),
        Language::Cuda => {}
    }
    let mut wrong = Vec::new();
    let include: Vec<String> = kernel.include.iter().chain(&out.include).cloned().collect();
    if let Some(made) = kernel.made() {
        leaf.generated(member.folder.join(&kernel.source), &made.source);
    }
    let others = kernel.methods.iter().filter_map(|m| m.other_source());
    for source in std::iter::once(kernel.source.as_str()).chain(others) {
        match closure::closure(source, &include, mounts, leaf) {
            Ok(found) => {
                if source == kernel.source {
                    wrong.extend(super::entries::check(kernel, member.package.operator(&kernel.operator), &found));
                    wrong.extend(super::tunables::check(kernel, &include, &found));
                }
                let seen =
                    kernel.tune.iter().map(|(n, _)| n.value.clone()).filter(|n| found.sees(n)).collect::<BTreeSet<_>>();
                let reach = out.sources.entry(source.to_string()).or_default();
                for name in &seen {
                    if let Some(file) = found.asks(name) {
                        reach.in_directives.insert(name.clone(), file.into());
                    }
                }
                reach.cub |= includes_cub(&found);
                reach.files.extend(found.files);
                reach.seen.extend(seen);
            }
            Err(error) => wrong.push(explain(kernel.source_place.clone(), source, &error)),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Finds the files that the sources of a kernel in Triton can reach: every Python file in their folders and below; of a source that a template or an agent wrote,
/// it alone. Reads the functions that they declare.
fn reach_python(
    member: &Member,
    kernel: &Kernel,
    leaf: &mut Leaf<'_>,
    out: &mut Sources,
) -> Result<(), Vec<Diagnostic>> {
    let mut wrong = Vec::new();
    if let Some(made) = kernel.made() {
        // It needs no other file, and none of the package's files can be imported by what an agent wrote.
        let digest = Digest::of(made.source.as_bytes());
        leaf.texts.insert(digest, made.source.as_bytes().to_vec());
        let functions = functions(&made.source);
        let wrong = super::entries::check_python(kernel, &kernel.source, &functions);
        let reach = out.sources.entry(kernel.source.clone()).or_default();
        reach.files.insert(kernel.source.clone(), digest);
        reach.functions = functions;
        return if wrong.is_empty() { Ok(()) } else { Err(wrong) };
    }
    let others = kernel.methods.iter().filter_map(|m| m.other_source());
    for source in std::iter::once(kernel.source.as_str()).chain(others) {
        let unreadable = |e: io::Error| {
            kernel.source_place.error("package.unreadable", format!("cannot read the files beside `{source}`: {e}"))
        };
        let tree = match kin(&member.folder, source, leaf) {
            Ok(Some(tree)) => tree,
            Ok(None) => {
                wrong.push(no_source(&kernel.source_place, source));
                continue;
            }
            Err(e) => {
                wrong.push(unreadable(e));
                continue;
            }
        };
        let text = match std::fs::read(member.folder.join(source)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) => {
                wrong.push(unreadable(e));
                continue;
            }
        };
        let functions = functions(&text);
        wrong.extend(super::entries::check_python(kernel, source, &functions));
        let reach = out.sources.entry(source.to_string()).or_default();
        reach.files.extend(tree.files);
        reach.functions = functions;
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Finds the files that the source of a kernel in PyTorch can reach: every Python file in its folder and below, except those that give expected values.
fn reach_torch(
    member: &Member,
    kernel: &Kernel,
    leaf: &mut Leaf<'_>,
    out: &mut Sources,
) -> Result<(), Vec<Diagnostic>> {
    let source = &kernel.source;
    let unreadable = |e: io::Error| {
        let message = format!("cannot read the files beside `{source}`: {e}");
        vec![kernel.source_place.error("package.unreadable", message)]
    };
    let Some(mut tree) = kin(&member.folder, source, leaf).map_err(unreadable)? else {
        return Err(vec![no_source(&kernel.source_place, source)]);
    };
    for operator in &member.package.operators {
        if let Reference::Python { file, .. } | Reference::Torch { file, .. } = &operator.reference
            && file != source
        {
            tree.files.remove(file);
        }
    }
    let text = std::fs::read(member.folder.join(source)).map_err(unreadable)?;
    if let Some(wrong) = super::entries::check_torch(kernel, &String::from_utf8_lossy(&text)) {
        return Err(vec![wrong]);
    }
    out.sources.entry(source.clone()).or_default().files.extend(tree.files);
    Ok(())
}

fn explain(place: kforge_types::model::Place, source: &str, error: &ClosureError) -> Diagnostic {
    let diagnostic = place.error("package.source", error.to_string());
    match error {
        ClosureError::Missing(name) if name == source => no_source(&place, source),
        ClosureError::Outside { .. } => diagnostic.hint("declare the folder it is in as a dependency: `[dependencies] common = { path = \"../common\", include = \".\" }`"),
        _ => diagnostic,
    }
}

/// A reference's file and every file of the same language in its folder and below: the files that it may import.
fn kin(package: &Path, file: &str, leaf: &mut Leaf<'_>) -> io::Result<Option<Tree>> {
    let path = package.join(file);
    if !leaf.witness.is_file(&path) {
        return Ok(None);
    }
    let python = path.extension().is_some_and(|e| e == "py");
    let ours = |p: &Path| {
        p.extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| if python { e == "py" } else { matches!(e, "h" | "hpp" | "hh" | "hxx" | "inl" | "inc") })
    };
    let mut tree = Tree::default();
    let folder = path.parent().unwrap_or(package);
    let skip = |e: &walkdir::DirEntry| {
        e.depth() > 0
            && e.file_name().to_str().is_none_or(|n| n.starts_with('.') || n == "target" || n == "__pycache__")
    };
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(|e| !skip(e)) {
        let entry = entry.map_err(io::Error::from)?;
        if entry.file_type().is_dir() {
            leaf.witness.listed(entry.path());
        }
        if entry.file_type().is_file()
            && (entry.path() == path || ours(entry.path()))
            && let Some(name) = entry.path().strip_prefix(package).ok().and_then(Path::to_str)
            && let Some(digest) = leaf.digest(entry.path())?
        {
            tree.files.insert(name.to_string(), digest);
        }
    }
    Ok(Some(tree))
}

//! The dataset of a package: its files as they were, what they say, and the solutions that are added to them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{DatasetFault, TracesError};
use crate::Error;
use crate::import::traces::SET;
use kforge_foundation::base::Digest;
use kforge_pipeline::release::traces::{AUTHOR, OwnSolution};
use kforge_project::source::import::traces::{
    Parts, SIDECAR, Set, Solution, Workload, belongs, kernel_text, sets, solution_folder,
};
use kforge_project::workspace::Member;
use kforge_project::workspace::find::MANIFEST;
use kforge_types::model::Language;

/// The dataset of a package.
pub(super) struct Dataset {
    /// Its only definition, with its files.
    pub(super) set: Set,
    /// The definition's name.
    pub(super) name: String,
    /// New solutions by path.
    pub(super) new: BTreeMap<String, String>,
    parts: Parts,
    /// Where the package keeps its files.
    root: PathBuf,
    /// The package's manifest.
    manifest: String,
}

/// What a verdict is about.
#[derive(Debug, Clone)]
pub(super) enum Solved {
    /// A variant of a kernel of the manifest.
    Kernel(Box<SolvedKernel>),
    /// A function of this file, beside a champion.
    Baseline(String),
    /// A variant whose source is not that of a kernel of the manifest.
    Written,
}

/// A variant of a kernel.
#[derive(Debug, Clone)]
pub(super) struct SolvedKernel {
    /// The kernel.
    pub(super) kernel: String,
    /// What it is written in.
    pub(super) language: Language,
    /// Its source file.
    pub(super) source: String,
    /// What it launches first, or what is called of it.
    pub(super) entry: String,
    /// The variant's label.
    pub(super) variant: String,
    /// The files that it was compiled from, by path in the package.
    pub(super) files: BTreeMap<String, String>,
}

impl Dataset {
    /// The dataset of a package; none if it is not from one.
    pub(super) fn of(member: &Member) -> Result<Option<Self>, Error> {
        let is_from_it = member.package.operators.iter().any(|o| o.origin.as_ref().is_some_and(|of| of.set == SET));
        let root = member.folder.join(SIDECAR);
        if !is_from_it || !root.is_dir() {
            return Ok(None);
        }
        let changed = |why: DatasetFault| TracesError::Changed { package: member.package.name.clone(), why };
        let mut files = BTreeMap::new();
        for entry in walkdir::WalkDir::new(&root).sort_by_file_name() {
            let entry = entry.map_err(|e| changed(std::io::Error::from(e).into()))?;
            let Ok(path) = entry.path().strip_prefix(&root) else { continue };
            if let (Some(name), true) = (path.to_str().filter(|name| belongs(name)), entry.file_type().is_file()) {
                let text = std::fs::read_to_string(entry.path()).map_err(|e| changed(e.into()))?;
                files.insert(name.to_string(), text);
            }
        }
        let (mut sets, _) = sets(&files);
        let count = sets.len();
        let (Some(set), 1) = (sets.pop(), count) else {
            return Err(changed(DatasetFault::Definitions(count)).into());
        };
        let parts = match &set.parts {
            Ok(parts) => parts.clone(),
            Err(why) => return Err(changed(DatasetFault::Malformed(why.clone())).into()),
        };
        let manifest = std::fs::read_to_string(member.folder.join(MANIFEST)).map_err(|e| changed(e.into()))?;
        Ok(Some(Dataset { name: parts.definition.name.clone(), set, new: BTreeMap::new(), parts, root, manifest }))
    }

    /// Whether it has SOL-ExecBench's form.
    pub(super) fn is_extended(&self) -> bool {
        self.beside().is_some()
    }

    /// The files with inputs that its workloads name: the place of each in the dataset, and where the package has it; none if it does not have it.
    pub(super) fn blobs(&self) -> Vec<(String, Option<PathBuf>)> {
        let of = |(path, places): (&str, Vec<String>)| {
            let own = places.into_iter().map(|place| (self.root.join(&place), place)).find(|(at, _)| at.is_file());
            own.map_or((path.to_string(), None), |(at, place)| (place, Some(at)))
        };
        self.set.blobs().into_iter().map(of).collect()
    }

    /// The workload of a shape.
    pub(super) fn workload(&self, shape: &str) -> Option<&Workload> {
        self.parts.workloads.iter().find(|workload| workload.uuid == shape)
    }

    /// The file of kforge's traces.
    pub(super) fn traces_path(&self) -> String {
        match self.beside() {
            Some(folder) => format!("{folder}trace_{AUTHOR}.jsonl"),
            None => format!("traces/{AUTHOR}/{}.jsonl", self.place()),
        }
    }

    /// The folder of a definition in SOL-ExecBench's form, with a `/`.
    fn beside(&self) -> Option<&str> {
        self.set.path.strip_suffix("definition.json").filter(|folder| folder.is_empty() || folder.ends_with('/'))
    }

    /// The kind of operator and the definition, as parts of a path.
    fn place(&self) -> &str {
        let path = self.set.path.strip_prefix("definitions/").unwrap_or(&self.set.path);
        path.strip_suffix(".json").unwrap_or(path)
    }

    /// The name of the solution that a verdict is about. A kernel that is no solution of the dataset is added.
    ///
    /// # Errors
    /// Why it is none.
    pub(super) fn solution(&mut self, of: &Solved) -> Result<String, String> {
        match of {
            Solved::Written => {
                Err("its source is not that of a kernel of the manifest: `kforge accept` makes it one".into())
            }
            Solved::Baseline(file) => {
                let mut known = self.parts.solutions.iter().map(|(_, solution)| solution);
                let mine = known.find(|solution| file.starts_with(&format!("{}/", solution_folder(&solution.name))));
                let none = || "the baseline is no solution of the dataset".to_string();
                mine.map(|solution| solution.name.clone()).ok_or_else(none)
            }
            Solved::Kernel(kernel) => match self.known(kernel) {
                Some(known) => Ok(known),
                None => self.added(kernel),
            },
        }
    }

    /// The solution of the dataset whose files a kernel was compiled from.
    fn known(&self, kernel: &SolvedKernel) -> Option<String> {
        let is_same = |solution: &&Solution| {
            let folder = format!("{}/", solution_folder(&solution.name));
            kernel.source.starts_with(&folder)
                && kernel.files.iter().all(|(path, text)| {
                    let own = path.strip_prefix(&folder);
                    solution.sources.iter().any(|(name, content)| own == Some(name.as_str()) && content == text)
                })
        };
        self.parts.solutions.iter().map(|(_, solution)| solution).find(is_same).map(|solution| solution.name.clone())
    }

    /// Adds a kernel. Its name depends on its content, so that another state of it is another solution.
    fn added(&mut self, kernel: &SolvedKernel) -> Result<String, String> {
        let fixed = kernel.variant.split(',').filter_map(|part| part.split_once('='));
        let fixed: Vec<(String, String)> = fixed.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let text = kernel_text(&self.manifest, &kernel.kernel, &fixed)
            .ok_or("it depends on more than its source files, so that no solution can hold it")?;
        let content = serde_json::json!([self.name, text, kernel.files]).to_string();
        let name = format!("{AUTHOR}_{}_{}", kernel.kernel, &Digest::of(content.as_bytes()).hex()[..12]);
        let own = OwnSolution {
            name: name.clone(),
            definition: self.name.clone(),
            language: kernel.language,
            entry: (kernel.source.clone(), kernel.entry.clone()),
            sources: kernel.files.clone(),
            variant: kernel.variant.clone(),
            kernel: text,
        };
        let path = match self.beside() {
            Some(folder) => format!("{folder}solution_{name}.json"),
            None => format!("solutions/{AUTHOR}/{}/{name}.json", self.place()),
        };
        self.new.insert(path, own.text());
        Ok(name)
    }
}

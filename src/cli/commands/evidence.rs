//! `kforge evidence`: what devices were seen to do leaves in bundles, comes from them, and is listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{bytes, count};
use crate::cli::args::{EvidenceCommand, EvidenceExport, EvidenceImport, EvidenceList, MessageFormat, Select};
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use kforge_engine::action::of_binary;
use kforge_engine::blobs::Store;
use kforge_engine::evidence::{Index, IndexedRecord};
use kforge_engine::lock::{LockError, Mode, Wait};
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::archive::{self, EXTENSION};
use kforge_pipeline::release::bundle::Step;
use kforge_pipeline::release::committed::FOLDER;
use kforge_pipeline::release::holdings::{self, Holding};
use kforge_pipeline::release::transfer::{self, RecordChoice};
use kforge_pipeline::release::{Bundle, bundle};
use kforge_types::record::StepKind;
use kforge_types::record::event::Labels;

/// The most steps that are named where many lack something.
const LISTED: usize = 10;

/// Runs the command.
pub fn run(context: &Context, command: &EvidenceCommand) -> Result<Exit, Exit> {
    match command {
        EvidenceCommand::Export(args) => export(context, args),
        EvidenceCommand::Import(args) => import(context, args),
        EvidenceCommand::List(args) => list(context, args),
    }
}

fn export(context: &Context, args: &EvidenceExport) -> Result<Exit, Exit> {
    let which = if args.all { RecordChoice::All } else { RecordChoice::Answering };
    let (gathered, root) = context.look(&args.select, Goal::Build)?.plan(context, |opened, ready| {
        let asked = ready.with_services(context, opened, |services| {
            kforge_engine::questions(ready.graph.clone(), &ready.options, services)
        });
        if let Some(first) = asked.open.first() {
            let n = count(asked.open.len() as u64, "step");
            let exit = context.fail(&format!(
                "what the plan asks of devices is not known yet: {n} would run first, such as `{first}`"
            ));
            context.console.err("help: run `kforge build` with the same selection, then export\n");
            return Err(exit);
        }
        let standings = ready.champions(&asked).into_iter().map(|c| c.standing).collect();
        let gathered = transfer::gather(&asked, standings, &ready.evidence(opened), &*ready.leaves, which);
        let gathered = gathered.map_err(|e| context.fail(&e.to_string()))?;
        Ok((gathered, opened.workspace.root.clone()))
    })?;
    let records = gathered.bundle.records().count() as u64;
    if records == 0 {
        context.console.error("there is no evidence to export: no device has answered what the selection asks");
        return Err(Exit::NoEvidence);
    }
    if !gathered.missing.is_empty() {
        let n = gathered.missing.len();
        context.console.warn(&format!(
            "{} of the plan {} no evidence, which this bundle does not bring either:",
            count(n as u64, "step"),
            if n == 1 { "has" } else { "have" }
        ));
        listed(context, &gathered.missing);
    }
    let path = match &args.output {
        Some(path) => context.cwd.join(path),
        None => root.join(FOLDER).join(format!("{}.{EXTENSION}", name_of(&gathered.bundle))),
    };
    let file =
        archive::encode(&gathered.bundle).map_err(|e| context.fail(&format!("BUG: the bundle is wrong: {e}")))?;
    write_if_changed(&path, &file).map_err(|e| context.fail(&format!("cannot write `{}`: {e}", path.display())))?;
    let kinds: Vec<String> =
        transfer::counts(&gathered.bundle).into_iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    context.console.status(
        "Exported",
        &format!(
            "{} ({}) to `{}`, {}, unsigned",
            count(records, "record"),
            kinds.join(", "),
            path.display(),
            bytes(file.len() as u64)
        ),
    );
    Ok(Exit::Done)
}

/// The name of a bundle: that of its only product, in lower case.
fn name_of(bundle: &Bundle) -> String {
    let products: BTreeSet<&str> = bundle.records().map(|r| r.provenance.device.product.as_str()).collect();
    let mut products = products.into_iter();
    match (products.next(), products.next()) {
        (Some(product), None) => {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
            product.chars().map(plain).collect()
        }
        _ => "devices".into(),
    }
}

fn listed(context: &Context, steps: &[String]) {
    steps.iter().take(LISTED).for_each(|id| context.console.err(&format!("  {id}\n")));
    if steps.len() > LISTED {
        context.console.err(&format!("  and {} more\n", steps.len() - LISTED));
    }
}

/// The bundle in a file, or what is wrong with it.
fn open(context: &Context, path: &Path) -> Result<Bundle, Exit> {
    let place = context.cwd.join(path);
    std::fs::File::open(&place).map_err(|e| context.fail(&format!("cannot read `{}`: {e}", path.display())))?;
    archive::read(&place).map_err(|e| context.fail(&format!("`{}` is refused: {e}", path.display())))
}

fn import(context: &Context, args: &EvidenceImport) -> Result<Exit, Exit> {
    // All of them are checked before anything of any is kept.
    let bundles: Vec<(&PathBuf, Bundle)> =
        args.files.iter().map(|path| Ok((path, open(context, path)?))).collect::<Result<_, Exit>>()?;
    let home = context.home()?;
    let interrupted = AtomicBool::new(false);
    let mut blocked = || context.console.status("Blocking", "waiting for the shared cache to be collected");
    let wait = if context.global.no_wait { Wait::No } else { Wait::Unless(&interrupted, &mut blocked) };
    // Collection must not take contents whose records are still to come.
    let _lock = home.lock_cache(Mode::Shared, wait).map_err(|e| match e {
        LockError::Busy(_) => {
            context.console.error("the shared cache is being collected, and --no-wait was given");
            Exit::Busy
        }
        LockError::Interrupted(_) => Exit::Interrupted,
        LockError::Io { .. } => context.fail(&e.to_string()),
    })?;
    let store = Arc::new(Store::new(&home));
    let index = Index::new(&home, store.clone());
    for (path, bundle) in bundles {
        let name = path.file_name().map_or_else(|| "bundle".into(), |name| name.to_string_lossy().into_owned());
        let added = transfer::import(&bundle, &name, &index, &*store)
            .map_err(|e| context.fail(&format!("cannot import `{}`: {e}", path.display())))?;
        let all = bundle.records().count() as u64;
        let held = if added < all { format!(", {} held already", all - added) } else { String::new() };
        let devices: BTreeSet<String> = bundle.records().map(|r| r.provenance.device.to_string()).collect();
        let devices = devices.into_iter().collect::<Vec<_>>().join(", ");
        let text = format!("{} of {devices} from `{}`, unsigned{held}", count(added, "record"), path.display());
        context.console.status("Imported", &text);
    }
    Ok(Exit::Done)
}

/// What asks for a question.
type Askers = BTreeMap<Digest, (StepKind, Vec<Step>)>;

fn list(context: &Context, args: &EvidenceList) -> Result<Exit, Exit> {
    let Held { seen, askers, named, open } = match &args.file {
        Some(path) => of_bundle(open(context, path)?, path),
        None if context.has_manifest() => of_workspace(context, &args.select)?,
        None if args.select != Select::default() => return Err(context.manifest().err().unwrap_or(Exit::NotBuilt)),
        None => {
            let home = context.home()?;
            let index = Index::new(&home, Arc::new(Store::new(&home)));
            let seen = index.all().map_err(|e| context.fail(&e.to_string()))?;
            Held { seen, ..Held::default() }
        }
    };
    let all = seen.len();
    let asked = |seen: &IndexedRecord| askers.contains_key(&seen.record.question);
    let shown: Vec<IndexedRecord> = seen.into_iter().filter(|seen| args.all || !named || asked(seen)).collect();
    let mut held: Vec<Holding> = shown
        .into_iter()
        .map(|seen| {
            let asked = askers.get(&seen.record.question).cloned();
            Holding::new(seen, asked)
        })
        .collect();
    held.sort_by(|a, b| {
        let of = |h: &Holding| (h.steps.first().map(|s| s.id.clone()), h.provenance.measured_at.clone(), h.record);
        of(a).cmp(&of(b))
    });
    if args.message_format == MessageFormat::Json {
        for holding in &held {
            let line = serde_json::to_string(holding).map_err(|e| context.fail(&e.to_string()))?;
            context.console.out(&format!("{line}\n"));
        }
    } else {
        let now = jiff::Timestamp::try_from(context.began).map_err(|e| context.fail(&e.to_string()))?;
        context.console.out(&holdings::text(&held, now));
    }
    let rest = match all - held.len() {
        0 => String::new(),
        1 if open => "; 1 more is of no step that is known here (`--all` lists it)".into(),
        1 => "; 1 more answers nothing that is asked here (`--all` lists it)".into(),
        n if open => format!("; {n} more are of no step that is known here (`--all` lists them)"),
        n => format!("; {n} more answer nothing that is asked here (`--all` lists them)"),
    };
    context.console.status("Found", &format!("{} of evidence{rest}", count(held.len() as u64, "record")));
    if open {
        context
            .console
            .status("", "not all that is asked here is known yet: `kforge build` will tell what of this answers");
    }
    Ok(Exit::Done)
}

/// What is held, and under which names.
#[derive(Default)]
struct Held {
    seen: Vec<IndexedRecord>,
    askers: Askers,
    /// Whether only what has a name is shown.
    named: bool,
    /// Whether steps would have to run before all questions are known; then the names are those of bundles too.
    open: bool,
}

/// What a bundle holds, under the names of where it was made.
fn of_bundle(bundle: Bundle, path: &Path) -> Held {
    let origin = path.display().to_string();
    let (mut seen, mut askers) = (vec![], Askers::new());
    for question in bundle.questions {
        askers.insert(question.key, (question.spec.kind, question.steps));
        for record in question.records {
            seen.push(IndexedRecord { digest: bundle::digest(&record), record, origin: origin.clone() });
        }
    }
    Held { seen, askers, named: true, open: false }
}

/// What the home and the bundles in the repository hold, and what the plan at hand asks.
fn of_workspace(context: &Context, select: &Select) -> Result<Held, Exit> {
    context.look(select, Goal::Build)?.plan(context, |opened, ready| {
        let asked = ready.with_services(context, opened, |services| {
            kforge_engine::questions(ready.graph.clone(), &ready.options, services)
        });
        let mut askers = Askers::new();
        for kforge_engine::Question { node, spec, .. } in asked.asked {
            let Some(spec) = spec else { continue };
            let (_, steps) = askers.entry(spec.key()).or_insert_with(|| (node.kind, vec![]));
            steps.push(Step { id: node.id, labels: node.labels });
        }
        for kforge_engine::Compiled { node, spec, .. } in asked.made {
            let question = of_binary(&spec, &*ready.leaves).map_err(|e| context.fail(&e.to_string()))?;
            let Some(question) = question else { continue };
            let (_, steps) = askers.entry(question.key()).or_insert_with(|| (node.kind, vec![]));
            steps.push(Step { id: node.id, labels: node.labels });
        }
        let open = !asked.open.is_empty();
        if open {
            // What is not known to be asked may be: it goes by the names that bundles give, as far as those are of what was selected.
            let nodes = || ready.graph.nodes().map(|node| &node.labels);
            let kernels: BTreeSet<_> = nodes().map(|l| (&l.package, &l.target, &l.kernel)).collect();
            let targets: BTreeSet<_> = nodes().map(|l| (&l.package, &l.target)).collect();
            let planned = |l: &Labels| match &l.kernel {
                Some(_) => kernels.contains(&(&l.package, &l.target, &l.kernel)),
                // What is asked of a device alone is about no kernel.
                None => targets.contains(&(&l.package, &l.target)),
            };
            for (key, (kind, steps)) in &ready.known_as {
                let steps: Vec<Step> = steps.iter().filter(|step| planned(&step.labels)).cloned().collect();
                if !steps.is_empty() {
                    askers.entry(*key).or_insert((*kind, steps));
                }
            }
        }
        let cache = ready.evidence(opened);
        let mut seen = cache.index().all().map_err(|e| context.fail(&e.to_string()))?;
        let held: BTreeSet<Digest> = seen.iter().map(|s| s.digest).collect();
        seen.extend(cache.index().beside().into_iter().filter(|s| !held.contains(&s.digest)));
        Ok(Held { seen, askers, named: true, open })
    })
}

//! `kforge worker`: what this program does when another kforge starts it.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use kforge_engine::action::asks_device;
use kforge_foundation::config::{Environment, Settings};
use kforge_harness::elsewhere::Difference;
use kforge_harness::message::Places;
use kforge_ops::elsewhere::{StepFile, WorkerTools};
use kforge_ops::session::devices::Devices;
use kforge_ops::session::tools::read_by;
use kforge_ops::worker_key::WorkerKey;
use kforge_types::record::Spec;
use kforge_worker::{Finders, OnceLimits, Parts, Ready, WORDS, worker_main};

/// Whether the words after `worker` are those of people: `--bots URL` and the options of every command. Another kforge writes one of its own words first, or none
/// where it sends requests.
pub fn is_of_people(words: &[OsString]) -> bool {
    match words.first() {
        Some(first) => !WORDS.iter().any(|word| first == word),
        None => std::io::stdin().is_terminal(),
    }
}

/// Runs a worker with the words after `worker`.
pub fn run(words: &[OsString]) -> ExitCode {
    if words.first().is_some_and(|word| word == "--implementation") {
        let written = writeln!(std::io::stdout(), "{}", kforge_ops::implementation::combined());
        return written.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let parts = Parts { steps: kforge_worker::steps::handler, run: kforge_emulator::run::run_trials };
    let environment = Environment::of_process();
    let devices = |settings: &Settings| {
        Devices::find(&environment, Path::new("/proc/self/exe"), settings).unwrap_or_default().tools
    };
    let settings = || Settings::load(&std::env::current_dir().unwrap_or_default(), &environment, &[]).0;
    // A person runs `--once`, so it must find the tools itself.
    let places = || {
        let settings = settings();
        let cxx = kforge_project::toolchain::cxx::find(settings.path("toolchain.cxx").as_deref(), environment.path());
        let read = cxx.as_ref().map(read_by).unwrap_or_default();
        let cxx = cxx.map(|c| ("c++".to_string(), c.path));
        let python =
            kforge_project::toolchain::python::find(settings.path("toolchain.python").as_deref(), environment.path())
                .map(|python| kforge_project::toolchain::python::places(&python))
                .unwrap_or_default();
        let devices = devices(&settings);
        Places { tools: cxx.into_iter().chain(python).chain(devices).collect(), read, scratch: None }
    };
    let is_once = words.first().is_some_and(|word| word == "--once");
    let is_described = words.iter().any(|word| word == "--places");
    let allow_unconfined = is_once && !is_described && !settings().flag("sandbox.required");
    let limits = OnceLimits {
        time: Duration::from_secs(600),
        run: Duration::from_secs(if is_once && !is_described { settings().number("build.time-limit") } else { 0 }),
        memory: 8 << 30,
        compiler_memory: 8 << 30,
        allow_unconfined,
    };
    // Files are no word of the machine here: above the folder of a step and in a shared home folder, anyone may write them.
    let requires_sandbox = Settings::of_variables(&environment).flag("sandbox.required");
    let home = environment.get("KFORGE_HOME").map(PathBuf::from);
    let key = RefCell::new(None);
    let seal = |spec: &Spec, input: &Path, output: &Path, answer| match &*key.borrow() {
        Some(key) => WorkerKey::seal(key, spec, input, output, answer),
        None => answer,
    };
    let described = |(file, own): (&Path, Option<&Path>), spec: &Spec, input: &Path| {
        let missing = |why: String| vec![Difference::Missing { input: "places".into(), why }];
        let read = |file: &Path| std::fs::read(file).map_err(|e| missing(e.to_string()));
        let mut file: StepFile = serde_json::from_slice(&read(file)?).map_err(|e| missing(e.to_string()))?;
        let own: Option<WorkerTools> = match own {
            Some(own) => Some(serde_json::from_slice(&read(own)?).map_err(|e| missing(e.to_string()))?),
            None => None,
        };
        if let Some(own) = &own {
            file = file.with_tools_of(own).map_err(|difference| vec![difference])?;
        }
        let limits = file.limits;
        let program = std::env::current_exe().map_err(|e| missing(e.to_string()))?;
        let mut places = file.places(spec, input, home.as_deref(), &program)?;
        // A candidate that is not confined can read the key.
        let has_key = own.as_ref().is_some_and(|own| own.key.is_some());
        if asks_device(spec) {
            let path = own.as_ref().and_then(|own| own.key.as_deref());
            key.replace(path.map(WorkerKey::read).transpose().map_err(|e| missing(e.to_string()))?);
            match own {
                Some(own) => places.tools.extend(own.device),
                None => {
                    let why = "no home is named, in which the locks of devices lie (variable `KFORGE_HOME`)";
                    let mut settings = Settings::of_variables(&environment);
                    settings.home = home.clone().ok_or_else(|| missing(why.into()))?;
                    places.tools.extend(devices(&settings));
                }
            }
        }
        let limits = OnceLimits {
            time: Duration::from_secs(limits.time_s),
            run: Duration::from_secs(limits.run_s),
            memory: limits.memory,
            compiler_memory: limits.compiler_memory,
            allow_unconfined: !requires_sandbox && !has_key,
        };
        Ok(Ready { places, limits })
    };
    worker_main(words, &parts, &Finders { search: &places, limits, described: &described, seal: &seal })
}

//! A home, a clock that advances only while it is waited on, and agents to ask.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::optimize::agents::ask::{AskError, AskEvent, Asking, Clock, Ledger, PermittedKeys, Surroundings};
use crate::optimize::agents::briefing::{Briefing, FailedAttempt, MethodToTry, Parent};
use kforge_engine::answers::Answers;
use kforge_engine::home::Home;
use kforge_foundation::base::{Digest, SourceFile};
use kforge_foundation::config::Environment;
use kforge_types::model::agent::{AgentAccess, Budget, Prices};
use kforge_types::model::{Agent, Axis, Place, Text};
use kforge_types::record::answer::{Answer, Question};

/// The key of every endpoint.
pub(super) const KEY: &str = "sk-secret-0123456789";

/// A clock that advances only while it is waited on.
#[derive(Default)]
pub(super) struct Still {
    now: Mutex<Duration>,
    /// Every wait.
    pub(super) waits: Mutex<Vec<f64>>,
    /// Makes the next wait set `interrupted`, as if the user interrupted it.
    pub(super) interrupts: AtomicBool,
}

impl Clock for Still {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn today(&self) -> String {
        "2026-11-20T12:00:00Z".into()
    }

    fn wait(&self, time: Duration, interrupted: &AtomicBool) {
        self.waits.lock().unwrap().push(time.as_secs_f64());
        *self.now.lock().unwrap() += time;
        if self.interrupts.load(Ordering::Relaxed) {
            interrupted.store(true, Ordering::Relaxed);
        }
    }
}

pub(super) struct World {
    package: PathBuf,
    _dir: Option<tempfile::TempDir>,
    pub(super) clock: Arc<Still>,
    pub(super) interrupted: AtomicBool,
    pub(super) offline: bool,
    environment: Environment,
}

impl World {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = World::at(dir.path());
        World { _dir: Some(dir), ..world }
    }

    /// A world in an existing folder.
    pub(super) fn at(package: &Path) -> Self {
        let vars = [("PATH", "/usr/bin:/bin"), ("AGENT_KEY", KEY)];
        World {
            package: package.into(),
            _dir: None,
            clock: Arc::default(),
            interrupted: AtomicBool::new(false),
            offline: false,
            environment: Environment::of(vars.map(|(k, v)| (k.to_string(), v.to_string()))),
        }
    }

    pub(super) fn package(&self) -> &Path {
        &self.package
    }

    pub(super) fn answers(&self) -> Answers {
        Answers::new(&Home::open(&self.package.join("home")).unwrap())
    }

    pub(super) fn asking<'a>(&'a self, agents: &'a [Agent], ledger: &'a Ledger) -> Asking<'a> {
        self.asking_in_order(agents, ledger, 0)
    }

    /// One of several `Asking`s that ask at the same time.
    pub(super) fn asking_in_order<'a>(&'a self, agents: &'a [Agent], ledger: &'a Ledger, order: usize) -> Asking<'a> {
        Asking::new(Surroundings {
            answers: self.answers(),
            agents,
            environment: &self.environment,
            permitted: PermittedKeys::parse("AGENT_KEY=127.0.0.1,NO_SUCH_KEY=127.0.0.1"),
            offline: self.offline,
            interrupted: &self.interrupted,
            folder: self.package(),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            ledger,
            order,
        })
    }

    /// Asks a coder for a first attempt.
    pub(super) fn ask(&self, coder: &Agent) -> (Result<Answer, AskError>, Vec<AskEvent>) {
        let agents = [coder.clone()];
        let mut events = vec![];
        let ledger = Ledger::default();
        let came = self
            .asking(&agents, &ledger)
            .ask(&question(coder, 1, 0), &briefing(), None, coder, &mut |e| events.push(e));
        (came, events)
    }

    /// A program of the package: a shell script.
    pub(super) fn script(&self, text: &str) -> Agent {
        use std::os::unix::fs::PermissionsExt;
        let file = self.package().join("agent.sh");
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        agent("script", AgentAccess::Command { program: vec!["./agent.sh".into()] })
    }

    pub(super) fn waits(&self) -> Vec<f64> {
        self.clock.waits.lock().unwrap().clone()
    }

    /// Every file of the world that holds the key.
    pub(super) fn files_with_the_key(&self) -> Vec<String> {
        let all = walkdir::WalkDir::new(&self.package).into_iter().flatten().filter(|e| e.file_type().is_file());
        let bytes = |e: &walkdir::DirEntry| std::fs::read(e.path()).unwrap();
        let holds = |bytes: &[u8]| bytes.windows(KEY.len()).any(|w| w == KEY.as_bytes());
        all.filter(|e| holds(&bytes(e))).map(|e| e.path().display().to_string()).collect()
    }
}

fn text(value: &str) -> Text {
    let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: String::new() });
    Text { value: value.into(), place: Place::new(&file, 0..0) }
}

pub(super) fn agent(name: &str, reach: AgentAccess) -> Agent {
    Agent {
        name: name.into(),
        place: text("").place,
        reach,
        time_limit_s: 60,
        per_minute: None,
        parallel: 4,
        retries: 3,
        prices: Some(Prices { input: 2.0, output: 10.0 }),
        budget: Budget::default(),
    }
}

pub(super) fn endpoint(url: &str) -> Agent {
    let (url, key) = (text(url), Some(text("AGENT_KEY")));
    agent("far", AgentAccess::Http { url, model: "m-1".into(), key, temperature: Some(0.2), max_tokens: Some(1000) })
}

pub(super) fn question(coder: &Agent, round: u32, attempt: u32) -> Question {
    let methods = vec!["memory.vectorized_access".into()];
    Question { contract: Digest::of(b"c"), parent: None, methods, round, attempt, agent: coder.identity() }
}

pub(super) fn briefing() -> Briefing {
    let method = MethodToTry {
        id: "memory.vectorized_access".into(),
        axis: Axis::Memory,
        about: String::new(),
        because: "loads are narrow".into(),
        strength: None,
    };
    Briefing {
        kernel: "row_sum".into(),
        contract: "y[r] is the sum of row r of x".into(),
        round: 1,
        branches: 2,
        methods: vec![method],
        ..Briefing::default()
    }
}

/// A briefing with a verified parent.
pub(super) fn with_parent() -> Briefing {
    let parent = Parent { source: "__global__ void parent() {}".into(), verified: true, ..Parent::default() };
    Briefing { parent: Some(parent), ..briefing() }
}

/// A briefing for a repair.
pub(super) fn repair() -> Briefing {
    let failed = FailedAttempt { source: Some("__global__ void failed() {}".into()), ..FailedAttempt::default() };
    Briefing { attempt: 1, failed: Some(failed), ..with_parent() }
}

/// A usable reply of a coder.
pub(super) fn proposal() -> String {
    let declaration = "tune.VEC = [4, 1]\n[[launch]]\nentry = \"k<VEC>\"\ngrid = [1]\nblock = [32]\nargs = [\"x\", \"y\"]\n\
        [methods.\"memory.vectorized_access\"]\noff = { VEC = 1 }\n";
    let branches = json!([BTreeMap::from([("VEC", 4)])]);
    json!({ "declaration": declaration, "source": "template <int VEC> __global__ void k(const float *x, float *y) {}", "branches": branches })
        .to_string()
}

/// A usable diagnosis.
pub(super) fn diagnosis() -> String {
    json!({ "bottleneck": "loads", "method": "memory.vectorized_access", "plan": "float4" }).to_string()
}

/// A usable correction.
pub(super) fn correction() -> String {
    json!({ "critical_issue": "no tail", "why_it_matters": "sizes differ", "minimal_fix": "a guard" }).to_string()
}

/// The kinds of events as words, for comparison.
pub(super) fn words(events: &[AskEvent]) -> Vec<&'static str> {
    let word = |event: &AskEvent| match event {
        AskEvent::Asking { .. } => "asking",
        AskEvent::Recalled { .. } => "recalled",
        AskEvent::Waiting { .. } => "waiting",
        AskEvent::Retrying { .. } => "retrying",
        AskEvent::Answered { .. } => "answered",
        AskEvent::Refused { .. } => "refused",
    };
    events.iter().map(word).collect()
}

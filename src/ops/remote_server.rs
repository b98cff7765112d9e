//! What the server of the Remote Execution API that the settings name can do for this machine. Knows settings; the package `kforge-remote` knows the server.

use std::time::Duration;

use crate::Session;

/// Why nothing is known of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoServer {
    /// The settings name none.
    #[error("no server is named")]
    NotNamed,
    /// It is not to be used.
    #[error("the server `{0}` is not used: this machine is offline, or `remote.mode` is `off`")]
    NotUsed(String),
    /// The command was interrupted before anything was known.
    #[error("interrupted")]
    Interrupted,
    /// This program cannot use one.
    #[error("the server `{0}` is not used: this kforge was built without its feature `remote`")]
    NoFeature(String),
    /// It cannot be used.
    #[error("the server `{url}` cannot be used: {why}")]
    Fails {
        /// Its address.
        url: String,
        /// Why.
        why: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

impl NoServer {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            NoServer::NotNamed => "set `remote.url`, for example with `KFORGE_REMOTE_URL=grpcs://HOST:PORT`",
            NoServer::NotUsed(_) => {
                "leave out `--offline` and the setting `net.offline`, and set `remote.mode` to `read` or `read-write`"
            }
            NoServer::Interrupted => "run the command again",
            NoServer::NoFeature(_) => "install a kforge with its feature `remote`, which it has by default",
            NoServer::Fails { remedy, .. } => remedy,
        }
    }
}

/// What a server can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its address.
    pub url: String,
    /// The digest functions that it announces, and the one that kforge uses.
    pub functions: (Vec<String>, String),
    /// The largest batch of contents in bytes.
    pub batch: u64,
    /// The largest content in bytes; none if it announces no limit.
    pub largest: Option<u64>,
    /// Whether contents are compressed with zstd.
    pub has_zstd: bool,
    /// Whether it stores results of clients.
    pub stores_results: bool,
    /// The ranges of priorities of executions.
    pub priorities: Vec<(i32, i32)>,
    /// Whether it executes steps.
    pub executes: bool,
    /// The platform properties that `remote.properties` asks workers for. An operator registers their names, or the server may refuse or never route a step.
    pub properties: Vec<(String, String)>,
    /// The tools of this machine whose steps stay here, because their paths name the home directory.
    pub kept: Vec<std::path::PathBuf>,
    /// What became of a trial step; none if the server executes nothing.
    pub trial: Option<Trial>,
    /// Whether the settings ask for execution there (`remote.execute`).
    pub is_asked: bool,
    /// Whether the settings ask it to store results (`remote.mode`).
    pub is_to_store: bool,
}

impl Server {
    /// Whether it does what the settings ask it for.
    pub fn is_usable(&self) -> bool {
        let executes = matches!(self.trial, Some(Trial::Executed(_)));
        (executes || !self.is_asked) && !self.lacks_storing()
    }

    /// Whether it stores no results although the settings ask it to.
    pub fn lacks_storing(&self) -> bool {
        self.is_to_store && !self.stores_results
    }

    /// What to do about what it does not do, a remedy for each.
    pub fn remedies(&self) -> Vec<&'static str> {
        let storing = self.lacks_storing();
        let storing = storing.then_some("let its operator allow you to store results, or set `remote.mode` to `read`");
        let executing = match &self.trial {
            Some(Trial::NotExecuted { remedy, .. }) => Some(*remedy),
            None if self.is_asked => Some("name a server that executes, or set `remote.execute = false`"),
            _ => None,
        };
        storing.into_iter().chain(executing).collect()
    }
}

/// What became of a trial step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trial {
    /// A worker executed it, and its result was here after this time.
    Executed(Duration),
    /// No worker did.
    NotExecuted {
        /// The reason.
        why: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

impl Session {
    /// Asks the server that the settings name what it can do. If it executes, sends a small step to a worker.
    ///
    /// # Errors
    /// Nothing is known of a server.
    pub fn remote_server(&self) -> Result<Server, NoServer> {
        let url = self.settings.word("remote.url").ok_or(NoServer::NotNamed)?;
        match self.offline() || self.settings.word("remote.mode") == Some("off") {
            true => Err(NoServer::NotUsed(url.to_string())),
            false => self.examined(url),
        }
    }

    #[cfg(not(feature = "remote"))]
    fn examined(&self, url: &str) -> Result<Server, NoServer> {
        Err(NoServer::NoFeature(url.to_string()))
    }

    #[cfg(feature = "remote")]
    fn examined(&self, url: &str) -> Result<Server, NoServer> {
        use kforge_foundation::config::ServerUrl;
        let fails = |why: String, remedy| NoServer::Fails { url: url.to_string(), why, remedy };
        let parsed = url.parse::<ServerUrl>();
        let parsed =
            parsed.map_err(|e| fails(e.to_string(), "write it as `grpcs://HOST:PORT` or `grpc://HOST:PORT`"))?;
        let url = parsed.to_string();
        let access = self.remote_access(parsed);
        let can = kforge_remote::Remote::capabilities(&access, &self.interrupted);
        let can = can.map_err(|e| fails(e.to_string(), e.remedy()));
        let trial = can.as_ref().ok().filter(|can| can.executes).map(|_| self.tried(access));
        // What was cut off says nothing of the server.
        if self.interrupted.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(NoServer::Interrupted);
        }
        let can = can?;
        Ok(Server {
            url,
            functions: (can.functions.clone(), can.digest_function().to_string()),
            batch: can.batch,
            largest: can.largest,
            has_zstd: can.has_zstd,
            stores_results: can.stores_results,
            priorities: can.priorities,
            executes: can.executes,
            properties: self.execution(1).properties,
            kept: if can.executes { self.kept() } else { vec![] },
            trial,
            is_asked: self.settings.flag("remote.execute"),
            is_to_store: self.settings.word("remote.mode") == Some("read-write"),
        })
    }

    /// Sends a step that computes two values to a worker, as a build would.
    #[cfg(feature = "remote")]
    fn tried(&self, access: kforge_remote::Access) -> Trial {
        match self.executed(access) {
            Ok(took) => Trial::Executed(took),
            Err((why, remedy)) => Trial::NotExecuted { why, remedy },
        }
    }

    #[cfg(feature = "remote")]
    fn executed(&self, access: kforge_remote::Access) -> Result<Duration, (String, &'static str)> {
        use crate::elsewhere::{StepFile, StepLimits};
        use crate::session::remote_workers::{compared, failure_in, meaning};
        use kforge_engine::Blobs;
        use kforge_engine::blobs::Store;
        use kforge_remote::{Remote, RemoteError, RemoteOptions, RemoteStep, StepInput};
        use kforge_types::record::{Form, StepKind};
        use std::sync::{Arc, Mutex, PoisonError};
        /// What is to be looked at where the trial fails on this machine.
        const HERE: &str = "mend the cause on this machine: the home and its disk";
        fn here(why: impl std::fmt::Display) -> (String, &'static str) {
            (why.to_string(), HERE)
        }
        type Said = Option<(String, &'static str)>;
        let store = Arc::new(Store::new(&self.home().map_err(here)?));
        let said: Arc<Mutex<Said>> = Arc::default();
        let tell = |said: &Arc<Mutex<Said>>| {
            let heard = said.clone();
            move |why: Said| {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                *heard = why.or(heard.take());
            }
        };
        let (hears, fails) = (tell(&said), tell(&said));
        let options = RemoteOptions {
            access,
            writes: false,
            holdout: false,
            private: vec![],
            interrupted: self.interrupted.clone(),
            report: Box::new(move |error: &RemoteError| hears(Some((error.to_string(), error.remedy())))),
            recheck: None,
        };
        let remote = Remote::start(options, store.clone()).map_err(here)?;
        let execution = self.execution(1);
        let (spec, processor) = trial_step().map_err(here)?;
        let limits = StepLimits { time_s: 60, run_s: 60, memory: 1 << 30, compiler_memory: 1 << 30 };
        let places = StepFile { cxx: None, python: None, toolchains: std::collections::BTreeMap::new(), limits };
        let digest = store.put(&processor).map_err(here)?;
        let step = RemoteStep {
            program: execution.program,
            spec: serde_json::to_vec(&spec).map_err(here)?,
            places: serde_json::to_vec(&places).map_err(here)?,
            inputs: vec![StepInput { name: "processor".into(), digest, form: Form::Blob }],
            // Words in braces stand for digests that differ between steps, so a trial has none.
            properties: execution.properties.into_iter().filter(|(_, value)| !value.contains('{')).collect(),
            compared: compared(&spec),
            is_observed: false,
            time_limit_s: limits.time_s,
            queue_limit: execution.queue_limit,
        };
        let read = move |answer: &[u8]| {
            let remedy = "look at the log of the worker";
            fails(failure_in(answer).map(|why| (format!("the worker fails at it: {why}"), remedy)));
            meaning(StepKind::Oracle, answer)
        };
        let began = std::time::Instant::now();
        let answer = remote.execute(step, Box::new(read));
        let took = began.elapsed();
        drop(remote);
        match answer {
            Some(_) => Ok(took),
            None => {
                let why = said.lock().unwrap_or_else(PoisonError::into_inner).take();
                let large = || ("the answer of the worker is too large".into(), "look at the log of the worker");
                Err(why.unwrap_or_else(large))
            }
        }
    }

    /// The tools of this machine whose paths name the home directory.
    #[cfg(feature = "remote")]
    fn kept(&self) -> Vec<std::path::PathBuf> {
        use kforge_project::toolchain::{cxx, python};
        let path = self.environment.path();
        let cxx = cxx::find(self.settings.path("toolchain.cxx").as_deref(), path).ok().map(|cxx| cxx.path);
        let python = python::find(self.settings.path("toolchain.python").as_deref(), path).ok();
        let tools = cxx.into_iter().chain(python.map(|python| python.asked));
        let Some(home) = self.environment.home() else { return vec![] };
        tools.filter(|tool| tool.starts_with(&home)).collect()
    }
}

/// The expected values of `y = 2 * x` for two elements, and the description of this machine's processor. Another seed each time, so that no cache answers.
#[cfg(feature = "remote")]
fn trial_step() -> Result<(kforge_types::record::Spec, Vec<u8>), serde_json::Error> {
    use crate::implementation::implementations;
    use kforge_foundation::base::Digest;
    use kforge_types::model::{DType, Problem, Reference, Role, Tensor};
    use kforge_types::record::params::{OracleParams, Trial as Inputs};
    use kforge_types::record::{Form, Input, Spec, StepKind};
    use std::collections::BTreeMap;
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let attributes = [("y".to_string(), "2 * x".into())].into();
    let reference = Reference::Builtin { name: "elementwise".into(), attributes, names: BTreeMap::new() };
    let tensors =
        [("x", Role::Input), ("y", Role::Output)].map(|(name, role)| Tensor::dense(name, role, DType::F32, &[2]));
    let params = OracleParams {
        problem: Problem::of(tensors.into(), reference),
        trial: Inputs { trial: 0, seed: since.as_nanos() as u64, distribution: "normal".into() },
        scaled: vec![],
        nulls: false,
        compare: BTreeMap::new(),
        count_beyond: BTreeMap::new(),
        holdout: false,
    };
    let params = serde_json::to_value(&params)?;
    let processor = serde_json::to_vec(&kforge_project::toolchain::processor::fingerprint())?;
    let input = Input { digest: Some(Digest::of(&processor)), form: Form::Blob };
    let kind = StepKind::Oracle;
    let implementation = implementations().of(kind, &params);
    let inputs = [("processor".to_string(), input)].into();
    Ok((Spec { kind, version: kind.version(), implementation, params, inputs }, processor))
}

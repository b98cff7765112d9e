//! What the server of the Remote Execution API that the settings name can do for this machine. Knows settings; the package `kforge-remote` knows the server.

use std::time::Duration;

use crate::Session;

/// Why nothing is known of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoServer {
    /// The settings name none.
    #[error("no server is named: set `remote.url`, for example with `KFORGE_REMOTE_URL=grpcs://HOST:PORT`")]
    NotNamed,
    /// It is not to be used.
    #[error("the server `{0}` is not used: `--offline`, `net.offline` or `remote.mode = \"off\"` is set")]
    NotUsed(String),
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
    },
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
    /// What became of a trial step; none if the server executes nothing.
    pub trial: Option<Trial>,
}

/// What became of a trial step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trial {
    /// A worker answered after this time.
    Answered(Duration),
    /// No worker did, for this reason.
    NotAnswered(String),
}

impl Session {
    /// Asks the server that the settings name what it can do. If it executes, sends a step that does nothing to a worker.
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
        let fails = |why: String| NoServer::Fails { url: url.to_string(), why };
        let parsed = url.parse::<ServerUrl>().map_err(|e| fails(e.to_string()))?;
        let url = parsed.to_string();
        let access = self.remote_access(parsed);
        let can = kforge_remote::Remote::capabilities(&access, &self.interrupted).map_err(|e| fails(e.to_string()))?;
        let trial = can.executes.then(|| self.tried(access));
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
            trial,
        })
    }

    /// Sends a step to a worker that kforge refuses there, because its spec says nothing.
    #[cfg(feature = "remote")]
    fn tried(&self, access: kforge_remote::Access) -> Trial {
        use kforge_engine::blobs::Store;
        use kforge_harness::elsewhere::OnceAnswer;
        use kforge_remote::{Meaning, Remote, RemoteError, RemoteOptions, RemoteStep};
        use std::sync::{Arc, Mutex, PoisonError};
        let home = match self.home() {
            Ok(home) => home,
            Err(e) => return Trial::NotAnswered(e.to_string()),
        };
        let said: Arc<Mutex<Option<String>>> = Arc::default();
        let heard = said.clone();
        let options = RemoteOptions {
            access,
            writes: false,
            holdout: false,
            private: vec![],
            interrupted: self.interrupted.clone(),
            report: Box::new(move |error: &RemoteError| {
                *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            }),
            recheck: None,
        };
        let remote = match Remote::start(options, Arc::new(Store::new(&home))) {
            Ok(remote) => remote,
            Err(e) => return Trial::NotAnswered(e.to_string()),
        };
        let execution = self.execution(1);
        // Words in braces stand for digests that differ between steps, so a trial has none.
        let properties = execution.properties.into_iter().filter(|(_, value)| !value.contains('{')).collect();
        // Another text each time, so that no cache answers.
        let spec = format!("{:?} {}", std::time::SystemTime::now(), std::process::id()).into_bytes();
        let (program, queue_limit) = (execution.program, execution.queue_limit);
        let step =
            RemoteStep { program, spec, places: vec![], inputs: vec![], properties, time_limit_s: 60, queue_limit };
        let began = std::time::Instant::now();
        // A failure is what kforge answers.
        let read = |answer: &[u8]| match serde_json::from_slice::<OnceAnswer>(answer) {
            Ok(_) => Meaning::Failed,
            Err(_) => Meaning::Refused("this kforge does not start there".into()),
        };
        remote.execute(step, Box::new(read));
        let took = began.elapsed();
        drop(remote);
        match said.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(why) => Trial::NotAnswered(why),
            None => Trial::Answered(took),
        }
    }
}

//! The remote cache of a build, if the settings name one and it may be used. Knows settings; the package `kforge-remote` knows the server.

#[cfg(feature = "remote")]
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "remote")]
use std::time::Duration;

use super::open::{Opened, Session};
use crate::Error;
#[cfg(feature = "remote")]
use crate::event::Event;
use crate::event::Warning;
use kforge_engine::machine_key::MachineKey;
use kforge_engine::{Blobs, RemoteCache};
#[cfg(feature = "remote")]
use kforge_foundation::config::ServerUrl;
use kforge_foundation::config::keys;
#[cfg(feature = "remote")]
use kforge_remote::{Access, Program, Remote, RemoteBlobs, RemoteError, RemoteOptions, Sampled, Tls};
#[cfg(feature = "remote")]
use kforge_types::record::Device;

/// What is known of the remote cache that the settings name.
pub(crate) enum RemoteState {
    /// It answers; what it can do.
    #[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "a program without the feature asks no server"))]
    Answers(String),
    /// Why it cannot be used.
    Fails(String),
}

/// The sample of results that are computed again: the key from which it follows, and its part in hundredths of a per cent.
type Sample = (Arc<MachineKey>, u32);

/// The remote cache of a build, or none.
#[derive(Clone, Default)]
pub struct BuildRemote {
    #[cfg(feature = "remote")]
    remote: Option<Arc<Remote>>,
    /// How steps are executed remotely, if they are.
    #[cfg(feature = "remote")]
    pub(super) execution: Option<Arc<ExecutionSettings>>,
    /// Whether results count that no signature vouches for.
    #[cfg(feature = "remote")]
    pub(super) takes_claims: bool,
}

/// How steps are executed remotely.
#[cfg(feature = "remote")]
pub(crate) struct ExecutionSettings {
    pub(crate) program: Program,
    /// The properties of workers, with words in braces.
    pub(crate) properties: Vec<(String, String)>,
    pub(crate) queue_limit: Duration,
    /// How many steps run on this machine at once.
    pub(super) local_jobs: usize,
    /// The devices of workers.
    pub(super) devices: Vec<Device>,
    /// The name of the server, which stands for the origin of records.
    pub(super) host: String,
    /// Whether what is for holdout shapes is sent.
    pub(super) sends_holdout: bool,
}

#[cfg(feature = "remote")]
impl ExecutionSettings {
    /// The device of that name, if it is one of a worker.
    pub(super) fn device(&self, uuid: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.uuid == uuid)
    }
}

impl Session {
    /// The remote cache that the settings name. None if the network is not to be used. If results that another machine computed do not count, only the devices of
    /// workers are asked, and none if there are none. `local_jobs` steps run on this machine at once. The sample of results that are computed again follows from the key of this machine, if it has one.
    ///
    /// # Errors
    /// The system gives no random bytes for a sample.
    pub(super) fn build_remote(
        &self,
        opened: &Opened,
        refuses_claims: bool,
        local_jobs: usize,
        machine_key: Option<Arc<MachineKey>>,
    ) -> Result<BuildRemote, Error> {
        let Some(url) = self.settings.word("remote.url") else { return Ok(BuildRemote::default()) };
        let is_off = self.offline() || self.settings.word("remote.mode") == Some("off");
        if is_off || (refuses_claims && self.remote_devices().is_empty()) {
            return Ok(BuildRemote::default());
        }
        // The table of settings refuses other texts.
        let part = self.settings.word("remote.recheck").and_then(keys::parse_percent).unwrap_or(0);
        let sample = match (part, machine_key) {
            (0, _) => None,
            (_, Some(key)) => Some((key, part)),
            (_, None) => Some((Arc::new(MachineKey::random()?), part)),
        };
        Ok(self.started(opened, url, local_jobs, sample, !refuses_claims))
    }

    #[cfg(not(feature = "remote"))]
    fn started(&self, _: &Opened, url: &str, _: usize, _: Option<Sample>, _: bool) -> BuildRemote {
        self.reporter.warn(Warning::NoRemoteFeature(url.to_string()));
        BuildRemote::default()
    }

    #[cfg(feature = "remote")]
    fn started(
        &self,
        opened: &Opened,
        url: &str,
        local_jobs: usize,
        sample: Option<Sample>,
        takes_claims: bool,
    ) -> BuildRemote {
        // The table of settings refuses other texts.
        let Ok(url) = url.parse::<ServerUrl>() else { return BuildRemote::default() };
        let shown = url.to_string();
        let (observer, of_thread) = (self.reporter.observer().clone(), shown.clone());
        let warn = move |why: &RemoteError| {
            let warning = Warning::Remote { url: of_thread.clone(), why: why.to_string() };
            observer.event(&Event::Warning(&warning));
        };
        let folders = [&opened.workspace.root, &self.settings.home].map(|path| path.display().to_string());
        let home = self.environment.home().map(|path| path.display().to_string());
        let options = RemoteOptions {
            access: self.remote_access(url),
            writes: takes_claims && self.settings.word("remote.mode") == Some("read-write"),
            holdout: self.settings.flag("remote.holdout"),
            private: folders.into_iter().chain(home).filter(|path| path.len() > 1).collect(),
            interrupted: self.interrupted.clone(),
            report: Box::new(warn),
            recheck: sample.map(|(key, part)| -> Sampled { Box::new(move |step| key.samples(step, part)) }),
        };
        let execution = self.settings.flag("remote.execute").then(|| Arc::new(self.execution(local_jobs)));
        match Remote::start(options, opened.store.clone()) {
            Ok(remote) => BuildRemote { remote: Some(Arc::new(remote)), execution, takes_claims },
            Err(e) => {
                self.reporter.warn(Warning::Remote { url: shown, why: e.to_string() });
                BuildRemote::default()
            }
        }
    }

    /// How the settings say to execute steps remotely.
    #[cfg(feature = "remote")]
    pub(crate) fn execution(&self, local_jobs: usize) -> ExecutionSettings {
        let sent = || Program::Sent(self.worker.program().to_path_buf());
        ExecutionSettings {
            program: self
                .settings
                .word("remote.program")
                .map_or_else(sent, |path| Program::Installed(path.to_string())),
            properties: self.asked_properties(),
            queue_limit: Duration::from_secs(self.settings.number("remote.queue-limit").max(1)),
            local_jobs,
            devices: self.remote_devices(),
            host: self
                .settings
                .word("remote.url")
                .and_then(|url| url.parse::<ServerUrl>().ok())
                .map_or_else(String::new, |url| url.authority),
            sends_holdout: self.settings.flag("remote.holdout"),
        }
    }

    /// The properties that workers are asked for. If the settings name devices, steps for these ask for workers that have one.
    #[cfg(feature = "remote")]
    fn asked_properties(&self) -> Vec<(String, String)> {
        // The table of settings refuses other texts.
        let named = keys::properties(self.settings.word("remote.properties").unwrap_or_default());
        let mut named = named.unwrap_or_default();
        if !self.remote_devices().is_empty() && !named.iter().any(|(_, value)| value.contains("{gpu}")) {
            named.push(("gpu".into(), "{gpu}".into()));
            named.sort();
        }
        named
    }

    /// What the remote cache that the settings name can do, or why that is not known. None if they name none, or it is not to be used.
    pub(crate) fn remote_state(&self) -> Option<RemoteState> {
        let url = self.settings.word("remote.url")?;
        let is_used = !self.offline() && self.settings.word("remote.mode") != Some("off");
        is_used.then(|| self.announced(url))
    }

    #[cfg(not(feature = "remote"))]
    fn announced(&self, _: &str) -> RemoteState {
        RemoteState::Fails("this kforge was built without its feature `remote`".into())
    }

    #[cfg(feature = "remote")]
    fn announced(&self, url: &str) -> RemoteState {
        let url = match url.parse::<ServerUrl>() {
            Ok(url) => url,
            Err(why) => return RemoteState::Fails(why.to_string()),
        };
        let shown = url.to_string();
        let capabilities = match Remote::capabilities(&self.remote_access(url), &self.interrupted) {
            Ok(capabilities) => capabilities,
            Err(why) => return RemoteState::Fails(format!("{shown}: {why}")),
        };
        let stores = match (capabilities.stores_results, self.settings.word("remote.mode") == Some("read-write")) {
            (true, true) => "results are read and stored",
            (false, true) => "results are read; the server announces that it stores none",
            (_, false) => "results are read",
        };
        let zstd = if capabilities.has_zstd { "zstd" } else { "no compression" };
        let (function, batch) = (capabilities.digest_function(), capabilities.batch);
        RemoteState::Answers(format!("{shown}: {stores}; digests by {function}, {zstd}, batches of {batch} bytes"))
    }

    /// How the settings say to reach the server.
    #[cfg(feature = "remote")]
    pub(crate) fn remote_access(&self, url: ServerUrl) -> Access {
        let path = |name: &str| -> Option<PathBuf> { self.settings.path(name) };
        Access {
            url,
            instance: self.settings.word("remote.instance-name").unwrap_or_default().to_string(),
            timeout: Duration::from_secs(self.settings.number("remote.timeout").max(1)),
            token_file: path("remote.token-file"),
            credential_helper: path("remote.credential-helper"),
            environment: self.environment.all().clone(),
            tls: Tls {
                ca: path("remote.tls-ca"),
                certificate: path("remote.client-certificate"),
                key: path("remote.client-key"),
            },
        }
    }
}

#[cfg(feature = "remote")]
impl BuildRemote {
    /// The store with the contents of the remote cache behind it.
    pub(super) fn behind(&self, store: Arc<dyn Blobs>) -> Arc<dyn Blobs> {
        match &self.remote {
            Some(remote) => Arc::new(RemoteBlobs::new(store, remote.clone())),
            None => store,
        }
    }

    /// Whether steps of this build go to workers of the server.
    pub(super) fn executes(&self) -> bool {
        self.executing().is_some()
    }

    /// The server that executes steps, and how.
    pub(super) fn executing(&self) -> Option<(&Remote, &ExecutionSettings)> {
        Some((self.remote.as_deref()?, self.execution.as_deref()?))
    }

    /// The cache for the engine.
    pub(super) fn cache(&self) -> Option<&dyn RemoteCache> {
        let remote = self.remote.as_deref().filter(|_| self.takes_claims);
        remote.map(|remote| remote as &dyn RemoteCache)
    }

    /// Waits a while until the results of the build are stored.
    pub(super) fn finish(&self, session: &Session) {
        let unstored = self.remote.as_ref().map_or(0, |remote| remote.finish());
        if unstored > 0 {
            session.reporter.warn(Warning::NotStoredRemotely(unstored));
        }
    }
}

#[cfg(not(feature = "remote"))]
impl BuildRemote {
    /// The store.
    pub(super) fn behind(&self, store: Arc<dyn Blobs>) -> Arc<dyn Blobs> {
        store
    }

    /// No.
    pub(super) fn executes(&self) -> bool {
        false
    }

    /// None.
    pub(super) fn cache(&self) -> Option<&dyn RemoteCache> {
        None
    }

    /// Nothing.
    pub(super) fn finish(&self, _: &Session) {}
}

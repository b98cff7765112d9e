//! The remote cache of a build, if the settings name one and it may be used. Knows settings; the package `kforge-remote` knows the server.

#[cfg(feature = "remote")]
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "remote")]
use std::time::Duration;

use super::open::{Opened, Session};
#[cfg(feature = "remote")]
use crate::event::Event;
use crate::event::Warning;
use kforge_engine::{Blobs, RemoteCache};
#[cfg(feature = "remote")]
use kforge_foundation::config::ServerUrl;
#[cfg(feature = "remote")]
use kforge_remote::{Access, Remote, RemoteBlobs, RemoteError, RemoteOptions, Tls};

/// What is known of the remote cache that the settings name.
pub(crate) enum RemoteState {
    /// It answers; what it can do.
    #[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "a program without the feature asks no server"))]
    Answers(String),
    /// Why it cannot be used.
    Fails(String),
}

/// The remote cache of a build, or none.
#[derive(Clone, Default)]
pub struct BuildRemote {
    #[cfg(feature = "remote")]
    remote: Option<Arc<Remote>>,
}

impl Session {
    /// The remote cache that the settings name. None if the network is not to be used, or if results that another machine computed do not count.
    pub(super) fn build_remote(&self, opened: &Opened, refuses_claims: bool) -> BuildRemote {
        let Some(url) = self.settings.word("remote.url") else { return BuildRemote::default() };
        if self.offline() || refuses_claims || self.settings.word("remote.mode") == Some("off") {
            return BuildRemote::default();
        }
        self.started(opened, url)
    }

    #[cfg(not(feature = "remote"))]
    fn started(&self, _: &Opened, url: &str) -> BuildRemote {
        self.reporter.warn(Warning::NoRemoteFeature(url.to_string()));
        BuildRemote::default()
    }

    #[cfg(feature = "remote")]
    fn started(&self, opened: &Opened, url: &str) -> BuildRemote {
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
            writes: self.settings.word("remote.mode") == Some("read-write"),
            holdout: self.settings.flag("remote.holdout"),
            private: folders.into_iter().chain(home).filter(|path| path.len() > 1).collect(),
            interrupted: self.interrupted.clone(),
            report: Box::new(warn),
        };
        match Remote::start(options, opened.store.clone()) {
            Ok(remote) => BuildRemote { remote: Some(Arc::new(remote)) },
            Err(e) => {
                self.reporter.warn(Warning::Remote { url: shown, why: e.to_string() });
                BuildRemote::default()
            }
        }
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
    fn remote_access(&self, url: ServerUrl) -> Access {
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

    /// The cache for the engine.
    pub(super) fn cache(&self) -> Option<&dyn RemoteCache> {
        self.remote.as_deref().map(|remote| remote as &dyn RemoteCache)
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

    /// None.
    pub(super) fn cache(&self) -> Option<&dyn RemoteCache> {
        None
    }

    /// Nothing.
    pub(super) fn finish(&self, _: &Session) {}
}

//! The toolchain for tests: installed on first use below the target folder, and kept there. This is the only test code that uses the network. Shared by the
//! tests of the toolchain (`acquire`, which cargo runs first), of methods and of templates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use kforge::toolchain::Pip;
use kforge::toolchain::cuda::{Cuda, Group, Source, resolve};
use kforge::workspace::lockfile::{LockedWheel, Lockfile};

/// The release of CUDA.
pub(crate) const RELEASE: &str = "13.0";

#[expect(clippy::disallowed_methods, reason = "a test stands where config does and hands the environment on")]
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars().collect()
}

/// The folder of everything that is kept.
pub(crate) fn home() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("kforge-test-home")
}

/// The folder of toolchains.
pub(crate) fn toolchains() -> PathBuf {
    home().join("toolchains")
}

pub(crate) fn pip() -> &'static Pip {
    static PIP: OnceLock<Pip> = OnceLock::new();
    PIP.get_or_init(|| Pip::find(None, &environment()).expect("pip or uv"))
}

/// The wheels of the release, resolved once and kept in a lockfile, as in a workspace.
pub(crate) fn locked() -> &'static Vec<LockedWheel> {
    static LOCKED: OnceLock<Vec<LockedWheel>> = OnceLock::new();
    LOCKED.get_or_init(|| {
        std::fs::create_dir_all(home()).unwrap();
        let key = format!("cuda {RELEASE}");
        let mut lock = Lockfile::read(&home()).unwrap();
        if !lock.wheels.contains_key(&key) {
            lock.wheels.insert(key.clone(), resolve(RELEASE, pip()).expect("resolve"));
            lock.write(&home(), false).unwrap();
        }
        lock.wheels[&key].clone()
    })
}

/// Installs a group, unless it is installed.
pub(crate) fn install(group: Group) -> BTreeMap<String, PathBuf> {
    let cuda = Cuda::Wheels(locked().clone());
    cuda.install(group, &toolchains(), Source::Pip(pip()), &mut |_| {}).expect("install").tools
}

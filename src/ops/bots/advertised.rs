//! What a worker finds on its machine, and what it says of itself, by which servers choose steps for it.
//!
//! | name | value |
//! |---|---|
//! | `OSFamily`, `ISA` | `linux`; `x86-64` or `aarch64` |
//! | `kforge-toolchain` | the digests that `{toolchain}` in `remote.properties` stands for: the C++ compiler, and Python if it has numpy |
//! | `kforge-runtime`, `kforge-processor` | the digests that `{runtime}` and `{processor}` stand for |
//! | `gpu`, `gpu-arch`, `gpu-driver` | product, architecture and driver of the device that the worker holds: `nvidia-h200`, `sm_90`, `580` |
//! | the same for a slice of a GPU | `gpu` also has its profile: `nvidia-h200-1g-18gb` |
//! | others of `remote.properties` | what the settings of this machine say, with the same words in braces |

use std::path::{Path, PathBuf};

use crate::Session;
use crate::bots::slug;
use crate::session::machine::Machine;
use crate::session::tools::Host;
use kforge_engine::home::Home;
use kforge_engine::stat::StatCache;
use kforge_foundation::base::Digest;
use kforge_foundation::config::keys;
use kforge_project::toolchain::cxx::CachedSurvey;
use kforge_project::toolchain::processor;
use kforge_types::record::DeviceClass;

/// What is known of this machine: its tools, and the digests of its descriptions, as keys of steps state them.
#[derive(Debug, Default)]
pub(super) struct Described {
    toolchains: Vec<Digest>,
    runtime: Option<Digest>,
    processor: Option<Digest>,
    /// The C++ compiler.
    pub(super) cxx: Option<CachedSurvey>,
    /// The Python with numpy.
    pub(super) python: Option<PathBuf>,
    /// What is not known, and why.
    pub(super) lacking: Vec<(&'static str, String)>,
}

impl Session {
    /// Looks at the tools of this machine, as a build does.
    pub(super) fn described(&self, home: &Home) -> Described {
        let processor = digest_of(&processor::fingerprint());
        let Some(machine) = Machine::open(home, true) else {
            let why = format!("`{}` cannot be read", home.root().join("machine").display());
            return Described { processor, lacking: vec![("the tools", why)], ..Described::default() };
        };
        let stats = StatCache::new(machine.journal(), Path::new("/"), true);
        let digest = |path: &Path| {
            let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, format!("`{}` is gone", path.display()));
            stats.digest(path)?.ok_or_else(missing)
        };
        let (cxx, python) = (self.settings.path("toolchain.cxx"), self.settings.path("toolchain.python"));
        let (path, wants) = (self.environment.path(), (true, false));
        let host = Host::find(cxx.as_deref(), python.as_deref(), path, wants, machine.journal(), &digest);
        let found = [&host.cxx, &host.python].into_iter().filter_map(|found| found.as_ref().ok());
        let toolchains = found.filter_map(|(described, _)| digest_of(described)).collect();
        let runtime = host.runtime.as_ref().ok().and_then(digest_of);
        machine.close();
        let why = [
            ("the C++ compiler", host.cxx.as_ref().err()),
            ("Python", host.python.as_ref().err()),
            ("the runtime", host.runtime.as_ref().err()),
        ];
        let lacking = why.into_iter().filter_map(|(what, why)| Some((what, why?.clone()))).collect();
        let cxx = host.survey.as_deref().cloned();
        let python = host.interpreter.map(|python| python.asked);
        Described { toolchains, runtime, processor, cxx, python, lacking }
    }
}

/// The digest of a description, as inputs of steps have it.
fn digest_of(description: &kforge_types::record::params::Toolchain) -> Option<Digest> {
    serde_json::to_vec(description).ok().map(|bytes| Digest::of(&bytes))
}

/// The properties of a worker that holds this device. `settings` is the text of `remote.properties`.
pub(super) fn properties(described: &Described, device: Option<&DeviceClass>, settings: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = vec![];
    let mut add = |name: &str, value: String| {
        let pair = (name.to_string(), value);
        if !all.contains(&pair) {
            all.push(pair);
        }
    };
    add("OSFamily", std::env::consts::OS.into());
    add("ISA", std::env::consts::ARCH.replace('_', "-"));
    let hex = |digests: &[Digest]| digests.iter().map(Digest::hex).collect::<Vec<_>>();
    let words = [
        ("{toolchain}", "kforge-toolchain", hex(&described.toolchains)),
        ("{runtime}", "kforge-runtime", hex(described.runtime.as_slice())),
        ("{processor}", "kforge-processor", hex(described.processor.as_slice())),
    ];
    for (_, name, values) in &words {
        values.iter().for_each(|value| add(name, value.clone()));
    }
    let of_device = |value: &dyn Fn(&DeviceClass) -> String| device.map(value).into_iter().collect::<Vec<_>>();
    let of_gpu = [
        // Nobody who asks for the whole GPU gets a slice.
        (
            "{gpu}",
            "gpu",
            of_device(&|class| slug(&format!("{} {}", class.product, class.mig.as_deref().unwrap_or_default()))),
        ),
        ("{gpu-arch}", "gpu-arch", of_device(&|class| class.arch.clone())),
    ];
    for (_, name, values) in &of_gpu {
        values.iter().for_each(|value| add(name, value.clone()));
    }
    if let Some(class) = device {
        add("gpu-driver", class.driver_major.to_string());
    }
    // The table of settings refuses other texts.
    for (name, value) in keys::properties(settings).unwrap_or_default() {
        if matches!(name.as_str(), "OSFamily" | "ISA") {
            continue;
        }
        let mut values = vec![value];
        for (word, _, digests) in words.iter().chain(&of_gpu) {
            let each = |value: String| match value.contains(word) {
                true => digests.iter().map(|digest| value.replace(word, digest)).collect(),
                false => vec![value],
            };
            values = values.into_iter().flat_map(each).collect();
        }
        values.into_iter().for_each(|value| add(&name, value));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_says_what_it_is_and_what_the_settings_add() {
        let digest = |text: &[u8]| Digest::of(text);
        let described = Described {
            toolchains: vec![digest(b"c++"), digest(b"python")],
            runtime: Some(digest(b"runtime")),
            ..Described::default()
        };
        let class = DeviceClass { product: "NVIDIA H200".into(), arch: "sm_90".into(), driver_major: 580, mig: None };
        let settings = "OSFamily=plan9,pool=a,set=x-{toolchain},none={processor},kforge-runtime={runtime}";
        let all = properties(&described, Some(&class), settings);
        let of = |name: &str| -> Vec<&str> {
            all.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
        };
        assert_eq!((of("OSFamily"), of("gpu"), of("gpu-arch")), (vec!["linux"], vec!["nvidia-h200"], vec!["sm_90"]));
        assert_eq!((of("gpu-driver"), of("pool"), of("none")), (vec!["580"], vec!["a"], vec![]));
        let each = [digest(b"c++"), digest(b"python")].map(|digest| digest.hex());
        assert_eq!(of("kforge-toolchain"), each);
        assert_eq!(of("set"), each.map(|hex| format!("x-{hex}")));
        assert_eq!(of("kforge-runtime"), [digest(b"runtime").hex()], "said once");
        let words = "gpu={gpu},pool=of-{gpu-arch}";
        let filled = properties(&described, Some(&class), words);
        let of = |name: &str| filled.iter().filter(|(known, _)| known == name).count();
        assert!(of("gpu") == 1 && filled.contains(&("pool".into(), "of-sm_90".into())), "{filled:?}");
        let slice = DeviceClass { mig: Some("1g.18gb".into()), ..class };
        assert!(properties(&described, Some(&slice), "").contains(&("gpu".into(), "nvidia-h200-1g-18gb".into())));
        let plain = properties(&Described::default(), None, &format!("ISA=other,{words}"));
        assert_eq!(plain.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["OSFamily", "ISA"]);
        assert_ne!(plain[1].1, "other");
    }
}

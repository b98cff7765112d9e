//! A workspace and a machine for it: a package for a device target, a mock CUDA, and the scenario of the virtual device. Knows how to change each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::project::{Built, Project};

/// An operator and one kernel `k<V>` for the target `h`, which names no device; benched at `big`.
pub(crate) const MANIFEST: &str = r#"
[package]
name = "p"
version = "0.1.0"

[toolchain]
cuda = { path = "cuda" }

[targets.h]
arch = "sm_90a"

[operator.twice]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "2 * x + 1" }
tolerance = { atol = 1e-6, rtol = 1e-6 }
shapes.tiny = { n = 10 }
shapes.big = { n = 100, role = "bench" }

[kernel.k]
operator = "twice"
source = "k.cu"
targets = ["h"]
tune.V = [1, 2, 4]
launch = [{ entry = "k<V>", grid = ["n"], block = ["32"], args = ["x", "y", "n"] }]
"#;

/// The kernel's source, which the stub compiler need not understand.
pub(crate) const SOURCE: &str = "template <int V> __global__ void k(const float *x, float *y, int n) {}\n";

/// The properties of the machine.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// Product and driver; none for a machine without a device.
    pub(crate) device: Option<(&'static str, &'static str)>,
    /// Further devices.
    pub(crate) more: Vec<(&'static str, &'static str)>,
    /// The day of January of the year on which everything is measured.
    pub(crate) day: u32,
    pub(crate) year: u32,
    pub(crate) seed: u64,
    pub(crate) noise: f64,
    pub(crate) drift: f64,
    /// Further properties of each device.
    pub(crate) says: &'static str,
    /// A pattern and the other properties of each rule.
    pub(crate) rules: Vec<(String, String)>,
}

impl Default for Machine {
    fn default() -> Self {
        Machine {
            device: Some(("Virtual H", "580.1")),
            more: vec![],
            day: 1,
            year: 2026,
            seed: 1,
            noise: 0.01,
            drift: 0.0,
            says: "",
            rules: vec![],
        }
    }
}

impl Machine {
    /// A machine on which `k<V>` takes this many nanoseconds, for each V.
    pub(crate) fn with(times: &[(u32, f64)]) -> Self {
        times
            .iter()
            .fold(Machine::default(), |machine, (v, ns)| machine.rule(&format!("^k<{v}>"), &format!("ns = {ns:.1}")))
    }

    /// Appends a rule.
    pub(crate) fn rule(mut self, matches: &str, says: &str) -> Self {
        self.rules.push((matches.into(), says.into()));
        self
    }

    /// Prepends a rule.
    pub(crate) fn first(mut self, matches: &str, says: &str) -> Self {
        self.rules.insert(0, (matches.into(), says.into()));
        self
    }

    fn text(&self) -> String {
        let Machine { day, year, seed, noise, drift, .. } = self;
        let mut text =
            format!("now = \"{year}-01-{day:02}T00:00:00Z\"\nseed = {seed}\nnoise = {noise:?}\ndrift = {drift:?}\n");
        for (product, driver) in self.device.iter().chain(&self.more) {
            text +=
                &format!("[[device]]\nproduct = \"{product}\"\narch = \"sm_90\"\ndriver = \"{driver}\"\n{}", self.says);
        }
        for (matches, says) in &self.rules {
            text += &format!("[[rule]]\nmatches = '{matches}'\n{says}\n");
        }
        text
    }
}

/// The workspace and its machine.
#[derive(Clone)]
pub(crate) struct Lab {
    pub(crate) project: Project,
    pub(crate) scenario: PathBuf,
}

impl Lab {
    /// The package of [`MANIFEST`] on a machine.
    pub(crate) fn new(machine: &Machine) -> Self {
        let project = Project::new().file("kernel.toml", MANIFEST).file("k.cu", SOURCE);
        let scenario = project.place().join("scenario.toml");
        let project = project.var("KFORGE_VIRTUAL_DEVICE", scenario.as_os_str());
        let lab = Lab { project, scenario };
        lab.on(machine);
        lab.cuda();
        lab
    }

    /// The same with V=4 before V=1 as its only variants, and a method of the kernel. The machine code of V=4 shows vectorised loads.
    pub(crate) fn with_method(machine: &Machine, method: &str) -> Self {
        let lab = Self::new(machine).manifest("[1, 2, 4]", "[4, 1]");
        let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
        lab.project.write("kernel.toml", &format!("{manifest}{method}"));
        lab.project.write("k.cu", &format!("#pragma sass k<4> LDG.E.128 2\n{SOURCE}"));
        lab
    }

    /// Changes the machine.
    pub(crate) fn on(&self, machine: &Machine) {
        fs::write(&self.scenario, machine.text()).unwrap();
    }

    /// A folder with the layout of CUDA: the search for a toolchain finds it, and the stub compiler reads none of it.
    fn cuda(&self) {
        for file in [
            "lib64/libnvrtc.so.13",
            "lib64/libnvrtc-builtins.so.13.0",
            "include/cuda_runtime.h",
            "bin/nvdisasm",
            "bin/fatbinary",
        ] {
            self.project.write(&format!("cuda/{file}"), file);
            let path = self.project.root().join("cuda").join(file);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// A copy of the workspace with another home.
    pub(crate) fn anew(&self, name: &str) -> Self {
        let project = self.project.cloned(name).fresh_home(format!("{name}-home"));
        Lab { project, ..self.clone() }
    }

    /// Builds, and checks that the build succeeds.
    pub(crate) fn built(&self, words: &[&str]) -> Built {
        self.project.built(words)
    }

    /// Replaces a text that occurs once in the manifest.
    pub(crate) fn manifest(self, from: &str, to: &str) -> Self {
        self.project.edit("kernel.toml", from, to);
        self
    }

    /// The number of records in the home.
    pub(crate) fn records(&self) -> usize {
        let folders = fs::read_dir(self.project.home().join("evidence")).unwrap();
        let files = folders.flat_map(|f| fs::read_dir(f.unwrap().path()).unwrap());
        files.filter(|f| f.as_ref().unwrap().path().extension().is_some_and(|e| e == "json")).count()
    }

    /// Adds the evidence of this home, and its contents, to another home, without the results of other steps.
    pub(crate) fn give_evidence(&self, other: &Lab) {
        for part in ["evidence", "cas"] {
            copy(&self.project.home().join(part), &other.project.home().join(part));
        }
    }

    /// The only target of the report.
    pub(crate) fn target(&self) -> Value {
        self.project.report_value()["packages"][0]["kernels"][0]["targets"][0].clone()
    }

    /// The variant with the least median of cold times.
    pub(crate) fn fastest(&self) -> String {
        let times = self.target()["times"].as_array().unwrap().clone();
        let least =
            times.iter().min_by(|a, b| a["cold_ns"].as_f64().unwrap().total_cmp(&b["cold_ns"].as_f64().unwrap()));
        least.unwrap()["variant"].as_str().unwrap().to_string()
    }

    /// The fate and its reason, by method.
    pub(crate) fn fates(&self) -> BTreeMap<String, (String, String)> {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_string();
        let methods = self.target()["methods"].as_array().unwrap().clone();
        let fate = |m: &Value| (text(&m["attribution"]["fate"]), text(&m["attribution"]["because"]));
        methods.iter().map(|m| (text(&m["method"]), fate(m))).collect()
    }
}

/// Copies a folder into another one, without files that are there already.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false if to.exists() => {}
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// The champion of class `all`, and whether it is provisional.
#[track_caller]
pub(crate) fn champion(built: &Built) -> (String, bool) {
    let champions: Vec<&Value> = built.events("champion").collect();
    let [one] = champions[..] else { panic!("{} champions", champions.len()) };
    (one["variant"].as_str().unwrap().into(), one["provisional"].as_bool().unwrap())
}

/// Ids of the steps of a kind with this outcome.
pub(crate) fn steps(built: &Built, kind: &str, outcome: &str) -> BTreeSet<String> {
    let said = |s: &Value| {
        s["outcome"].as_str().map(str::to_string).or(s["outcome"].as_object().and_then(|o| o.keys().next().cloned()))
    };
    let fits = |s: &&Value| s["kind"] == kind && said(s).as_deref() == Some(outcome);
    built.finished().filter(fits).map(crate::project::id).collect()
}

/// The pairs steps with this outcome, as `big: V=1, V=2`. Which of two variants is A follows from their content, so their order in an id says nothing here.
pub(crate) fn paired(built: &Built, outcome: &str) -> BTreeSet<String> {
    let of = |id: &String| {
        let parts: Vec<&str> = id.split('/').collect();
        let against = parts.iter().position(|part| *part == "against").unwrap();
        let mut both = [parts[2], parts[against + 1]];
        both.sort_unstable();
        format!("{}: {}", parts[against - 1], both.join(", "))
    };
    let ids = steps(built, "pairs", outcome);
    let pairs: BTreeSet<String> = ids.iter().map(of).collect();
    assert_eq!(pairs.len(), ids.len(), "two variants have one comparison: {ids:?}");
    pairs
}

//! A workspace of any size, and a stub for worker processes that immediately returns a small result for every step, so that everything except compilers and
//! candidates is timed or tested. Shared by benches and tests.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kforge::config::{Environment, Settings};
use kforge::engine::{Execution, Job, RunError};
use kforge::ops::event::Silent;
use kforge::ops::session::build::PlanRequest;
use kforge::ops::session::evidence_policy::EvidencePolicy;
use kforge::ops::{Options, Session, Worker};
use kforge::plan::Goal;
use kforge::record::params::NullsObserved;
use kforge::record::{Determinism, FunctionFacts, Inspection, StepKind, VerifyObservation};
use kforge::step::RemoteExecutor;
use kforge::workspace::select::Selected;

/// Returns small results and counts them.
#[derive(Default)]
pub(crate) struct Stub {
    /// The number of steps that ran.
    pub(crate) ran: AtomicU64,
}

impl RemoteExecutor for &Stub {
    fn execute(&self, job: &Job<'_>) -> Result<Execution, RunError> {
        self.ran.fetch_add(1, Ordering::Relaxed);
        let failed = |e: String| RunError::failed(e);
        let key = job.key.to_string();
        let json = |value: serde_json::Value| value.to_string().into_bytes();
        let document =
            |value: Result<serde_json::Value, serde_json::Error>| value.map(json).map_err(|e| failed(e.to_string()));
        let outputs: Vec<(&str, Vec<u8>)> = match job.spec.kind {
            StepKind::Oracle => {
                let nulls = NullsObserved { candidates: BTreeMap::new() };
                vec![("expected", key.into_bytes()), ("nulls", document(serde_json::to_value(nulls))?)]
            }
            StepKind::Compile => vec![("binary", key.clone().into_bytes()), ("facts", key.into_bytes())],
            StepKind::Inspect => {
                let functions = vec![FunctionFacts { entry: key, ..FunctionFacts::default() }];
                let inspection =
                    Inspection { architectures: vec!["cpu".into()], functions, disassembled: false, refused: vec![] };
                vec![("inspection", document(serde_json::to_value(inspection))?)]
            }
            StepKind::Verify => {
                let observation = VerifyObservation {
                    emulated: true,
                    findings: vec![],
                    not_emulated: None,
                    not_launched: None,
                    fresh: None,
                    asked: 0,
                    trials: vec![],
                    determinism: Determinism::Stable,
                    unconfined: vec![],
                    ran_as: key,
                };
                vec![("observation", document(serde_json::to_value(observation))?)]
            }
            other => return Err(failed(format!("no stub for {other} steps"))),
        };
        let mut ran = Execution::default();
        for (name, bytes) in outputs {
            ran.outputs.insert(name.into(), job.blobs.put(&bytes).map_err(|e| failed(e.to_string()))?);
        }
        Ok(ran)
    }
}

/// The size of a workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Packages.
    pub(crate) packages: usize,
    /// Kernels per package, each with its own source and operator.
    pub(crate) kernels: usize,
}

/// Writes a workspace of packages that share a header folder.
pub(crate) fn write(root: &Path, size: Size) -> std::io::Result<()> {
    std::fs::create_dir_all(root.join("common"))?;
    std::fs::write(root.join("common/shared.h"), "#pragma once\n")?;
    std::fs::write(root.join("kernel.toml"), "[workspace]\nmembers = [\"p*\"]\n")?;
    for p in 0..size.packages {
        let folder = root.join(format!("p{p:04}"));
        std::fs::create_dir_all(folder.join("src"))?;
        std::fs::write(folder.join("kernel.toml"), manifest(p, size.kernels))?;
        std::fs::write(folder.join("src/own.h"), format!("// header of package {p}\n"))?;
        for k in 0..size.kernels {
            let text = format!(
                "#include \"own.h\"\n#include \"shared.h\"\n__global__ void twice(const float* x, float* y, int n) {{\n  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) y[i] = 2 * x[i];  // {p} {k}\n}}\n"
            );
            std::fs::write(folder.join(format!("src/k{k}.cu")), text)?;
        }
    }
    Ok(())
}

fn manifest(package: usize, kernels: usize) -> String {
    let mut text = format!(
        "[package]\nname = \"p{package:04}\"\nversion = \"0.1.0\"\n[dependencies]\ncommon = {{ path = \"../common\", include = \".\" }}\n[targets.cpu]\n"
    );
    for k in 0..kernels {
        let n = 64 + package * kernels + k;
        let _ = write!(
            text,
            "[operator.o{k}]\ndims = [\"n\"]\ninputs.x = {{ dtype = \"f32\", shape = [\"n\"] }}\noutputs.y = {{ dtype = \"f32\", shape = [\"n\"] }}\n\
             reference = {{ builtin = \"elementwise\", y = \"2 * x\" }}\ntolerance = {{ atol = 1e-6, rtol = 1e-6 }}\n[operator.o{k}.shapes]\nonly = {{ n = {n} }}\n\
             [kernel.k{k}]\noperator = \"o{k}\"\nsource = \"src/k{k}.cu\"\ntargets = [\"cpu\"]\n[kernel.k{k}.tune]\nBLOCK = [128, 256]\n\
             [[kernel.k{k}.launch]]\nentry = \"twice\"\ngrid = [\"ceil_div(n, BLOCK)\"]\nblock = [\"BLOCK\"]\nargs = [\"x\", \"y\", \"n\"]\n"
        );
    }
    text
}

/// A silent session in a folder, with this home and without a network.
pub(crate) fn session(cwd: &Path, home: &Path) -> Session {
    #[expect(clippy::disallowed_methods, reason = "it stands where a shell does, and hands PATH on")]
    let path = std::env::var("PATH").unwrap_or_default();
    let home = home.display().to_string();
    let environment = Environment::of([("KFORGE_HOME".into(), home), ("PATH".into(), path)]);
    let (settings, _) = Settings::load(cwd, &environment, &[]);
    let program = std::env::current_exe().expect("this program");
    Session {
        options: Options { offline: true, ..Options::default() },
        ..Session::new(cwd, Worker::Own(program), environment, settings, Arc::new(Silent))
    }
}

/// The request of a build to the last goal that stops at a failure and writes.
pub(crate) fn asked(selected: Selected, jobs: Option<i64>) -> PlanRequest {
    PlanRequest {
        selected,
        goal: Goal::Build,
        jobs,
        keep_going: false,
        remeasure: false,
        evidence: EvidencePolicy::default(),
        overlay: None,
        write: true,
        looks: false,
    }
}

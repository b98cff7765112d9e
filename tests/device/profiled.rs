//! Profiles, with a script in place of `ncu` that starts the given program and writes what `ncu` would write.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use kforge::harness::message::Response;
use kforge::record::profile::{ProfileObserved, ProfileParams};
use kforge::record::{Provenance, StepKind, Unknown};

use crate::lab::{Lab, Seen};

/// Reads its options as `ncu` does, records them, runs the program and then runs the commands that are appended.
const NCU: &str = r#"#!/bin/bash
here=${0%/*}
printf '%s\n' "$*" > "$here/asked"
while [ $# -gt 0 ]; do
  case $1 in
    --csv) shift ;;
    --log-file) log=$2; shift 2 ;;
    --launch-count) count=$2; shift 2 ;;
    --metrics) metrics=${2//,/ }; shift 2 ;;
    --*) shift 2 ;;
    *) break ;;
  esac
done
rows() {
  printf '==PROF== Connected to process 1 (%s)\n' "$1"
  names=; units=; cells=
  for metric in $metrics; do
    case $metric in
      *memory_dependency*|*pipe_fp32*) continue ;;
      gpu__time_duration.sum) unit=ns; cell=12,640 ;;
      *_bytes_*) unit=byte; cell=16,780,544 ;;
      *barrier*) unit=%; cell=n/a ;;
      *) unit=%; cell=28.66 ;;
    esac
    names+=",\"$metric\""; units+=",\"$unit\""; cells+=",\"$cell\""
  done
  printf '"ID","Kernel Name"%s\n"",""%s\n' "$names" "$units"
  for ((i = 0; i < $2; i++)); do printf '"%s","honest"%s\n' "$i" "$cells"; done
}
"#;

const NORMAL: &str = "\"$@\"\nrc=$?\nrows \"$1\" \"$count\" > \"$log\"\nexit $rc\n";

fn lab(does: &str) -> Lab {
    let lab = Lab::new();
    let ncu = lab.dir.path().join("ncu");
    fs::write(&ncu, format!("{NCU}{does}")).unwrap();
    fs::set_permissions(&ncu, fs::Permissions::from_mode(0o755)).unwrap();
    lab
}

impl Lab {
    fn profile(&self, entry: &str) -> Seen {
        let metrics = ["dram_read", "duration", "pipe_fp32", "stall_barrier", "stall_memory_dependency", "waves"];
        let metrics = metrics.map(String::from).into();
        let params = ProfileParams { arch: "sm_90a".into(), of: self.params(entry), metrics, protocol: 1 };
        self.run(StepKind::Profile, serde_json::to_value(&params).unwrap(), self.candidate(entry, ""))
    }
}

fn absent(seen: &Seen) -> String {
    assert!(seen.forgotten() && seen.verdict().is_none(), "{:?}", seen.response);
    let observed: ProfileObserved = seen.read("observation");
    assert!(observed.metrics.is_empty() && observed.missing.is_empty(), "{observed:?}");
    observed.absent.unwrap().to_string()
}

pub(crate) fn taken() {
    let lab = lab(NORMAL);
    let seen = lab.profile("honest");
    assert!(!seen.forgotten(), "{:?}", seen.response);
    let observed: ProfileObserved = seen.read("observation");
    let metrics: Vec<(&str, f64)> = observed.metrics.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(
        metrics,
        [("dram_read", 16_780_544.0), ("duration", 12_640.0), ("pipe_fp32", 28.66), ("waves", 28.66)],
        "{observed:?}"
    );
    let missing: Vec<&str> = observed.missing.keys().map(String::as_str).collect();
    assert_eq!((missing, &observed.absent), (vec!["stall_barrier", "stall_memory_dependency"], &None));
    let provenance: Provenance = seen.read("provenance");
    assert_eq!(provenance.device.to_string(), "NVIDIA Test (sm_90, driver 1)");
    let asked = fs::read_to_string(lab.dir.path().join("asked")).unwrap();
    assert!(asked.contains("--kernel-name regex:^(honest)$ --launch-skip 1 --launch-count 1 "), "{asked}");
    assert_eq!(lab.starts(), 1, "one fresh process");
    // A warm runner of another step is neither used nor lost.
    assert!(lab.verify("honest").observed().findings.is_empty());
    lab.profile("honest");
    assert!(lab.verify("honest").observed().findings.is_empty());
    assert_eq!(lab.starts(), 3);
}

pub(crate) fn unseen() {
    let refusal = "\"$@\"\necho '==ERROR== ERR_NVGPUCTRPERM - The user may not. See' > \"$log\"\n";
    let why = absent(&lab(refusal).profile("honest"));
    assert_eq!(why, "no counters: ERR_NVGPUCTRPERM - The user may not");
    let why = absent(&lab("kill -9 $$\n").profile("honest"));
    assert_eq!(why, "missing: `ncu`: the device's runner killed by signal 9 (SIGKILL)");
    let why = absent(&lab("\"$@\"\nkill -9 $$\n").profile("honest"));
    assert_eq!(why, "missing: `ncu`: it profiled 0 of 1 launches (killed by signal 9 (SIGKILL))");
    let why = absent(&lab("echo '==ERROR== Failed to parse options'\nexit 1\n").profile("honest"));
    assert!(why.contains("gave a malformed answer: ==ERROR== Failed to parse options"), "{why}");
    let why = absent(&lab("\"$@\"\nprintf '\"ID\",\"Ker' > \"$log\"\n").profile("honest"));
    assert!(why.contains("its output cannot be parsed: a cell does not end"), "{why}");
    let why = absent(&lab("\"$@\"\nrows x 2 > \"$log\"\n").profile("honest"));
    assert!(why.contains("it profiled 2 of 1 launches"), "{why}");
    // The kernel faults under the profiler.
    let why = absent(&lab(NORMAL).profile("illegal"));
    assert!(why.contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), "{why}");
}

pub(crate) fn hung() {
    let lab = Lab { seconds: 2, ..lab("tail -f /dev/null\n") };
    let why = absent(&lab.profile("honest"));
    assert!(why.contains("gave no answer within"), "{why}");
    assert_eq!(lab.starts(), 0);
}

pub(crate) fn without() {
    let seen = Lab::new().profile("honest");
    let why = matches!(&seen.response, Response::Unavailable { why } if why.contains("no `ncu` on this machine"));
    assert!(why, "{:?}", seen.response);
    let lab = lab(NORMAL);
    let mut params = lab.params("honest");
    params.launches.clear();
    let params = ProfileParams { arch: "sm_90a".into(), of: params, metrics: vec!["duration".into()], protocol: 1 };
    let seen = lab.run(StepKind::Profile, serde_json::to_value(&params).unwrap(), lab.candidate("honest", ""));
    let observed: ProfileObserved = seen.read("observation");
    assert_eq!(observed.absent, Some(Unknown::Missing("it launches no kernel".into())));
}

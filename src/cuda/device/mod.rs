//! NVIDIA devices: probing, verification and timing. Has the worker's side and the runner that holds a device's context; knows no plans or caches.
//!
//! | file | side | does |
//! |---|---|---|
//! | `probe`, `facts` | a child | finds devices |
//! | `driver`, `context`, `call`, `launch`, `tensor`, `own_kernels`, `timing` | runner | call the driver |
//! | `session`, `runner` | runner | answer requests with a context that stays open |
//! | `wire`, `exchange`, `fault` | both | messages, the exchange of bytes, the meaning of errors |
//! | `client` | worker | starts a runner, sends requests, kills it when its time is over |
//! | `confined`, `examine` | worker, children | what a process with a driver may do, and why a driver does not start in such a process |
//! | `rig` | worker | what the steps share |
//! | `run_limit` | worker | how long one run of a candidate may take |
//! | `inputs` | worker | inputs as bytes, made once for all variants |
//! | `buffers` | worker | contents of buffers before a run, checks after it |
//! | `verify`, `bench`, `pairs`, `baseline`, `profile`, `peaks` | worker | execute the steps |
//! | `read_back` | worker | outputs of launches, by sums and by bytes |
//! | `calls` | both | holds the memory of kernels in PyTorch and the clock that times their calls, in a process that runs no code of them |
//! | `in_torch` | worker | what processes with PyTorch need on a device: baselines, and kernels in PyTorch |
//! | `hosted` | both | verifies a kernel's own launcher, in a separate process that is trusted with nothing |
//! | `sanitize` | worker | verifies under Compute Sanitizer |
//! | `products` | both | computes large products for the oracle, in a separate process that never loads a candidate |
//! | `monitor` | worker | reads clocks, temperature, power |

mod baseline;
mod bench;
mod blocks;
mod buffers;
mod call;
mod calls;
mod client;
mod confined;
mod context;
mod driver;
mod examine;
mod exchange;
pub mod facts;
pub mod fault;
mod hosted;
mod in_torch;
mod launch;
mod read_back;
mod inputs;
mod monitor;
mod own_kernels;
mod pairs;
mod peaks;
mod probe;
mod products;
mod profile;
mod rig;
mod run_limit;
mod runner;
mod sanitize;
mod session;
mod tensor;
#[doc(hidden)]
pub mod testing;
mod timing;
mod verify;
mod wire;

use std::path::{Path, PathBuf};

pub use baseline::baseline;
pub use bench::bench;
pub use calls::{CallClock, GiverUp, Timed, call_clock_main};
pub use client::{is_starting, lock_path, resolve, warm, warm_up};
pub use examine::examine_driver_main;
pub use hosted::host_runner_main;
pub use in_torch::TorchDevice;
pub use own_kernels::checksum;
pub use pairs::pairs;
pub use peaks::peaks;
pub use probe::{probe, probe_main};
pub use products::{check_main as check_products_main, product_runner_main, products};
pub use profile::{CountersError, ValueError, counters, profile};
pub use runner::device_runner_main;
pub use verify::verify;

/// The name in a task's tools of the list of devices: a file that holds a [`facts::Probed`].
pub const TOOL: &str = "devices";

/// The list that the builds of a user share, in a folder of that user beside that file. A runner that does not start, or finds another device, removes it.
pub fn known_list(folder: &Path) -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    folder.join(format!("of-user-{user}")).join("known.json")
}

/// How long verifier and runner poll for each other's messages before they sleep. Most round trips take a few tenths of a millisecond, and sleeping would add
/// two wake-ups to each.
const AWAKE: std::time::Duration = std::time::Duration::from_micros(500);

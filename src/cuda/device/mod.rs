//! NVIDIA devices: found, verified on, and timed. Holds the worker's side and the runner that holds a device's context; no plans or caches.
//!
//! | file | side | does |
//! |---|---|---|
//! | `probe`, `facts` | a child | what devices there are |
//! | `driver`, `context`, `call`, `launch`, `tensor`, `own_kernels`, `timing` | runner | the driver's calls |
//! | `session`, `runner` | runner | answers requests with a context that stays |
//! | `wire`, `exchange`, `fault` | both | the messages, how bytes are exchanged, what errors mean |
//! | `client` | worker | starts a runner, sends requests, kills it when its time is over |
//! | `rig` | worker | what the steps have in common |
//! | `inputs` | worker | inputs as bytes, made once for all variants |
//! | `buffers` | worker | what buffers hold before, what must be true of them after |
//! | `verify`, `bench`, `pairs`, `profile`, `peaks` | worker | the steps |
//! | `read_back` | worker | what launches left, by sums and by bytes |
//! | `hosted` | both | what verify does with a kernel's own launcher, in a separate process that is trusted with nothing |
//! | `sanitize` | worker | what verify does under Compute Sanitizer |
//! | `products` | both | large products for the oracle, in a separate process that no candidate enters |
//! | `monitor` | worker | clocks, temperature, power |

mod bench;
mod buffers;
mod call;
mod client;
mod context;
mod driver;
mod exchange;
pub mod facts;
pub mod fault;
mod hosted;
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
mod runner;
mod sanitize;
mod session;
mod tensor;
#[doc(hidden)]
pub mod testing;
mod timing;
mod verify;
mod wire;

pub use bench::bench;
pub use client::{resolve, warm};
pub use hosted::host_runner_main;
pub use own_kernels::checksum;
pub use pairs::pairs;
pub use peaks::peaks;
pub use probe::{probe, probe_main};
pub use products::{check_main as check_products_main, product_runner_main, products};
pub use profile::{CountersError, ValueError, counters, profile};
pub use runner::device_runner_main;
pub use verify::verify;

/// The name under which a worker learns where the list of devices is: a file that holds a [`facts::Probed`].
pub const TOOL: &str = "devices";

/// How long verifier and runner stay awake for each other: most turns are a few tenths of a millisecond, and in each both would fall asleep and be woken.
const AWAKE: std::time::Duration = std::time::Duration::from_micros(500);

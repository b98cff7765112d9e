//! The fatbin step in a worker: from a cubin, and its PTX, to the container of both. The tool is called in `cuda`.

use kforge_harness::compilers::{Bounds, ToolSandbox, confined};
use kforge_harness::message::Response;
use kforge_harness::task::{self, Task};
use kforge_types::record::kind::fatbin::documents::{FATBIN, FatbinParams};
use kforge_types::record::params::PTX;

/// The name of the tool in a task's tools.
const TOOL: &str = "fatbinary";

/// Packs machine code.
pub fn run(task: &Task) -> Response {
    let run = |bounds: &Bounds| {
        let params: FatbinParams = task.params()?;
        let ptx = task.path(PTX).map(|_| task.read(PTX)).transpose()?;
        let within = ToolSandbox::of(task, bounds);
        let cubin = task.read("binary")?;
        let made = kforge_cuda::fatbin_within(&params.arch, &cubin, ptx.as_deref(), task.tool(TOOL)?, &within);
        task.write(FATBIN, &made.map_err(task::failed)?)?;
        Ok(task::done(if ptx.is_some() { "with PTX" } else { "" }, vec![]))
    };
    confined(task, run).unwrap_or_else(|response: Response| response)
}

//! A variant's launches with every address filled in, ready to be queued repeatedly. Knows arguments in C's layout, but not the contents of buffers.
#![expect(unsafe_code, reason = "kernels take addresses")]

use std::collections::BTreeMap;
use std::rc::Rc;

use super::call::{Parameter, Shape, launch};
use super::context::{Context, Function, Memory, Stream, set};
use super::fault::{During, Fault};
use super::tensor::encode;
use kforge_harness::arguments;
use kforge_types::model::bound::{Arg, KernelLaunch, Launch};
use kforge_types::model::grid::Room;
use kforge_types::model::limits::PORTABLE_CLUSTER;

/// The kernel's part of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The address on the device.
    pub(super) at: u64,
    /// The size in bytes.
    pub(super) bytes: u64,
}

/// Why launches cannot be prepared.
#[derive(Debug)]
pub(super) enum PrepareError {
    /// The driver's error.
    Fault(Fault),
    /// The launches name something that does not exist.
    Unknown(String),
}

impl From<Fault> for PrepareError {
    fn from(fault: Fault) -> Self {
        PrepareError::Fault(fault)
    }
}

enum Step {
    Kernel { function: Function, shape: Shape, values: Vec<Parameter>, during: String },
    Set { place: Place, byte: u8 },
}

/// Launches of one binary on one set of buffers.
pub(super) struct PreparedLaunches {
    steps: Vec<Step>,
    /// Arrays of addresses that arguments point to.
    _arrays: Vec<Memory>,
}

impl PreparedLaunches {
    /// Fills in every address.
    ///
    /// # Errors
    /// The driver's error, or a name that does not exist.
    pub(super) fn new(
        context: &Rc<Context>,
        launches: &[Launch],
        functions: &BTreeMap<String, Function>,
        place: impl Fn(&str) -> Option<Place>,
    ) -> Result<Self, PrepareError> {
        let find =
            |name: &str| place(name).ok_or_else(|| PrepareError::Unknown(format!("there is no buffer `{name}`")));
        let (mut steps, mut arrays) = (vec![], vec![]);
        for launch in launches {
            steps.push(match launch {
                Launch::Memset { buffer, value } => Step::Set { place: find(buffer)?, byte: *value },
                Launch::Kernel(kernel) => {
                    let function = functions.get(&kernel.entry).copied();
                    let unknown = || PrepareError::Unknown(format!("there is no entry `{}`", kernel.entry));
                    let function = function.ok_or_else(unknown)?;
                    if kernel.shared > 0 {
                        function.permit_shared(kernel.shared)?;
                    }
                    if kernel.cluster_blocks() > PORTABLE_CLUSTER {
                        function.permit_clusters()?;
                    }
                    let mut values = vec![];
                    let mut address = |arg: &Arg| -> Result<u64, PrepareError> {
                        Ok(match arg {
                            Arg::Pointer { buffer, offset } => find(buffer)?.at + offset,
                            Arg::Pointers(buffers) => {
                                let at: Vec<Place> = buffers.iter().map(|b| find(b)).collect::<Result<_, _>>()?;
                                let bytes: Vec<u8> = at.iter().flat_map(|place| place.at.to_le_bytes()).collect();
                                let array = Memory::new(context, bytes.len() as u64)?;
                                array.write(&bytes)?;
                                let at = array.at();
                                arrays.push(array);
                                at
                            }
                            _ => 0,
                        })
                    };
                    for arg in &kernel.args {
                        values.push(match arg {
                            Arg::Pointer { .. } | Arg::Pointers(_) => address(arg)?.into(),
                            Arg::TensorMap(map) => {
                                let during = format!("while launching `{}`", kernel.entry);
                                Parameter::words(encode(map, find(&map.buffer)?.at, &during)?)
                            }
                            by_value => Parameter::new(&arguments::bytes(by_value, &mut address)?),
                        });
                    }
                    let known = known(context, kernel, function)?;
                    let during = during(&known, function)?;
                    Step::Kernel { function, shape: shape(&known), values, during }
                }
            });
        }
        Ok(PreparedLaunches { steps, _arrays: arrays })
    }

    /// The number of driver calls for queueing the launches.
    pub(super) fn calls(&self) -> usize {
        self.steps.len()
    }

    /// Queues all launches, in order.
    pub(super) fn queue(&self, stream: &Stream) -> Result<(), Fault> {
        for step in &self.steps {
            match step {
                // SAFETY: inspection has checked against the binary that the number and sizes of arguments are those of the entry. Every address is of a buffer
                // of the set or of an array that `self` holds, which outlive the wait after queueing.
                Step::Kernel { function, shape, values, during } => unsafe {
                    launch(*function, *shape, values, stream, during)?;
                },
                // SAFETY: the range is a buffer of the set.
                Step::Set { place, byte } => unsafe { set(place.at, *byte, place.bytes, stream)? },
            }
        }
        Ok(())
    }
}

/// The launch with its grid on this device.
fn known(context: &Context, kernel: &KernelLaunch, function: Function) -> Result<KernelLaunch, Fault> {
    if kernel.open_grid.is_none() {
        return Ok(kernel.clone());
    }
    let threads = kernel.block.iter().map(|n| u64::from(*n)).product();
    let room = Room { processors: context.processors()?, occupancy: function.resident(threads, kernel.shared)? };
    // A driver refuses a grid that is empty or has incomplete clusters; this is the error that it reports.
    let grid = kernel.grid_in(room).map_err(|why| Fault {
        code: 1,
        name: "CUDA_ERROR_INVALID_VALUE".into(),
        text: why.to_string(),
        during: During::launching(format!("while launching `{}`", kernel.entry)),
    })?;
    Ok(KernelLaunch { grid, open_grid: None, ..kernel.clone() })
}

fn shape(kernel: &KernelLaunch) -> Shape {
    Shape {
        grid: kernel.grid,
        block: kernel.block,
        shared: u32::try_from(kernel.shared).unwrap_or(u32::MAX),
        cooperative: kernel.cooperative,
        cluster: kernel.cluster,
        pdl: kernel.pdl,
    }
}

/// The description of a launch for error messages, with its whole configuration.
fn during(kernel: &KernelLaunch, function: Function) -> Result<String, Fault> {
    let dims = |d: [u32; 3]| d.map(|n| n.to_string()).join(",");
    let mut asked = format!("grid {}, block {}", dims(kernel.grid), dims(kernel.block));
    if let Some(cluster) = kernel.cluster {
        asked += &format!(", clusters of {}", dims(cluster));
    }
    asked += &format!(", {} bytes of shared memory", kernel.shared);
    if kernel.cooperative {
        let threads = kernel.block.iter().map(|n| u64::from(*n)).product();
        let resident = function.resident(threads, kernel.shared)?;
        asked += &format!(", cooperative: {resident} blocks of it fit a multiprocessor");
    }
    Ok(format!("while launching `{}` ({asked})", kernel.entry))
}

/// The symbol of a variable from its name in C++: `c_w` is itself, `ops::c_w` is `_ZN3ops3c_wE` (Itanium C++ ABI, 5.1.2 "nested names").
pub(super) fn symbol(spelt: &str) -> String {
    let parts: Vec<&str> = spelt.trim_start_matches("::").split("::").collect();
    match parts[..] {
        [one] => one.to_string(),
        _ => format!("_ZN{}E", parts.iter().map(|part| format!("{}{part}", part.len())).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_name_spaces_have_the_symbol_of_the_abi() {
        assert_eq!(symbol("c_w"), "c_w");
        assert_eq!(symbol("::c_w"), "c_w");
        assert_eq!(symbol("ops::detail::c_w"), "_ZN3ops6detail3c_wE");
    }
}

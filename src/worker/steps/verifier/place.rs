//! Where a kernel in PyTorch runs: on the processor, on a device, or, in tests, on the processor in the place of a device. Starts its processes, each in its turn
//! at the device. Calls nothing.

use std::time::Duration;

use kforge_cuda::device::{TorchDevice, products};
use kforge_engine::lock::Lock;
use kforge_harness::candidate::{Area, TorchKernel, TorchProcess};
use kforge_harness::confine;
use kforge_harness::machine::Machine;
use kforge_harness::message::Response;
use kforge_harness::oracle::Source;
use kforge_harness::task::Task;
use kforge_types::model::Problem;
use kforge_types::record::Provenance;
use kforge_types::record::observation::TORCH_CPU;

/// Where a kernel in PyTorch runs.
pub(super) struct Place {
    /// Where its tensors lie, if not in the verifier's memory.
    on: Option<Machine>,
    /// The device whose turn a process waits for.
    device: Option<TorchDevice>,
    /// What is recorded of an observation there; none on `cpu`.
    pub(super) provenance: Option<Provenance>,
    /// What the system could not do to confine a process there.
    pub(super) unconfined: Vec<String>,
}

/// How a step uses the device in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Others may use it as well, unless they measure.
    Shared,
    /// Nobody else uses it.
    Alone,
}

/// A process in its turn at the device. The turn ends when the second part is dropped.
pub(super) type Started = (TorchProcess, Option<Lock>);

impl Place {
    /// The processor, in the verifier's memory.
    pub(super) fn processor() -> Self {
        Place { on: None, device: None, provenance: None, unconfined: confine::missing_here().missing }
    }

    /// A device.
    pub(super) fn device(device: TorchDevice, protocol: u32) -> Self {
        let provenance = Some(device.provenance(protocol));
        Place { on: Some(device.machine(true)), device: Some(device), provenance, ..Self::processor() }
    }

    /// The processor in the place of the device that the provenance names: tensors lie apart from the verifier's memory, as on a device.
    #[cfg(any(debug_assertions, feature = "virtual-device"))]
    pub(super) fn stand_in(provenance: Provenance) -> Self {
        let env = vec![("CUDA_VISIBLE_DEVICES", String::new())];
        let machine = Machine { device: "cpu", devices: vec![], read: vec![], env, confined: true };
        Place { on: Some(machine), provenance: Some(provenance), ..Self::processor() }
    }

    /// Whether a verdict on what runs here is one on `cpu`.
    pub(super) fn is_processor(&self) -> bool {
        self.on.is_none()
    }

    /// What an observation says of how the kernel was run.
    pub(super) fn ran_as(&self) -> String {
        self.provenance.as_ref().map_or_else(|| TORCH_CPU.into(), |provenance| provenance.device.to_string())
    }

    /// The same at the end of a sentence.
    pub(super) fn said(&self) -> String {
        match &self.provenance {
            None => format!(", {TORCH_CPU}"),
            Some(provenance) => format!(" in PyTorch on {}", provenance.device.product),
        }
    }

    /// What gives expected values. Large products are computed on the device, if there is one.
    pub(super) fn source<'s>(&self, task: &'s Task, problem: &'s Problem) -> Source<'s> {
        let source = Source::new(task, problem);
        if self.device.is_some() { source.with_products(products(task)) } else { source }
    }

    /// The device, if there is one.
    pub(super) fn torch_device(&self) -> Option<&TorchDevice> {
        self.device.as_ref()
    }

    /// Waits for a turn at the device, if there is one. The turn ends when what is returned is dropped.
    pub(super) fn turn(&self, task: &Task, how: Turn) -> Result<Option<Lock>, Response> {
        let taken = self.device.as_ref().map(|device| match how {
            Turn::Shared => device.turn(task),
            Turn::Alone => device.alone(task),
        });
        Ok(taken.transpose()?.flatten())
    }

    /// Starts a process, waits for its turn at the device, and starts the device there. On a device whose driver does not start in a confined process, the
    /// process is unconfined if the user permits that.
    pub(super) fn start(
        &mut self,
        task: &Task,
        problem: &Problem,
        kernel: &TorchKernel<'_>,
        memory: &[Area<'_>],
        (limit, turn): (Duration, Turn),
    ) -> Result<Started, Response> {
        let begin =
            |on: Option<&Machine>| TorchProcess::start(task, problem, &TorchKernel { on, ..*kernel }, memory, limit);
        let mut process = begin(self.on.as_ref())?;
        let Some(machine) = &self.on else { return Ok((process, None)) };
        // Importing PyTorch takes seconds and uses no device.
        let turn = self.turn(task, turn)?;
        if let Some(response) = task.not_launched() {
            return Err(response);
        }
        match (process.device(limit), &self.device) {
            (Ok(()), _) => Ok((process, turn)),
            (Err(Response::Unavailable { why }), Some(device)) if machine.confined && task.allow_unconfined => {
                drop(process);
                let free = device.machine(false);
                let mut process = begin(Some(&free))?;
                process.device(limit)?;
                self.unconfined.push(format!("the kernel's process does not start confined: {why}"));
                self.on = Some(free);
                Ok((process, turn))
            }
            (Err(Response::Unavailable { why }), Some(_)) if machine.confined => {
                let more = "--allow-unconfined permits a kernel to run unconfined, if its confinement is the cause";
                Err(Response::Unavailable { why: format!("{why} ({more})") })
            }
            (Err(response), _) => Err(response),
        }
    }
}

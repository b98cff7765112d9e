//! `kforge worker --product-runner START`: holds a context that has loaded only kforge's own product kernel, takes matrices from the exchange and puts their
//! product into it. Knows matrices, but not what they are for.

#![expect(unsafe_code, reason = "a kernel takes addresses")]

use std::ffi::OsString;
use std::io::{self, BufRead};
use std::process::ExitCode;
use std::rc::Rc;

use super::super::call::{Parameter, Shape, launch};
use super::super::context::{Context, Function, Memory, Module, Stream};
use super::super::driver;
use super::super::exchange::RunnerExchange;
use super::super::runner::Answers;
use super::super::session::Trouble;
use super::super::wire::{Answer, Start};
use super::{Ask, MatrixLayout};
use kforge_harness::runner::started;

/// `kernel.cu` as PTX, which any driver compiles for its device.
const TEXT: &str = include_str!("kernel.ptx");
/// Rows and columns that one block computes.
const TILE: u64 = 64;
/// Rows of blocks per launch, so that each launch ends within a fraction of a second on a slow device.
const AT_ONCE: u64 = 16;
const DURING: &str = "while a product was made for the oracle";

/// The main function of the process.
pub fn product_runner_main(args: &[OsString]) -> ExitCode {
    started(args, serve)
}

fn serve(start: Start) -> Result<(), String> {
    let mut answers = Answers::open(&start)?;
    let mut maker = None;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|e| format!("cannot read the request: {e}"))?;
        let met = match &mut maker {
            None => Maker::new(&start).map(|made| {
                maker = Some(made);
                Answer::Done
            }),
            Some(maker) => match serde_json::from_str(&line) {
                Ok(ask) => maker.meet(&ask),
                Err(e) => Err(Trouble::Refused(format!("not a request: {e}"))),
            },
        };
        answers.say(&match met {
            Ok(answer) => answer,
            Err(Trouble::Refused(why)) => Answer::Refused { why },
            Err(Trouble::Fault(fault)) => Answer::Fault(fault),
        })?;
    }
    Ok(())
}

struct Maker {
    /// The left and the right matrix.
    given: [Option<Memory>; 2],
    kernel: Function,
    stream: Stream,
    handed: RunnerExchange,
    _module: Module,
    context: Rc<Context>,
}

impl Maker {
    fn new(start: &Start) -> Result<Self, Trouble> {
        driver::load(start.libcuda.as_deref()).map_err(Trouble::Refused)?;
        let handed = RunnerExchange::open(&start.exchange)
            .map_err(|e| Trouble::Refused(format!("the exchange cannot be opened: {e}")))?;
        let device = driver::devices()?.into_iter().next();
        let context = Context::new(device.ok_or_else(|| Trouble::Refused("there is no device".into()))?)?;
        let mut text = TEXT.as_bytes().to_vec();
        text.push(0);
        let module = Module::new(&context, &text, "while kforge's own kernel of products was loaded")?;
        let (kernel, stream) = (module.function("kforge_product")?, Stream::new(&context)?);
        Ok(Maker { given: [None, None], kernel, stream, handed, _module: module, context })
    }

    fn meet(&mut self, ask: &Ask) -> Result<Answer, Trouble> {
        match *ask {
            Ask::Take { left, bytes } => {
                let given = self.handed.take(bytes).map_err(|e| Trouble::Refused(e.to_string()))?;
                let place = &mut self.given[usize::from(!left)];
                // The previous matrix is freed first, because there may be no room for both.
                *place = None;
                place.insert(Memory::new(&self.context, bytes)?).write(&given)?;
                Ok(Answer::Done)
            }
            Ask::Multiply { m, k, n, left, right } => self.multiply((m, k, n), left, right),
        }
    }

    fn multiply(&self, (m, k, n): (u64, u64, u64), left: MatrixLayout, right: MatrixLayout) -> Result<Answer, Trouble> {
        let refused = |why: &str| Trouble::Refused(why.to_string());
        let [Some(a), Some(b)] = &self.given else { return Err(refused("there are no matrices")) };
        let span = |rows: u64, columns: u64, lies: MatrixLayout| {
            let last = (rows.checked_sub(1)?).checked_mul(lies.row)?;
            last.checked_add(columns.checked_sub(1)?.checked_mul(lies.column)?)?.checked_add(1)?.checked_mul(8)
        };
        if span(m, k, left).is_none_or(|bytes| bytes > a.bytes()) || span(k, n, right).is_none_or(|b_| b_ > b.bytes()) {
            return Err(refused("the matrices are smaller than the request says"));
        }
        let bytes = m.checked_mul(n).and_then(|count| count.checked_mul(8)).ok_or_else(|| refused("too many"))?;
        let c = Memory::new(&self.context, bytes)?;
        let (across, down) = (n.div_ceil(TILE), m.div_ceil(TILE));
        let across = u32::try_from(across).map_err(|_| refused("too many columns"))?;
        for from in (0..down).step_by(AT_ONCE as usize) {
            let rows = AT_ONCE.min(down - from) as u32;
            let shape = Shape { grid: [across, rows, 1], block: [256, 1, 1], ..Shape::default() };
            let values = [a.at(), left.row, left.column, b.at(), right.row, right.column, c.at(), m, k, n, from * TILE];
            let values = values.map(Parameter::from);
            // SAFETY: the parameters are those in `kernel.cu`. The matrices are within their memory, as checked above, and the product has room for every
            // element. All of them live until the stream is done.
            unsafe { launch(self.kernel, shape, &values, &self.stream, DURING) }?;
        }
        self.stream.synchronize(DURING)?;
        let size = usize::try_from(bytes).map_err(|_| refused("too many"))?;
        let mut made = vec![0; size];
        c.read(&mut made)?;
        self.handed.put(&made).map_err(|e| Trouble::Refused(e.to_string()))?;
        Ok(Answer::Bytes { bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_of_the_kernel_and_asks_no_more_of_a_driver_than_it_needs() {
        assert!(TEXT.contains(".entry kforge_product(") && TEXT.contains("fma.rn.f64"));
        assert!(TEXT.starts_with(".version 6.3\n.target sm_75"), "{}", &TEXT[..40]);
    }
}

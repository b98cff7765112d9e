//! `kforge worker --call-clock START`: holds the memory of a kernel's tensors and the clock that times its calls. It runs no code of a kernel and loads no kernel
//! of its own. Knows words and bytes; does not know which values are correct.
//!
//! | a call | why |
//! |---|---|
//! | outputs are poisoned, and the kernel's process waits for the word `GO` without sleeping, before the clock is read | neither is work of the kernel |
//! | the clock is read, then the inputs are copied to the shared memory, then `GO` is written | before the clock is read, the inputs exist nowhere that the kernel's process reaches |
//! | when the word `DONE` appears, the outputs are copied to memory of this process, then the clock is read | whatever the kernel still does is too late for what counts |

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::super::exchange::RunnerExchange;
use super::super::runner::Answers;
use super::super::session::Trouble;
use super::super::wire::Answer;
use super::super::{AWAKE, driver};
use super::descriptors;
use super::store::{InFiles, OnDevice, Store};
use super::{Ask, ClockAnswer, ClockStart};
use kforge_foundation::process::look_for;
use kforge_harness::candidate::{DONE, GIVEN_UP, GO, READY};
use kforge_harness::runner::started;

/// How often a wait looks at the time and at whether anybody still waits.
const LOOK: u32 = 64;

/// The main function of the process.
pub fn call_clock_main(args: &[OsString]) -> ExitCode {
    started(args, serve)
}

fn serve(start: ClockStart) -> Result<(), String> {
    let mut answers = Answers::open(&start.start)?;
    let mut keeper: Option<Keeper> = None;
    let mut lines = io::stdin().lock().lines();
    loop {
        look_for(io::stdin().as_fd(), AWAKE);
        let Some(line) = lines.next() else { return Ok(()) };
        let line = line.map_err(|e| format!("cannot read the request: {e}"))?;
        let met = match &mut keeper {
            None => Keeper::new(&start).map(|(made, ready)| {
                keeper = Some(made);
                ready
            }),
            Some(keeper) => match serde_json::from_str(&line) {
                Ok(ask) => keeper.meet(&ask),
                Err(e) => Err(Trouble::Refused(format!("not a request: {e}"))),
            },
        };
        let answer = match met {
            Ok(answer) => answer,
            Err(Trouble::Refused(why)) => ClockAnswer::Device(Answer::Refused { why }),
            Err(Trouble::Fault(fault)) => ClockAnswer::Device(Answer::Fault(fault)),
        };
        answers.say_any(&answer)?;
    }
}

struct Keeper {
    store: Box<dyn Store>,
    page: Page,
    exchange: RunnerExchange,
}

impl Keeper {
    fn new(start: &ClockStart) -> Result<(Self, ClockAnswer), Trouble> {
        let io = |what: &'static str| move |e: io::Error| Trouble::Refused(format!("{what}: {e}"));
        let store: Box<dyn Store> = match start.on_device {
            true => {
                driver::load(start.start.libcuda.as_deref()).map_err(Trouble::Refused)?;
                Box::new(OnDevice::new(&start.tensors)?)
            }
            false => Box::new(InFiles::new(&start.tensors)?),
        };
        let page = File::options().read(true).write(true).open(&start.page).map_err(io("the page cannot be opened"))?;
        let exchange = RunnerExchange::open(&start.start.exchange).map_err(io("the exchange cannot be opened"))?;
        let socket = descriptors::inherited(start.socket);
        let shared = store.shared();
        let sizes = shared.iter().map(|(_, bytes)| *bytes).collect();
        let all: Vec<_> = shared.into_iter().map(|(descriptor, _)| descriptor).collect();
        descriptors::send(&socket, &all).map_err(io("the memory cannot be passed on"))?;
        Ok((Keeper { store, page: Page(page), exchange }, ClockAnswer::Shared { sizes }))
    }

    fn meet(&mut self, ask: &Ask) -> Result<ClockAnswer, Trouble> {
        let io = |e: io::Error| Trouble::Refused(e.to_string());
        let give = |contents: Vec<u8>| -> Result<ClockAnswer, Trouble> {
            self.exchange.put(&contents).map_err(io)?;
            Ok(ClockAnswer::Device(Answer::Bytes { bytes: contents.len() as u64 }))
        };
        match *ask {
            Ask::Stage { tensor, bytes } => {
                let contents = self.exchange.take(bytes).map_err(io)?;
                self.store.stage(tensor, &contents)?;
                Ok(ClockAnswer::Device(Answer::Done))
            }
            Ask::Taken { tensor } => give(self.store.taken(tensor)?),
            Ask::Left { tensor } => give(self.store.left(tensor)?),
            Ask::Time { number, poison, limit_ms } => {
                let until = Instant::now() + Duration::from_millis(limit_ms);
                Ok(match self.time(number, poison, until)? {
                    Some(took) => ClockAnswer::Device(Answer::Times { ns: vec![took.as_nanos() as f64] }),
                    None => ClockAnswer::GivenUp,
                })
            }
        }
    }

    /// The time of one call, or none if it did not end.
    fn time(&mut self, number: u64, poison: u8, until: Instant) -> Result<Option<Duration>, Trouble> {
        self.store.poison(poison)?;
        if !self.page.comes(READY, number, until)? {
            return Ok(None);
        }
        let began = Instant::now();
        self.store.give()?;
        self.page.set(GO, number)?;
        if !self.page.comes(DONE, number, until)? {
            return Ok(None);
        }
        self.store.take()?;
        Ok(Some(began.elapsed()))
    }
}

/// The words that both processes see. They are read and written by system calls, which order them.
struct Page(File);

impl Page {
    fn get(&self, word: usize) -> Result<u64, Trouble> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 8 * word as u64).map_err(|e| Trouble::Refused(e.to_string()))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn set(&self, word: usize, value: u64) -> Result<(), Trouble> {
        self.0.write_all_at(&value.to_ne_bytes(), 8 * word as u64).map_err(|e| Trouble::Refused(e.to_string()))
    }

    /// Waits without sleeping until a word has that value. False if the time is up, or nobody waits for the call any more.
    fn comes(&self, word: usize, value: u64, until: Instant) -> Result<bool, Trouble> {
        loop {
            for _ in 0..LOOK {
                if self.get(word)? == value {
                    return Ok(true);
                }
            }
            if self.get(GIVEN_UP)? == value || Instant::now() >= until {
                // A call that has ended is given up afterwards.
                return Ok(self.get(word)? == value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TensorMemory;
    use super::*;
    use kforge_harness::candidate::WORDS;

    fn page() -> Page {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 * WORDS as u64).unwrap();
        Page(file)
    }

    fn of<T>(result: Result<T, Trouble>) -> T {
        result.unwrap_or_else(|_| panic!("refused"))
    }

    /// A process that answers call 1: it waits for `GO`, sees the input, and writes an output.
    #[test]
    fn a_time_begins_before_the_inputs_are_shared_and_ends_when_the_outputs_are_taken() {
        let tensors = [(true, false), (false, true)].map(|(read, written)| TensorMemory { bytes: 1, read, written });
        let store = of(InFiles::new(&tensors));
        let files: Vec<File> =
            store.shared().iter().map(|(fd, _)| File::from(fd.try_clone_to_owned().unwrap())).collect();
        let (page, other) = (page(), tempfile::NamedTempFile::new().unwrap());
        let theirs = Page(page.0.try_clone().unwrap());
        let exchange = RunnerExchange::open(&super::super::super::wire::ExchangeAddress::Path(other.path().into()));
        let mut keeper = Keeper { store: Box::new(store), page, exchange: exchange.unwrap() };
        of(keeper.store.stage(0, b"i"));
        let until = Instant::now() + Duration::from_secs(20);
        let call = std::thread::spawn(move || {
            let read = |file: &File| {
                let mut byte = [0];
                file.read_exact_at(&mut byte, 0).unwrap();
                byte[0]
            };
            let before = read(&files[0]);
            of(theirs.set(READY, 1));
            assert!(of(theirs.comes(GO, 1, until)));
            std::thread::sleep(Duration::from_millis(20));
            let seen = (before, read(&files[0]), read(&files[1]));
            files[1].write_all_at(b"o", 0).unwrap();
            of(theirs.set(DONE, 1));
            seen
        });
        let took = of(keeper.time(1, 7, until)).unwrap();
        assert_eq!(
            call.join().unwrap(),
            (0, b'i', 7),
            "nothing before the word, then the input, and a poisoned output"
        );
        assert!(took >= Duration::from_millis(20) && of(keeper.store.taken(1)) == b"o");
    }

    #[test]
    fn a_call_that_nobody_waits_for_and_one_that_is_late_have_no_time() {
        let page = page();
        let soon = Instant::now() + Duration::from_millis(5);
        assert!(!of(page.comes(DONE, 1, soon)));
        of(page.set(GIVEN_UP, 2));
        assert!(!of(page.comes(DONE, 2, Instant::now() + Duration::from_secs(60))));
        of(page.set(DONE, 3));
        assert!(of(page.comes(DONE, 3, Instant::now())));
    }
}

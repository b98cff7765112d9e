//! The trials of a kernel in Triton: all runs of several trials in one process of the interpreter, because its start takes longer than most runs. Knows the
//! order of work; what is compared, and with what, is in `step`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::buffers::{self, BufferFile};
use super::step::{Run, Verifier, runs};
use kforge_harness::fresh::{FreshTrials, NotComputed};
use kforge_harness::message::{Response, ThreadOrder};
use kforge_harness::oracle::{Source, TrialValues};
use kforge_harness::task::failed;
use kforge_types::record::params::{Expected, Trial};

/// The most bytes of buffers of the trials of one process, unless a single trial has more.
const MOST: u64 = 128 << 20;

/// The runs of a trial, by the order of programs.
fn orders(trial: &Trial) -> Vec<Run> {
    let named = |run: Run| {
        let said = match run.order {
            ThreadOrder::Forward => "",
            ThreadOrder::Reversed => ", programs reversed",
            ThreadOrder::Random(_) => ", programs shuffled",
        };
        Run { said, ..run }
    };
    runs(trial).into_iter().map(named).collect()
}

/// A trial with its values.
type Held = (Trial, Arc<TrialValues>);

impl Verifier<'_> {
    /// Runs every trial, and then the fresh ones, each once.
    pub(super) fn together(&mut self) -> Result<(), Response> {
        let (task, params) = (self.task, self.params);
        let source = Source::new(task, &params.problem);
        let of_run = buffers::bytes(&params.problem, &params.workspaces).max(1);
        let at_once = |runs: usize| usize::try_from(MOST / of_run / runs as u64).unwrap_or(usize::MAX).max(1);
        for trials in params.trials.chunks(at_once(Trial::RUNS)) {
            if self.stop {
                return Ok(());
            }
            let held = trials.iter().map(|trial| {
                let expected: Expected = task.document(&format!("expected:{}", trial.trial))?;
                Ok((trial.clone(), source.whole(trial, &expected)?))
            });
            let held = held.collect::<Result<Vec<Held>, Response>>()?;
            let each: Vec<(&Held, Vec<Run>)> = held.iter().map(|held| (held, orders(&held.0))).collect();
            self.several(&each, false)?;
        }
        if self.stop {
            return Ok(());
        }
        let drawn = FreshTrials::draw(task, params)?;
        let held = drawn.trials().iter().enumerate().map(|(at, trial)| Ok((trial.clone(), drawn.held(at, &source)?)));
        let held = match held.collect::<Result<Vec<Held>, NotComputed>>() {
            Ok(held) => held,
            Err(why) => return self.observer.left_out(&why),
        };
        self.observer.drawn(&drawn);
        let once = |(at, held): (usize, &Held)| -> Vec<Run> {
            let run = runs(&held.0).into_iter().nth(at % Trial::RUNS);
            run.into_iter().map(|run| Run { said: "", ..run }).collect()
        };
        let each: Vec<(&Held, Vec<Run>)> = held.iter().enumerate().map(|(at, held)| (held, once((at, held)))).collect();
        for some in each.chunks(at_once(1)) {
            if !self.stop {
                self.several(some, true)?;
            }
        }
        Ok(())
    }

    /// Runs these trials in one process. Nobody may learn the inputs of `fresh` ones.
    fn several(&mut self, trials: &[(&Held, Vec<Run>)], fresh: bool) -> Result<(), Response> {
        let params = self.params;
        let mut placed: Vec<(&Trial, &Run, Vec<BufferFile<'_>>)> = vec![];
        for ((trial, held), runs) in trials {
            let mut sealed = BTreeMap::new();
            for run in runs {
                let made = buffers::make(&params.problem, &params.workspaces, &held.0, run.manner, &mut sealed);
                placed.push((trial, run, made.map_err(|e| failed(format!("cannot make buffers: {e}")))?));
            }
        }
        let all: Vec<_> = placed.iter().map(|(_, run, placed)| (*run, placed)).collect();
        let mut heard = self.run(&all, false)?;
        let whole = heard.whole_runs();
        if fresh {
            heard.printed.clear();
            self.observer.within(placed.get(whole).map(|(trial, ..)| trial.trial));
        }
        self.hear(&heard);
        for (_, _, buffers) in placed.iter().take(whole + 1) {
            self.damage(buffers, heard.not_emulated.is_empty())?;
        }
        self.stop |= whole < placed.len();
        let mut at = 0;
        for ((trial, held), runs) in trials {
            let ended: Vec<_> = all.iter().take(whole).skip(at).take(runs.len()).copied().collect();
            at += runs.len();
            if !ended.is_empty() {
                self.compare(trial, &held.0, &held.1, &ended)?;
            }
        }
        Ok(())
    }
}

//! Figures of the service since it started, and how Prometheus reads them.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::api::VerdictWord;

/// The upper ends of the buckets of seconds.
const BUCKETS: [f64; 12] = [0.05, 0.1, 0.2, 0.4, 0.6, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0];

/// A number that grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How long something took, as a histogram.
#[derive(Debug, Default)]
pub struct Seconds {
    buckets: [Counter; BUCKETS.len()],
    count: Counter,
    micros: AtomicU64,
}

impl Seconds {
    /// Adds a time.
    pub fn add(&self, seconds: f64) {
        if let Some(at) = BUCKETS.iter().position(|end| seconds <= *end) {
            self.buckets[at].add();
        }
        self.count.add();
        self.micros.fetch_add((seconds * 1e6) as u64, Ordering::Relaxed);
    }

    /// The mean; none if there is no time yet.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count.get();
        (count > 0).then(|| self.micros.load(Ordering::Relaxed) as f64 / 1e6 / count as f64)
    }

    /// Writes it in the format of Prometheus.
    pub fn write(&self, out: &mut String, name: &str, help: &str) {
        head(out, name, help, "histogram");
        let mut below = 0;
        for (end, bucket) in BUCKETS.iter().zip(&self.buckets) {
            below += bucket.get();
            line(out, format_args!("{name}_bucket{{le=\"{end}\"}} {below}"));
        }
        line(out, format_args!("{name}_bucket{{le=\"+Inf\"}} {}", self.count.get()));
        line(out, format_args!("{name}_sum {}", self.micros.load(Ordering::Relaxed) as f64 / 1e6));
        line(out, format_args!("{name}_count {}", self.count.get()));
    }
}

/// The figures.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Tasks that were accepted.
    pub accepted: Counter,
    /// Tasks whose results were known.
    pub known: Counter,
    /// Tasks that joined an evaluation that had begun or waited.
    pub joined: Counter,
    /// Tasks that were cancelled.
    pub cancelled: Counter,
    /// Tasks that were refused because the queue was full or the client had too many.
    pub refused: Counter,
    /// Evaluations that were repeated because a worker was killed during them.
    pub repeated: Counter,
    /// Times that the journal could not be tidied or written again.
    pub untidied: Counter,
    /// Evaluations that ended, by verdict: pass, fail, unknown.
    verdicts: [Counter; 3],
    /// How long they took.
    pub seconds: Seconds,
}

impl Metrics {
    /// The evaluations that ended with a verdict.
    pub fn of(&self, verdict: VerdictWord) -> &Counter {
        &self.verdicts[verdict as usize]
    }

    /// Writes them in the format of Prometheus.
    pub(super) fn write(&self, out: &mut String) {
        for (name, help, counter) in [
            ("kforge_tasks_accepted_total", "Tasks that were accepted.", &self.accepted),
            ("kforge_tasks_known_total", "Accepted tasks whose results were known.", &self.known),
            ("kforge_tasks_joined_total", "Accepted tasks that joined an evaluation.", &self.joined),
            ("kforge_tasks_cancelled_total", "Tasks that were cancelled.", &self.cancelled),
            ("kforge_tasks_refused_total", "Tasks that were refused because of a limit.", &self.refused),
            (
                "kforge_evaluations_repeated_total",
                "Evaluations that were repeated because a worker was killed.",
                &self.repeated,
            ),
            ("kforge_journal_errors_total", "Times that the journal could not be written again.", &self.untidied),
        ] {
            head(out, name, help, "counter");
            line(out, format_args!("{name} {}", counter.get()));
        }
        head(out, "kforge_evaluations_total", "Evaluations that ended, by verdict.", "counter");
        for verdict in [VerdictWord::Pass, VerdictWord::Fail, VerdictWord::Unknown] {
            let (name, value) = (verdict.name(), self.of(verdict).get());
            line(out, format_args!("kforge_evaluations_total{{verdict=\"{name}\"}} {value}"));
        }
        self.seconds.write(out, "kforge_evaluation_seconds", "How long evaluations took, from their start.");
    }
}

/// Writes a value that rises and falls.
pub(crate) fn gauge(out: &mut String, name: &str, help: &str, value: u64) {
    head(out, name, help, "gauge");
    line(out, format_args!("{name} {value}"));
}

/// Writes a value that grows.
pub(crate) fn counter(out: &mut String, name: &str, help: &str, value: u64) {
    head(out, name, help, "counter");
    line(out, format_args!("{name} {value}"));
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    line(out, format_args!("# HELP {name} {help}"));
    line(out, format_args!("# TYPE {name} {kind}"));
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_count_what_is_at_most_their_end() {
        let seconds = Seconds::default();
        [0.04, 0.05, 0.3, 1000.0].into_iter().for_each(|s| seconds.add(s));
        let mut out = String::new();
        seconds.write(&mut out, "x", "Help.");
        for wanted in [
            "x_bucket{le=\"0.05\"} 2",
            "x_bucket{le=\"0.4\"} 3",
            "x_bucket{le=\"300\"} 3",
            "x_bucket{le=\"+Inf\"} 4",
            "x_count 4",
        ] {
            assert!(out.lines().any(|line| line == wanted), "{wanted}: {out}");
        }
    }
}

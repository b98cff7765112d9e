//! The progress bar: how far a build is, how long it still takes if that is known, and how much of a download is here. Knows the library that draws; does not
//! know what is built.
//!
//! One bar serves all. A download within a build, which goes on meanwhile, stands at the end of the line in place of the time that is left. The time counts
//! down by itself between two events of the build.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::screen::{self, Screen};
use super::words::bytes;
use kforge_foundation::base::unhidden;
use kforge_pipeline::report::fit::shortened;

/// A terminal with fewer columns gets a short bar: names of steps need the room more.
const NARROW: usize = 100;

/// The columns of a name that say which step it is: variant, target and shape. Where a line has less, the words around the name give way.
const LEAST: usize = 28;

/// Times below this are not shown: the end comes before they are read.
const SHORT: Duration = Duration::from_secs(3);

/// What stands at the end of the line.
#[derive(Debug, Default, Clone, Copy)]
struct Aside {
    /// Bytes that are here, and all bytes.
    download: Option<(u64, u64)>,
    /// When the build is expected to end.
    due: Option<Instant>,
}

impl Aside {
    fn text(&self, now: Instant) -> String {
        match (self.download, self.due) {
            (Some((here, total)), _) if here < total => format!("{} of {}", bytes(here), bytes(total)),
            (_, Some(due)) => left(due.saturating_duration_since(now)),
            _ => String::new(),
        }
    }
}

/// The time that is left, in words; nothing if it is short.
fn left(time: Duration) -> String {
    match time.as_secs() {
        _ if time < SHORT => String::new(),
        s if s < 100 => format!("about {s} s left"),
        s if s < 100 * 60 => format!("about {} min left", s.div_ceil(60)),
        s => format!("about {} h left", s.div_ceil(3600)),
    }
}

/// What is running: words before the name of an item, the name, and words after it. They may hold anything.
#[derive(Debug, Default, Clone)]
pub struct Running {
    /// `verifying `.
    pub before: String,
    /// `p/k/V=1/cpu/s/verify`.
    pub name: String,
    /// ` and 2 more`.
    pub after: String,
}

impl Running {
    /// On one line of at most `room` columns. Variant, target and shape stand at the end of a name, so its middle is left out.
    fn fitted(&self, room: usize) -> String {
        let [before, name, after] = [&self.before, &self.name, &self.after].map(|text| unhidden(text));
        let rest = |around: &[&str]| room.saturating_sub(around.iter().map(|text| text.chars().count()).sum());
        let least = LEAST.min(name.chars().count());
        if name.is_empty() {
            return shortened(&format!("{before}{after}"), room, 6);
        }
        let around = [[before.as_str(), after.as_str()], ["", &after], ["", ""]];
        let [before, after] = around.into_iter().find(|around| rest(around) >= least).unwrap_or(["", ""]);
        format!("{before}{}{after}", shortened(&name, rest(&[before, after]), 1))
    }
}

/// A progress bar on standard error.
pub(super) struct Bar {
    bar: ProgressBar,
    /// Its own columns.
    size: usize,
    aside: Arc<Mutex<Aside>>,
    running: Running,
    /// Whether it shows a build, or another piece of work that is counted in items.
    counts: bool,
    /// Whether it is drawn again each second.
    ticks: bool,
}

impl Bar {
    /// A bar for a terminal of that width. Hidden until the first item, so that commands that build nothing show none.
    pub(super) fn new(width: Option<usize>) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let aside: Arc<Mutex<Aside>> = Arc::default();
        let shown = aside.clone();
        let size = if width.is_some_and(|width| width < NARROW) { 8 } else { 24 };
        let template = format!("{{prefix:>12.cyan.bold}} [{{bar:{size}}}] {{pos}}/{{len}} {{wide_msg}} {{aside}}");
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let text = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let aside = *shown.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = out.write_str(&aside.text(Instant::now()));
        };
        bar.set_style(style.with_key("aside", text).progress_chars("=> "));
        Bar { bar, size, aside, running: Running::default(), counts: false, ticks: false }
    }

    /// Prints without disturbing the bar.
    pub(super) fn suspend(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// Shows the verb, the number of ended items, the total, and what is running.
    pub(super) fn shows(&mut self, verb: &'static str, (ended, total): (u64, u64), running: Running) {
        self.counts = true;
        let is_first = self.bar.length() == Some(0);
        if self.bar.is_finished() {
            // Earlier work cleared the bar; without a reset it would stay hidden.
            self.bar.reset();
        }
        self.bar.set_prefix(verb);
        self.bar.set_length(total);
        self.bar.set_position(ended);
        self.running = running;
        self.fit();
        if is_first {
            // Shown only now: a bar that is drawn before its length is set reads `0/0`.
            self.bar.set_draw_target(target());
        }
    }

    /// Fits what is running into the room that the rest of the line leaves.
    fn fit(&self) {
        let aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner).text(Instant::now());
        let length = self.bar.length().unwrap_or(0);
        let counts = format!("{}/{length}", self.bar.position());
        // The parts of the template, with what stands between them.
        let taken = 12 + " [] ".len() + self.size + counts.len() + " ".len() + " ".len() + aside.chars().count();
        self.bar.set_message(self.running.fitted(screen::columns_of_line().saturating_sub(taken)));
    }

    /// How long the work still takes; none if that is not known.
    pub(super) fn takes(&mut self, left: Option<Duration>) {
        let due = left.map(|left| Instant::now() + left);
        self.aside.lock().unwrap_or_else(PoisonError::into_inner).due = due;
        self.fit();
        if due.is_some() && !self.ticks {
            self.ticks = true;
            self.bar.enable_steady_tick(Duration::from_secs(1));
        }
    }

    /// How much of a download is here.
    pub(super) fn downloads(&mut self, here: u64, total: u64) {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner).download = Some((here, total));
        if self.counts {
            self.fit();
            return self.bar.tick();
        }
        // In mebibytes, because the bar counts items.
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        match here < total {
            true => {
                let unit = Running { before: "MiB".into(), ..Running::default() };
                self.shows("Downloading", (mib(here).min(mib(total)), mib(total)), unit);
                self.counts = false;
            }
            false => self.clear(),
        }
    }

    /// Removes the bar.
    pub(super) fn clear(&mut self) {
        (self.counts, self.ticks) = (false, false);
        *self.aside.lock().unwrap_or_else(PoisonError::into_inner) = Aside::default();
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }
}

/// Where a bar is drawn: on standard error, if that is a terminal.
fn target() -> ProgressDrawTarget {
    match Screen::of_standard_error() {
        Some(screen) => ProgressDrawTarget::term_like_with_hz(Box::new(screen), 10),
        None => ProgressDrawTarget::hidden(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_is_told_in_round_words_and_not_if_it_is_short() {
        let of = |seconds: u64| left(Duration::from_secs(seconds));
        assert_eq!([of(0), of(2)], ["", ""]);
        assert_eq!([of(3), of(99)], ["about 3 s left", "about 99 s left"]);
        assert_eq!([of(100), of(3600), of(6000)], ["about 2 min left", "about 60 min left", "about 2 h left"]);
    }

    #[test]
    fn a_download_stands_in_place_of_the_time_until_it_is_complete() {
        let now = Instant::now();
        let due = Some(now + Duration::from_secs(40));
        let of = |download| Aside { download, due }.text(now);
        assert_eq!(of(Some((1 << 20, 3 << 20))), "1.0 MiB of 3.0 MiB");
        assert_eq!(of(Some((3 << 20, 3 << 20))), "about 40 s left");
        assert_eq!(of(None), "about 40 s left");
        assert_eq!(Aside::default().text(now), "");
    }

    #[test]
    fn a_name_without_room_keeps_its_end_which_says_which_step_it_is() {
        let of = |name: &str| Running { before: "verifying ".into(), name: name.into(), after: " and 1 more".into() };
        let step = of("quickstart/rms_norm/BLOCK=128,VEC=4,SHUFFLE=true/cpu/even/verify");
        assert_eq!(
            step.fitted(90),
            "verifying quickstart/rms_norm/BLOCK=128,VEC=4,SHUFFLE=true/cpu/even/verify and 1 more"
        );
        assert_eq!(step.fitted(51), "verifying quic…FFLE=true/cpu/even/verify and 1 more");
        // The words around it give way.
        assert_eq!(step.fitted(48), "quicks…4,SHUFFLE=true/cpu/even/verify and 1 more");
        assert_eq!(step.fitted(34), "quick…SHUFFLE=true/cpu/even/verify");
        assert_eq!(step.fitted(20), "qui…/cpu/even/verify");
        assert_eq!(of("a\u{202e}b").fitted(80), "verifying a\\u{202e}b and 1 more");
        let words = Running { before: "12 tokens; 3 s p/k, 4 s p/l".into(), ..Running::default() };
        assert_eq!(
            (words.fitted(30), words.fitted(16)),
            ("12 tokens; 3 s p/k, 4 s p/l".into(), "12 tokens; 3 s …".into())
        );
    }
}

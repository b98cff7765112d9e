//! Everything that kforge prints: status lines and diagnostics to standard error, results and JSON lines to standard output. A closed pipe is not an error.
//! Texts may hold what others wrote, such as names in an artifact. Whatever a terminal would obey in them is escaped here, and only here.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::bar::{Bar, Running};
use anstyle::{AnsiColor, Style};
use kforge_foundation::base::render::{Look, render};
use kforge_foundation::base::{Diagnostic, Severity, unhidden};
use kforge_pipeline::report::fit::fit;
use kforge_types::record::event::Event;

const VERB: Style = AnsiColor::Green.on_default().bold();
const WARN: Style = AnsiColor::Yellow.on_default().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// How much is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volume {
    /// Errors only.
    Quiet,
    /// Also what kforge does, and the results.
    Normal,
    /// Also the reasons.
    Verbose,
    /// Also the output of tools.
    Everything,
}

/// The settings of a console.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// How much is printed.
    pub volume: Volume,
    /// Whether events are printed to standard output as JSON lines.
    pub json: bool,
    /// Whether diagnostics are printed there also. They are events, and lines beside the result of a command that sends no other events.
    pub diagnostics_as_json: bool,
    /// `auto`, `always` or `never`, as (always, never).
    pub color: (bool, bool),
    /// The same for the progress bar.
    pub progress: (bool, bool),
}

/// A rendered diagnostic with its sentences wrapped to a width. Excerpts of sources keep their lines.
fn prose(rendered: &str, width: Option<usize>) -> String {
    let is_prose = |line: &str| {
        let plain = anstream::adapter::strip_str(line).to_string();
        let plain = plain.trim_start();
        plain.starts_with("= ") || plain.starts_with("error") || plain.starts_with("warning")
    };
    rendered.split_inclusive('\n').map(|l| if is_prose(l) { fit(l, width, 8) } else { l.to_string() }).collect()
}

/// Whether a terminal keeps a text readable under these parameters of a style. Messages may hold styles, so what hides a text is no style.
fn is_readable(parameters: &str) -> bool {
    let is_one = |one: &str| matches!(one, "" | "0" | "1" | "2" | "3" | "4" | "22" | "23" | "24" | "39");
    let is_colour = |one: &str| one.parse().is_ok_and(|code: u8| matches!(code, 31..=36 | 91..=96));
    parameters.split(';').all(|one| is_one(one) || is_colour(one))
}

/// The same, but styles (colours and weights) stay.
fn styled_harmless(styled: &str) -> String {
    let mut out = String::with_capacity(styled.len());
    let mut rest = styled;
    while let Some(at) = rest.find("\u{1b}[") {
        let parameters = &rest[at + 2..];
        let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(parameters.len());
        let is_style = parameters[end..].starts_with('m') && is_readable(&parameters[..end]);
        let taken = if is_style { at + 2 + end + 1 } else { at + 2 };
        out += &unhidden(&rest[..at]);
        out += &if taken > at + 2 { rest[at..taken].to_string() } else { unhidden(&rest[at..taken]) };
        rest = &rest[taken..];
    }
    out + &unhidden(rest)
}

/// The columns of the terminal that standard error writes to.
fn columns() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stderr()).map(|(width, _)| usize::from(width.0))
}

/// The only printer.
pub struct Console {
    manner: Manner,
    color: bool,
    bar: Mutex<Option<Bar>>,
    said: Mutex<Vec<String>>,
    broken: AtomicBool,
    unwritten: Mutex<Option<std::io::Error>>,
}

impl Console {
    /// Creates a console. `plain` means that the environment asks for no color (`NO_COLOR`, `TERM=dumb`).
    pub fn new(manner: Manner, plain: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let color = manner.color.0 || (!manner.color.1 && terminal && !plain);
        let show = manner.volume > Volume::Quiet && (manner.progress.0 || (!manner.progress.1 && terminal && !plain));
        let bar = show.then(|| Bar::new(columns()));
        Console {
            manner,
            color,
            bar: Mutex::new(bar),
            said: Mutex::default(),
            broken: AtomicBool::new(false),
            unwritten: Mutex::default(),
        }
    }

    /// A console with the same settings that has printed nothing and sends no events, for work that only prepares another command.
    pub fn another(&self) -> Self {
        Console::new(Manner { json: false, diagnostics_as_json: false, ..self.manner }, !self.color)
    }

    /// Whether events are printed as JSON.
    pub fn json(&self) -> bool {
        self.manner.json
    }

    /// Whether only errors are shown.
    pub fn quiet(&self) -> bool {
        self.manner.volume == Volume::Quiet
    }

    /// Whether reasons are shown.
    pub fn verbose(&self) -> bool {
        self.manner.volume >= Volume::Verbose
    }

    /// Whether the tools' own output is shown.
    pub fn everything(&self) -> bool {
        self.manner.volume == Volume::Everything
    }

    /// The width of the terminal that standard error writes to. None for a pipe or a file, whose reader wraps lines itself.
    pub fn width(&self) -> Option<usize> {
        columns().filter(|width| *width >= 40)
    }

    /// A status line: the verb is right-aligned and green.
    pub fn status(&self, verb: &str, text: &str) {
        if self.manner.volume > Volume::Quiet {
            let room = 12usize.saturating_sub(verb.chars().count());
            let line = format!("{:room$}{VERB}{verb}{VERB:#} {}\n", "", unhidden(text));
            self.err(&fit(&line, self.width(), 13 - room.min(13)));
        }
    }

    /// Prints text with ANSI styles to standard error, wrapped to the width of the terminal.
    pub fn fitted(&self, styled: &str) {
        self.err(&fit(styled, self.width(), 4));
    }

    /// A warning in one line. The same warning is printed once.
    pub fn warn(&self, text: &str) {
        let styled = format!("{WARN}warning{WARN:#}: {}\n", unhidden(text));
        // Several plans of one command may each find the same.
        if !self.said().contains(&styled) {
            self.complain(&styled, self.manner.volume > Volume::Quiet);
        }
    }

    /// An error in one line.
    pub fn error(&self, text: &str) {
        self.complain(&format!("{ERROR}error{ERROR:#}: {}\n", unhidden(text)), true);
    }

    /// Records a message, and prints it if `is_heard`.
    fn complain(&self, styled: &str, is_heard: bool) {
        if let Ok(mut said) = self.said.lock() {
            said.push(styled.to_string());
        }
        if is_heard {
            self.fitted(styled);
        }
    }

    /// All warnings, errors and diagnostics so far, with styles, including those that were not printed.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().map(|said| said.clone()).unwrap_or_default()
    }

    /// A diagnostic: as text and as an event.
    pub fn diagnostic(&self, diagnostic: &Diagnostic) {
        let text = render(diagnostic, Look { colour: true, width: self.width() });
        if let Ok(mut said) = self.said.lock() {
            said.push(text.clone());
        }
        if diagnostic.severity == Severity::Error || self.manner.volume > Volume::Quiet {
            self.err(&prose(&text, self.width()));
        }
        if self.manner.diagnostics_as_json {
            self.line(&Event::Diagnostic {
                severity: diagnostic.severity,
                code: diagnostic.code.into(),
                message: diagnostic.message.clone(),
                rendered: render(diagnostic, Look::default()),
                place: diagnostic.position().map(|(file, line, column)| (file.name.clone(), line, column)),
            });
        }
    }

    /// Prints an event as JSON if events are enabled.
    pub fn event(&self, event: &Event) {
        if self.manner.json {
            self.line(event);
        }
    }

    fn line(&self, event: &Event) {
        if let Ok(line) = serde_json::to_string(event) {
            self.out(&format!("{line}\n"));
        }
    }

    /// Prints text with ANSI styles to standard error without disturbing the progress bar.
    pub fn err(&self, styled: &str) {
        let text = styled_harmless(styled);
        let text = if self.color { text } else { anstream::adapter::strip_str(&text).to_string() };
        let write = || {
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
        };
        match self.bar.lock().ok().as_deref() {
            Some(Some(bar)) => bar.suspend(write),
            _ => write(),
        }
    }

    /// Prints text to standard output, with ANSI styles if standard output is a terminal.
    pub fn out(&self, styled: &str) {
        let is_terminal = std::io::stdout().is_terminal();
        let color = self.manner.color.0 || (!self.manner.color.1 && is_terminal && self.color);
        let text = if is_terminal { &styled_harmless(styled) } else { styled };
        match color {
            true => self.write(text),
            false => self.write(&anstream::adapter::strip_str(text).to_string()),
        }
    }

    /// Whether nobody reads standard output any more, or it cannot be written.
    pub fn is_closed(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Why standard output could not be written, if it could not. A closed pipe is no reason. Returns it once.
    pub fn unwritten(&self) -> Option<std::io::Error> {
        self.unwritten.lock().ok()?.take()
    }

    /// Writes the text unchanged.
    fn write(&self, text: &str) {
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        let write = || {
            let mut out = std::io::stdout().lock();
            if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                // Nothing more is written. A reader that has closed the pipe wants no more, which is not an error.
                self.broken.store(true, Ordering::Relaxed);
                if error.kind() != std::io::ErrorKind::BrokenPipe
                    && let Ok(mut unwritten) = self.unwritten.lock()
                {
                    *unwritten = Some(error);
                }
            }
        };
        match self.bar.lock().ok().as_deref() {
            Some(Some(bar)) => bar.suspend(write),
            _ => write(),
        }
    }

    /// Prints a source that others wrote to standard output, byte for byte. On a terminal, where control characters would take effect, they are escaped.
    pub fn source(&self, text: &str) {
        if std::io::stdout().is_terminal() {
            return self.write(&unhidden(text));
        }
        self.write(text);
    }

    /// Prints text to standard output, wrapped to the terminal's width if standard output is a terminal.
    pub fn out_fitted(&self, styled: &str) {
        let width = if std::io::stdout().is_terminal() { self.width() } else { None };
        self.out(&fit(styled, width, 4));
    }

    /// Updates the progress bar: the verb, the number of ended items, the total, and what is running.
    pub fn progress(&self, verb: &'static str, ended: u64, total: u64, running: Running) {
        self.with_bar(|bar| {
            if total > 0 {
                bar.shows(verb, (ended, total), running);
            }
        });
    }

    /// Says in the progress bar how long the work still takes; none if that is not known.
    pub fn left(&self, left: Option<Duration>) {
        self.with_bar(|bar| bar.takes(left));
    }

    /// Says in the progress bar how much of a download is here.
    pub fn downloaded(&self, bytes: u64, total: u64) {
        self.with_bar(|bar| bar.downloads(bytes, total));
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        self.with_bar(Bar::clear);
    }

    fn with_bar(&self, with: impl FnOnce(&mut Bar)) {
        if let Ok(mut bar) = self.bar.lock()
            && let Some(bar) = bar.as_mut()
        {
            with(bar);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_a_source_do_not_act_on_a_terminal() {
        let shown = unhidden("// \u{1b}[2Jx\r\n\ty\u{9b}z\u{e9}\n");
        assert_eq!(shown, "// \\u{1b}[2Jx\\u{d}\n\ty\\u{9b}z\u{e9}\n");
        assert_eq!(unhidden("a\u{202e}b\u{2066}c\u{200f}"), "a\\u{202e}b\\u{2066}c\\u{200f}");
    }

    #[test]
    fn of_what_is_printed_only_styles_act_on_a_terminal() {
        let styled = format!("{ERROR}error{ERROR:#}: a\u{1b}[2J\u{1b}]0;x\u{7}b \u{1b}[");
        let expected = format!("{ERROR}error{ERROR:#}: a\\u{{1b}}[2J\\u{{1b}}]0;x\\u{{7}}b \\u{{1b}}[");
        assert_eq!(styled_harmless(&styled), expected);
        assert_eq!(styled_harmless("\u{1b}[8mx\u{1b}[0;30my"), "\\u{1b}[8mx\\u{1b}[0;30my", "what would hide a text");
        assert_eq!(styled_harmless("\u{1b}[1;31mx\u{1b}[0m\u{1b}[31"), "\u{1b}[1;31mx\u{1b}[0m\\u{1b}[31");
    }
}

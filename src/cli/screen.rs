//! Standard error as the terminal on which the progress bar is drawn. Knows the sequences that move a cursor; does not know what is drawn.
//!
//! The bar leaves the last columns of its line free. A terminal shows Ctrl-C as `^C` where the cursor stands, which is the end of the bar. In a line without
//! room for it the cursor would go to the next line, and the bar that is then removed would be that line: the bar itself would stay.

use std::io::{self, IsTerminal, Write};

use indicatif::TermLike;
use terminal_size::terminal_size_of;

/// Columns that the bar leaves free: those of `^C`, and one so that the cursor stays in the line.
const FREE: u16 = 3;

/// A terminal that is narrower than it is by the columns that stay free.
#[derive(Debug)]
pub(super) struct Screen(());

impl Screen {
    /// That of standard error; none if it is no terminal.
    pub(super) fn of_standard_error() -> Option<Self> {
        io::stderr().is_terminal().then_some(Screen(()))
    }

    fn moves(&self, columns_or_lines: usize, to: char) -> io::Result<()> {
        match columns_or_lines {
            0 => Ok(()),
            n => self.write_str(&format!("\u{1b}[{n}{to}")),
        }
    }
}

/// The columns of a line that the bar may take.
fn room(columns: u16) -> u16 {
    columns.saturating_sub(FREE).max(1)
}

/// The columns that a line of the bar may take now.
pub(super) fn columns_of_line() -> usize {
    usize::from(room(terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0)))
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        u16::try_from(columns_of_line()).unwrap_or(u16::MAX)
    }

    fn height(&self) -> u16 {
        terminal_size_of(io::stderr()).map_or(24, |(_, height)| height.0)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.moves(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.moves(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.moves(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.moves(n, 'D')
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        self.write_str(&format!("{s}\n"))
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        io::stderr().lock().write_all(s.as_bytes())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write_str("\r\u{1b}[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_fits_behind_the_bar() {
        assert_eq!((room(80), room(40), room(2)), (77, 37, 1));
    }
}

//! The table of lines of a kernel in Triton: which line of a file each line of the text is that the interpreter runs. Knows no kernel.

/// The lines of a package's files from which the text came that Triton's interpreter runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceLines {
    /// Each file by its name in the package, with the file's line of each line of that text.
    pub triton: Vec<(String, Vec<u32>)>,
}

/// In an offset, the bits of the line; the number of the file is above them.
const LINE_BITS: u32 = 20;

/// The first line of a table.
const TABLE: &str = "lines of sources";

impl SourceLines {
    /// The offset of a line of the text, counted from one, of the file at that position.
    pub fn offset(file: usize, line: u32) -> u32 {
        ((file as u32) << LINE_BITS) | line
    }

    /// The table as text: a line for each file, with its name and the numbers.
    pub fn to_text(&self) -> String {
        let mut text = format!("{TABLE}\n");
        for (file, lines) in &self.triton {
            let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
            text += &format!("{}\t{}\n", plain(file), lines.join(" "));
        }
        text
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.strip_prefix(TABLE)?.strip_prefix('\n')?;
        let of = |line: &str| {
            let (file, numbers) = line.split_once('\t')?;
            let numbers = numbers.split(' ').filter(|number| !number.is_empty()).map(|number| number.parse().ok());
            Some((file.to_owned(), numbers.collect::<Option<_>>()?))
        };
        Some(SourceLines { triton: text.lines().map(of).collect::<Option<_>>()? })
    }

    pub(super) fn find(&self, offset: u32) -> Option<(String, u32)> {
        let (file, lines) = self.triton.get((offset >> LINE_BITS) as usize)?;
        let line = lines.get((offset % (1 << LINE_BITS)).checked_sub(1)? as usize)?;
        Some((plain(file), *line))
    }
}

/// The most characters of a file name that are shown.
const LONGEST: usize = 300;

/// A file name that is safe to show: `#line` lets a source set any name, including colors and line breaks.
pub(super) fn plain(file: &str) -> String {
    file.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect()
}

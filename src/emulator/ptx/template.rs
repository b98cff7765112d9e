//! Reads the text of a template: scopes, declarations of registers, predicates, instructions and their operands. Knows PTX's grammar; not its instructions.

/// A step of a template.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// `{`
    Open,
    /// `}`
    Close,
    /// `.reg .b32 a, r<4>;`
    Registers {
        /// The type, without its dot.
        of: String,
        /// The names, each of an array by itself.
        names: Vec<String>,
    },
    /// An instruction.
    Instruction(Instruction),
    /// `again:`
    Label(String),
}

/// `@!p ld.global.f32 %0, [%1+4];`
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Instruction {
    /// The predicate, and whether it is negated.
    pub(super) guard: Option<(bool, String)>,
    /// The operation with its modifiers and types: `ld.global.f32`.
    pub(super) operation: String,
    /// Its operands, in order.
    pub(super) operands: Vec<Operand>,
}

/// An operand of an instruction.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    /// A register, special register or constant by its name.
    Name(String),
    /// An operand of the statement by its number.
    Argument(usize),
    /// An integer, as its low 64 bits.
    Integer(u64),
    /// `0f3F800000`: the bits of an f32.
    Single(u32),
    /// `0d...` or `1.5`: the bits of an f64.
    Double(u64),
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `[a + 4]`: the terms of a sum.
    Memory(Vec<Operand>),
    /// `!p`
    Not(Box<Operand>),
    /// `d|p`
    Pair(Box<Operand>, Box<Operand>),
    /// `_`
    Sink,
}

/// Why a template cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unread {
    /// A directive that is PTX, but not emulated in a statement: `.pragma`.
    Construct(String),
    /// An instruction whose operands are malformed, by its operation.
    Instruction(String),
    /// What is no PTX.
    Text,
}

/// How many registers one declaration of an array may make.
const MOST_REGISTERS: usize = 1024;

/// Reads a template.
pub(super) fn parse(text: &str) -> Result<Vec<Item>, Unread> {
    // A number of each copy of the statement, which keeps labels apart; those here are local to each.
    let text = without_comments(text).replace("%=", "_");
    let (mut items, mut depth) = (Vec::new(), 0u32);
    let mut at = Reader { rest: &text };
    loop {
        at.space();
        if at.rest.is_empty() {
            break;
        }
        if at.take(';') {
            continue;
        }
        if at.take('{') {
            depth += 1;
            items.push(Item::Open);
        } else if at.take('}') {
            depth = depth.checked_sub(1).ok_or(Unread::Text)?;
            items.push(Item::Close);
        } else if at.rest.starts_with('.') {
            items.push(at.directive()?);
        } else {
            items.push(at.instruction()?);
        }
    }
    if depth == 0 { Ok(items) } else { Err(Unread::Text) }
}

fn without_comments(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        out += &rest[..at];
        out.push(' ');
        let comment = &rest[at..];
        let end = if comment.starts_with("//") { comment.find('\n') } else { comment[2..].find("*/").map(|n| n + 4) };
        rest = end.map_or("", |end| &comment[end..]);
    }
    out + rest
}

/// Where a label before an instruction ends: at a colon that is not one of the two in `shared::cta`.
fn label_end(operation: &str) -> Option<usize> {
    let bytes = operation.as_bytes();
    let at = bytes.iter().position(|b| *b == b':').filter(|at| bytes.get(at + 1) != Some(&b':'))?;
    is_label(&operation[..at]).then_some(at)
}

fn is_label(name: &str) -> bool {
    let other = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$'));
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.contains(other)
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: char) -> bool {
        self.space();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn run(&mut self, of: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !of(c)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        run
    }

    fn name(&mut self) -> Option<&'a str> {
        self.space();
        let start = self.rest;
        if start.starts_with('%') {
            // `%%tid` of a template with operands is `%tid`.
            self.rest = start.trim_start_matches('%');
        }
        let name = self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'));
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            self.rest = start;
            return None;
        }
        let percent = start.starts_with('%');
        let dotted = percent && [".x", ".y", ".z", ".w"].iter().any(|axis| self.rest.starts_with(axis));
        let length = name.len() + if dotted { 2 } else { 0 };
        let skipped = start.len() - start.trim_start_matches('%').len();
        self.rest = &start[skipped + length..];
        // With its one percent sign.
        Some(if percent { &start[skipped - 1..skipped + length] } else { &start[..length] })
    }

    fn directive(&mut self) -> Result<Item, Unread> {
        let word = self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
        if word != ".reg" {
            return Err(Unread::Construct(word.to_owned()));
        }
        self.space();
        let of = self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
        let of =
            of.strip_prefix('.').filter(|of| !of.contains('.')).ok_or(Unread::Construct(".reg".into()))?.to_owned();
        let mut names = Vec::new();
        loop {
            let name = self.name().ok_or(Unread::Construct(".reg".into()))?.to_owned();
            if self.take('<') {
                let count = self.run(|c| c.is_ascii_digit()).parse::<usize>().ok().filter(|n| *n <= MOST_REGISTERS);
                let count = count.filter(|_| self.take('>')).ok_or(Unread::Construct(".reg".into()))?;
                names.extend((0..count).map(|n| format!("{name}{n}")));
            } else {
                names.push(name);
            }
            if !self.take(',') {
                break;
            }
        }
        if self.take(';') { Ok(Item::Registers { of, names }) } else { Err(Unread::Construct(".reg".into())) }
    }

    fn instruction(&mut self) -> Result<Item, Unread> {
        let mut guard = None;
        if self.take('@') {
            let negated = self.take('!');
            guard = Some((negated, self.name().ok_or(Unread::Text)?.to_owned()));
            self.space();
        }
        let start = self.rest;
        let operation = self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '$' | '%'));
        if let Some(at) = label_end(operation).filter(|_| guard.is_none()) {
            self.rest = &start[at + 1..];
            return Ok(Item::Label(operation[..at].to_owned()));
        }
        self.space();
        if guard.is_none() && is_label(operation) && self.take(':') {
            return Ok(Item::Label(operation.to_owned()));
        }
        if !operation.starts_with(|c: char| c.is_ascii_alphabetic()) || operation.contains(['$', '%']) {
            return Err(Unread::Text);
        }
        let mut operands = Vec::new();
        let malformed = || Unread::Instruction(operation.to_owned());
        while !self.rest.is_empty() && !self.take(';') {
            if !operands.is_empty() && !self.take(',') {
                return Err(malformed());
            }
            operands.push(self.operand(true).ok_or_else(malformed)?);
            self.space();
        }
        Ok(Item::Instruction(Instruction { guard, operation: operation.to_owned(), operands }))
    }

    /// An operand; `outer` if it may have parts.
    fn operand(&mut self, outer: bool) -> Option<Operand> {
        if outer && self.take('{') {
            let mut parts = Vec::new();
            loop {
                parts.push(self.operand(false)?);
                if self.take('}') {
                    return Some(Operand::Vector(parts));
                }
                if !self.take(',') {
                    return None;
                }
            }
        }
        if outer && self.take('[') {
            let mut terms = vec![self.operand(false)?];
            loop {
                if self.take(']') {
                    return Some(Operand::Memory(terms));
                }
                if !self.take('+') && !self.rest.starts_with('-') {
                    return None;
                }
                terms.push(self.operand(false)?);
            }
        }
        if outer && self.take('!') {
            return Some(Operand::Not(Box::new(self.operand(false)?)));
        }
        let first = self.atom()?;
        if outer && self.take('|') {
            return Some(Operand::Pair(Box::new(first), Box::new(self.operand(false)?)));
        }
        Some(first)
    }

    fn atom(&mut self) -> Option<Operand> {
        self.space();
        if let Some(after) = self.rest.strip_prefix('%')
            && after.starts_with(|c: char| c.is_ascii_digit())
        {
            self.rest = after;
            return self.run(|c| c.is_ascii_digit()).parse().ok().map(Operand::Argument);
        }
        if let Some(name) = self.name() {
            return Some(if name == "_" { Operand::Sink } else { Operand::Name(name.to_owned()) });
        }
        self.number()
    }

    fn number(&mut self) -> Option<Operand> {
        let negative = self.take('-');
        self.space();
        let run = self.run(|c| c.is_ascii_alphanumeric() || c == '.');
        let digits = run.strip_suffix(['U', 'u']).unwrap_or(run);
        let bits = |prefix: [&str; 2], length: usize| {
            let hex = prefix.iter().find_map(|p| run.strip_prefix(p))?;
            (hex.len() == length).then(|| u64::from_str_radix(hex, 16).ok())?
        };
        if let Some(single) = bits(["0f", "0F"], 8) {
            return Some(Operand::Single(single as u32 ^ if negative { 1 << 31 } else { 0 }));
        }
        if let Some(double) = bits(["0d", "0D"], 16) {
            return Some(Operand::Double(double ^ if negative { 1 << 63 } else { 0 }));
        }
        let radix = |prefixes: [&str; 2], radix| {
            prefixes.iter().find_map(|p| digits.strip_prefix(p)).map(|digits| u64::from_str_radix(digits, radix).ok())
        };
        let integer = radix(["0x", "0X"], 16).or_else(|| radix(["0b", "0B"], 2));
        let integer = match integer {
            Some(read) => Some(read?),
            None if digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()) => {
                Some(u64::from_str_radix(digits, 8).ok()?)
            }
            None => digits.parse().ok(),
        };
        if let Some(value) = integer {
            return Some(Operand::Integer(if negative { value.wrapping_neg() } else { value }));
        }
        let float =
            run.parse::<f64>().ok().filter(|_| run.contains('.') && run.starts_with(|c: char| c.is_ascii_digit()))?;
        Some(Operand::Double(if negative { -float } else { float }.to_bits()))
    }
}

//! OpenSSH's format `allowed_signers`: which keys may sign, in whose name, for what and when. Knows texts; reads no file and no clock. `ssh-keygen(1)`, section
//! ALLOWED SIGNERS, defines the format.
//!
//! | decision | because |
//! |---|---|
//! | one bad line refuses the file | a line that is skipped might be the one that takes a key away |
//! | `cert-authority` is refused | kforge does not check certificates, and a line that is ignored would look as if it counted |
//! | times without `Z` are UTC | OpenSSH takes the time zone of whoever checks; here, a file means the same on every machine |
//! | a key type that kforge cannot check is accepted | the file may serve git as well; a signature by such a key is reported |

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

use super::signature::{NotKey, PublicKey, Purpose};

/// The keys of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedSigners {
    /// The lines that name a key, in order.
    pub lines: Vec<SignerLine>,
}

/// A line that names a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignerLine {
    /// Who signs with the key: patterns, separated by commas, as the line states them.
    pub principals: String,
    /// The namespaces that the key may sign for: patterns; none for all.
    pub namespaces: Option<String>,
    /// The key counts from this time on.
    pub valid_after: Option<Timestamp>,
    /// The key counts up to this time.
    pub valid_before: Option<Timestamp>,
    /// The key.
    pub key: PublicKey,
    /// Its comment.
    pub comment: String,
    /// The number of the line, from 1.
    pub number: usize,
}

/// A line that is not one of an `allowed_signers` file.
#[derive(Debug, thiserror::Error)]
#[error("line {number}: {fault}")]
pub struct BadLine {
    /// The number of the line, from 1.
    pub number: usize,
    /// What is wrong with it.
    pub fault: LineFault,
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum LineFault {
    /// A quote is not closed.
    #[error("a quote is not closed")]
    Quote,
    /// The line names nobody.
    #[error("it names no principal: expected `PRINCIPALS [OPTIONS] KEYTYPE KEY`")]
    NoPrincipal,
    /// The line names no key.
    #[error("it names no key: expected `PRINCIPALS [OPTIONS] KEYTYPE KEY`")]
    NoKey,
    /// The key cannot be read.
    #[error("its key is {0}")]
    Key(NotKey),
    /// Certificates are not supported.
    #[error("`cert-authority` is not supported: name each key that may sign in a line of its own")]
    CertAuthority,
    /// An option is unknown.
    #[error("unknown option `{0}`: expected `namespaces=`, `valid-after=` or `valid-before=`")]
    Option(String),
    /// An option is given more than once.
    #[error("`{0}` is given twice")]
    Repeated(&'static str),
    /// The value of an option is not in quotes.
    #[error("the value of `{0}` is not in quotes: expected `{0}=\"...\"`")]
    Unquoted(&'static str),
    /// The value of an option is empty.
    #[error("`{0}` is empty")]
    Empty(&'static str),
    /// A time cannot be read.
    #[error("`{option}=\"{text}\"` is not a time: expected YYYYMMDD or YYYYMMDDHHMM[SS], with an optional Z")]
    Time {
        /// The option.
        option: &'static str,
        /// Its value.
        text: String,
    },
    /// The key is never valid.
    #[error("`valid-after` is not before `valid-before`")]
    Never,
}

impl AllowedSigners {
    /// The keys in the text of a file.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str) -> Result<AllowedSigners, BadLine> {
        let mut lines = vec![];
        for (at, line) in text.lines().enumerate() {
            let number = at + 1;
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                lines.push(signer(line, number).map_err(|fault| BadLine { number, fault })?);
            }
        }
        Ok(AllowedSigners { lines })
    }
}

impl SignerLine {
    /// A line for a key that may sign for this purpose and no other.
    pub fn new(purpose: Purpose, principals: &str, key: PublicKey, comment: &str) -> SignerLine {
        SignerLine {
            principals: principals.into(),
            namespaces: Some(purpose.namespace().into()),
            valid_after: None,
            valid_before: None,
            key,
            comment: comment.into(),
            number: 0,
        }
    }

    /// The line as a text without times.
    pub fn text(&self) -> String {
        let quoted = self.principals.contains(char::is_whitespace);
        let principals = if quoted { format!("\"{}\"", self.principals) } else { self.principals.clone() };
        let namespaces = self.namespaces.as_ref().map_or(String::new(), |n| format!(" namespaces=\"{n}\""));
        format!("{principals}{namespaces} {} {}", self.key.text(), self.comment).trim_end().to_string()
    }

    /// Whether the key may sign for a namespace.
    pub fn is_for(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|patterns| in_list(namespace, patterns))
    }
}

/// The options of a line.
#[derive(Default)]
struct Options {
    namespaces: Option<String>,
    valid_after: Option<Timestamp>,
    valid_before: Option<Timestamp>,
}

/// The key and the options of a line that is neither empty nor a comment.
fn signer(line: &str, number: usize) -> Result<SignerLine, LineFault> {
    let (principals, rest) = principals(line)?;
    let rest = rest.trim_start();
    let mut given = Options::default();
    // OpenSSH tries the key first, too: no key type looks like an option.
    let (key, comment) = match PublicKey::parse(rest) {
        Ok(found) => found,
        Err(wrong) => {
            let at = end_of_options(rest)?;
            let (options, key) = (&rest[..at], rest[at..].trim_start());
            if is_key_type(options) {
                return Err(LineFault::Key(wrong));
            }
            given.read(options)?;
            if key.is_empty() {
                return Err(LineFault::NoKey);
            }
            PublicKey::parse(key).map_err(LineFault::Key)?
        }
    };
    let Options { namespaces, valid_after, valid_before } = given;
    if valid_after.zip(valid_before).is_some_and(|(after, before)| after >= before) {
        return Err(LineFault::Never);
    }
    Ok(SignerLine { principals: principals.into(), namespaces, valid_after, valid_before, key, comment, number })
}

/// The principals at the beginning of a line, and the rest.
fn principals(line: &str) -> Result<(&str, &str), LineFault> {
    let (names, rest) = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or(LineFault::Quote)?,
        None => line.split_once([' ', '\t']).unwrap_or((line, "")),
    };
    let named = names.split(',').any(|name| !name.is_empty() && !name.starts_with('!'));
    if named { Ok((names, rest)) } else { Err(LineFault::NoPrincipal) }
}

/// The end of the options: the first blank outside quotes.
fn end_of_options(text: &str) -> Result<usize, LineFault> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ' ' | '\t' if !quoted => return Ok(at),
            _ => {}
        }
    }
    if quoted { Err(LineFault::Quote) } else { Ok(text.len()) }
}

/// Whether a word is a key type instead of options: a broken key is reported as such.
fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-", "rsa-"].iter().any(|front| word.starts_with(front)) && !word.contains('=')
}

impl Options {
    /// Reads the options of a line: names and quoted values, separated by commas.
    fn read(&mut self, mut text: &str) -> Result<(), LineFault> {
        while !text.is_empty() {
            let (name, rest) = text.split_at(text.find(['=', ',']).unwrap_or(text.len()));
            let lower = name.to_ascii_lowercase();
            let option = match ["namespaces", "valid-after", "valid-before"].into_iter().find(|known| *known == lower) {
                Some(option) => option,
                None if lower == "cert-authority" => return Err(LineFault::CertAuthority),
                None => return Err(LineFault::Option(name.into())),
            };
            let value = rest.strip_prefix("=\"").ok_or(LineFault::Unquoted(option))?;
            let (value, rest) = unquoted(value).ok_or(LineFault::Quote)?;
            if self.set(option, value)? {
                return Err(LineFault::Repeated(option));
            }
            text = match rest.strip_prefix(',') {
                Some(next) => next,
                None if rest.is_empty() => rest,
                None => return Err(LineFault::Option(rest.into())),
            };
        }
        Ok(())
    }

    /// Sets an option. Returns whether it was set before.
    fn set(&mut self, option: &'static str, value: String) -> Result<bool, LineFault> {
        if value.is_empty() {
            return Err(LineFault::Empty(option));
        }
        if option == "namespaces" {
            return Ok(self.namespaces.replace(value).is_some());
        }
        let Some(time) = time(&value) else { return Err(LineFault::Time { option, text: value }) };
        let place = if option == "valid-after" { &mut self.valid_after } else { &mut self.valid_before };
        Ok(place.replace(time).is_some())
    }
}

/// The text up to the closing quote, in which `\"` is a quote, and the rest.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, &text[at + 1..])),
            '\\' if chars.peek().is_some_and(|(_, next)| *next == '"') => {
                out.push('"');
                chars.next();
            }
            c => out.push(c),
        }
    }
    None
}

/// A time of the format: `YYYYMMDD` or `YYYYMMDDHHMM[SS]`, in UTC.
fn time(text: &str) -> Option<Timestamp> {
    let digits = text.strip_suffix("UTC").or_else(|| text.strip_suffix('Z')).unwrap_or(text);
    if !digits.bytes().all(|b| b.is_ascii_digit()) || ![8, 12, 14].contains(&digits.len()) {
        return None;
    }
    let part = |from: usize, len: usize| digits.get(from..from + len).map_or(Some(0), |part| part.parse::<i16>().ok());
    let small = |from: usize| part(from, 2).and_then(|part| i8::try_from(part).ok());
    let date = Date::new(part(0, 4)?, small(4)?, small(6)?).ok()?;
    let time = Time::new(small(8)?, small(10)?, small(12)?, 0).ok()?;
    DateTime::from_parts(date, time).to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// Whether a word is in a list of patterns with `*` and `?`: matched by one of them, and by none that begins with `!`.
fn in_list(word: &str, patterns: &str) -> bool {
    let mut found = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(not) if matches(word.as_bytes(), not.as_bytes()) => return false,
            Some(_) => {}
            None => found |= matches(word.as_bytes(), pattern.as_bytes()),
        }
    }
    found
}

/// Whether a word matches a pattern. Takes at most one step back for each byte, so that no pattern of a file takes long.
fn matches(word: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut of, mut star) = (0, 0, None);
    while at < word.len() {
        match pattern.get(of) {
            Some(b'*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(c) if *c == b'?' || *c == word[at] => (at, of) = (at + 1, of + 1),
            _ => match star {
                Some((back, from)) => {
                    star = Some((back, from + 1));
                    (at, of) = (from + 1, back + 1);
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests;

//! Captured output of a child: keeps its beginning and its end. Knows bytes; does not read pipes.

use std::collections::VecDeque;

/// What a child wrote, up to a cap: half of the cap from the beginning and the rest from the end, because compilers report the cause first and crashing
/// programs report it last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    cap: usize,
    total: u64,
}

impl Captured {
    /// An empty capture that keeps at most `cap` bytes.
    pub fn new(cap: usize) -> Self {
        Captured { head: Vec::new(), tail: VecDeque::new(), cap, total: 0 }
    }

    /// Appends the next bytes of the output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let to_head = bytes.len().min((self.cap / 2).saturating_sub(self.head.len()));
        let (head, rest) = bytes.split_at(to_head);
        self.head.extend_from_slice(head);
        let room = self.cap - self.cap / 2;
        // If a write is longer than the remaining room, keep only the end of the write.
        let rest = &rest[rest.len().saturating_sub(room)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(room);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// How many bytes were written, including those not kept.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many bytes were not kept.
    pub fn left_out(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// The bytes, if all of them were kept.
    pub fn whole(&self) -> Option<Vec<u8>> {
        (self.left_out() == 0).then(|| self.head.iter().chain(&self.tail).copied().collect())
    }

    /// The output as text, with a line that says how much is missing in the middle. Bytes that are not UTF-8 become replacement characters.
    pub fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        match self.left_out() {
            0 => String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned(),
            n => {
                let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
                format!("{head}\n[{n} bytes left out]\n{tail}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let mut captured = Captured::new(8);
        for chunk in ["ab", "cdefghijkl", "mnopqrstuvw", "xyz"] {
            captured.push(chunk.as_bytes());
        }
        assert_eq!(captured.text(), "abcd\n[18 bytes left out]\nwxyz");
        assert_eq!((captured.total(), captured.whole()), (26, None));
    }

    #[test]
    fn what_fits_is_whole() {
        let mut captured = Captured::new(7);
        captured.push(b"abcdefg");
        assert_eq!(captured.whole().as_deref(), Some(&b"abcdefg"[..]));
        assert_eq!(captured.text(), "abcdefg");
        captured.push(b"h");
        assert_eq!(captured.text(), "abc\n[1 bytes left out]\nefgh");
    }

    #[test]
    fn any_split_of_the_writes_keeps_the_same() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut once = Captured::new(31);
        once.push(&bytes);
        for size in 1..40 {
            let mut many = Captured::new(31);
            bytes.chunks(size).for_each(|chunk| many.push(chunk));
            assert_eq!(many, once, "chunks of {size}");
        }
    }
}

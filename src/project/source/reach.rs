//! What entries reach: from their names through every declaration and macro of those names. The head of the room has the reasons.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::part::What;
use super::tokens::words;
use super::{Group, Sources};

impl Sources<'_> {
    /// The declarations that entries reach.
    pub(super) fn reached<'t>(
        &self,
        entries: &[String],
        given: impl IntoIterator<Item = &'t str>,
    ) -> BTreeSet<(usize, usize)> {
        let known = self.known();
        let mut by_name: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
        let every = || {
            let of = |(g, group): (usize, &Group)| (0..group.parts.len()).map(move |p| (g, p)).collect::<Vec<_>>();
            self.groups.iter().enumerate().flat_map(of)
        };
        for at in every() {
            for name in &self.part(at).names {
                by_name.entry(name).or_default().push(at);
            }
        }
        let host = self.host_code(&by_name);
        let foreign: BTreeSet<(usize, usize)> =
            every().filter(|at| known.foreign(&self.part(*at).header).is_some()).collect();
        let mut kept: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut open: VecDeque<String> = entries.iter().flat_map(|entry| words(entry)).collect();
        open.extend(given.into_iter().flat_map(words));
        for file in self.files.iter().filter(|file| file.fragment) {
            open.extend(file.tokens.iter().filter(|t| t.is_word()).map(|t| t.text.clone()));
        }
        let mut roots: Vec<(usize, usize)> = every()
            .filter(|at| {
                let part = self.part(*at);
                let used_unnamed = part.names.contains("operator") || part.device && part.what == What::Variable;
                let space = || {
                    let after = part.tokens.iter().position(|t| t.is("namespace")).unwrap_or(0) + 1;
                    part.tokens.get(after).is_some_and(|t| known.has_space(&t.text))
                };
                used_unnamed && !host.contains(at) && !foreign.contains(at) || part.what == What::Using && space()
            })
            .collect();
        loop {
            for at in roots.drain(..) {
                if kept.insert(at) {
                    open.extend(self.part(at).uses.iter().cloned());
                }
            }
            let Some(name) = open.pop_front() else { break };
            if !seen.insert(name.clone()) {
                continue;
            }
            open.extend(self.macros.words(&name));
            let all = by_name.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            let device: Vec<_> = all.iter().filter(|at| self.part(**at).device).collect();
            let plain = |at: &&(usize, usize)| !foreign.contains(*at);
            let overload = |at: &(usize, usize)| {
                let part = self.part(*at);
                let forward = device.iter().any(|other| self.part(**other).parameters == part.parameters);
                part.what == What::Function && !part.device && !part.constexpr && !device.is_empty() && !forward
            };
            let left_out = |at: &(usize, usize)| {
                host.contains(at)
                    || overload(at)
                    || foreign.contains(at) && all.iter().filter(plain).any(|other| !host.contains(other))
            };
            roots.extend(all.iter().filter(|at| !left_out(at)));
        }
        // An assertion holds for what is kept if it names only that.
        let names: BTreeSet<&String> = kept.iter().flat_map(|at| &self.part(*at).names).collect();
        let about_kept = |at: &(usize, usize)| {
            let part = self.part(*at);
            let known_names =
                || part.uses.iter().all(|name| !by_name.contains_key(name.as_str()) || names.contains(name));
            part.what == What::Assertion && !foreign.contains(at) && known_names()
        };
        kept.extend(every().filter(about_kept));
        kept
    }

    /// Host code beyond doubt, and functions without annotation that call it.
    fn host_code(&self, by_name: &BTreeMap<&str, Vec<(usize, usize)>>) -> BTreeSet<(usize, usize)> {
        let known = self.known();
        let every: Vec<(usize, usize)> =
            self.groups.iter().enumerate().flat_map(|(g, group)| (0..group.parts.len()).map(move |p| (g, p))).collect();
        let mut host: BTreeSet<_> = every.iter().filter(|at| known.is_host(self.part(**at))).copied().collect();
        loop {
            let calls_host = |at: &&(usize, usize)| {
                let part = self.part(**at);
                let only_host = |name: &String| {
                    let all = by_name.get(name.as_str()).map_or(&[][..], Vec::as_slice);
                    !all.is_empty() && !part.names.contains(name) && all.iter().all(|other| host.contains(other))
                };
                part.what == What::Function && !part.device && !host.contains(*at) && part.calls.iter().any(only_host)
            };
            let more: Vec<_> = every.iter().filter(calls_host).copied().collect();
            if more.is_empty() {
                return host;
            }
            host.extend(more);
        }
    }
}

//! Adds earlier candidates of other rounds and kernels to a prompt. Knows where sources are, and what must not be revealed.
//! [`kforge_pipeline::optimize::memory`] decides which candidates come first.

use std::collections::BTreeSet;

use crate::session::Opened;
use crate::session::candidates::source;
use crate::session::rounds::{About, Recorded};
use crate::{Error, Session};
use kforge_foundation::base::Digest;
use kforge_pipeline::optimize::agents::briefing::{Briefing, Exemplar, LONGEST_EXEMPLAR, LONGEST_EXEMPLARS};
use kforge_pipeline::optimize::holdout::HeldBack;
use kforge_pipeline::optimize::kind::Kind;
use kforge_pipeline::optimize::memory::{ExemplarQuery, Likeness, SHOWN};
use kforge_pipeline::optimize::methods::registry;
use kforge_types::model::agent::Scope;
use kforge_types::record::candidate::Candidate;

/// The candidates that a workspace remembers, for prompts.
pub(super) struct Memory<'o> {
    opened: &'o Opened,
    candidates: Vec<Candidate>,
    held_back: HeldBack,
}

impl<'o> Memory<'o> {
    pub(super) fn new(session: &Session, opened: &'o Opened) -> Result<Self, Error> {
        let operators = opened.workspace.members.iter().flat_map(|m| &m.package.operators);
        Ok(Memory { opened, candidates: session.remembered(opened)?, held_back: HeldBack::of(operators) })
    }

    /// The user's own texts that reveal holdout shapes, among those that agents are shown in full.
    pub(super) fn tells(&self, about: About<'_>, recorded: &Recorded) -> Vec<&'static str> {
        let private = HeldBack::of(&about.package.operators);
        let source = recorded.source.clone().unwrap_or_default();
        let texts =
            [("its source", &source), ("its declaration", &recorded.declaration), ("its operator", &recorded.contract)];
        let tells = |text: &str| self.held_back.is_in(text) || private.is_in(text);
        texts.into_iter().filter(|(_, text)| tells(text)).map(|(what, _)| what).collect()
    }

    /// Adds to a briefing the remembered candidates that are most similar to the rounds' kernel.
    pub(super) fn add(&self, about: About<'_>, recorded: &Recorded, scope: Scope, briefing: &mut Briefing) {
        let seat = &recorded.seat;
        let wanted = ExemplarQuery {
            package: &seat.package,
            kernel: &seat.kernel,
            types: &seat.types,
            target: &seat.target,
            arch: about.target.arch.name(),
            language: about.kernel.language,
            operator: &about.operator.name,
            contract: Digest::of(recorded.contract.as_bytes()),
            kind: Kind::of(about.operator),
            chain: recorded.chain,
            scope,
        };
        let told = briefing.exemplars.iter().map(|exemplar| &exemplar.source);
        let room = LONGEST_EXEMPLARS.saturating_sub(told.clone().map(|source| source.chars().count()).sum());
        let told = told.chain(briefing.parent.iter().map(|parent| &parent.source));
        let shown: BTreeSet<Digest> = told.map(|source| Digest::of(source.as_bytes())).collect();
        // Here the operators of an overlay belong to the package; they belong to no member.
        let private = HeldBack::of(&about.package.operators);
        let mut text = |candidate: &Candidate| {
            let text = source(self.opened, candidate)?.text;
            let may = text.chars().count() <= LONGEST_EXEMPLAR && !self.held_back.is_in(&text) && !private.is_in(&text);
            may.then_some(text)
        };
        for (like, candidate, source) in wanted.draw(&self.candidates, (SHOWN, room), &shown, &mut text) {
            let note = note(like, candidate);
            briefing.exemplars.push(Exemplar { source, declaration: None, score: candidate.speedup, note });
        }
    }
}

/// A one-line description of a candidate. Leaves out its own tunables and methods, because their names are chosen by whoever wrote it.
fn note(like: Likeness, candidate: &Candidate) -> String {
    let mut note = format!("kernel `{}` of operator `{}`, ", candidate.kernel, candidate.operator);
    note += like.words();
    note += &format!(", on {}", candidate.arch);
    let known = |id: &&String| registry().get(id).is_some();
    let methods: Vec<&str> = candidate.methods.iter().filter(known).map(String::as_str).collect();
    if !methods.is_empty() {
        note += &format!(", with {}", methods.join(", "));
    }
    note
}

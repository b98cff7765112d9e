//! The names, for reports, of what a plan numbers: variants, classes, shapes, and the rounds of a seat. Reads the plan; changes nothing.

use std::collections::BTreeMap;

use super::super::rounds::Recorded;
use super::Ready;
use kforge_engine::{InputRef, Source};
use kforge_pipeline::plan::variants::PlannedVariant;
use kforge_pipeline::report::document::{BasisReport, IndexLimitReport};
use kforge_pipeline::report::versus::PairsRead;
use kforge_pipeline::report::{Names, rounds};
use kforge_types::record::StepKind;

/// The pairs that a select step reads, by its inputs.
pub(crate) fn pairs_read(inputs: &BTreeMap<String, InputRef>) -> Vec<PairsRead> {
    let of = |(name, input): (&String, &InputRef)| match &input.source {
        Source::Output { node, .. } => PairsRead::of(name, node),
        Source::Blob(_) => None,
    };
    inputs.iter().filter_map(of).collect()
}

impl Ready<'_> {
    /// The rounds of every seat that has answers, in the form that reports use.
    pub fn tried(&self) -> Vec<rounds::Recorded> {
        let of = |recorded: &Recorded| {
            let seat = &recorded.seat;
            let parts = [&seat.package, &seat.kernel, &seat.types, &seat.target].map(Clone::clone);
            let id: Vec<&str> = parts.iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
            let select = format!("{}/{}", id.join("/"), StepKind::Select.name());
            let selected = self.expander.selected(&self.expander.decisive(&select));
            let candidate = |build: &PlannedVariant| {
                let name = build.written.as_ref().map_or("", |w| &w.written_in);
                let attempt = name.split_once('.').and_then(|(_, repair)| repair.parse().ok()).unwrap_or(0);
                (build.label.clone(), build.round, attempt)
            };
            // An accepted variant is built without its rounds.
            let selected = selected.filter(|s| !s.accepted)?;
            Some(rounds::Recorded {
                seat: parts,
                answers: recorded.answers.clone(),
                refused: recorded.refused.clone(),
                candidates: selected.builds.iter().map(candidate).collect(),
            })
        };
        self.recorded.iter().filter(|r| !r.answers.is_empty()).filter_map(of).collect()
    }

    /// The names for the numbers in the results of search steps and of the last select steps, and of select steps among kernels; none for select steps that only nominate.
    pub fn names(&self, id: &str) -> Option<Names> {
        if let Some(searching) = self.expander.searching(id) {
            return Some(Names {
                variants: (0..).zip(searching.labels()).collect(),
                classes: searching.classes.clone(),
                types: searching.choice.label.clone(),
                ..Names::default()
            });
        }
        if let Some((leading, shapes)) = self.expander.leading(id) {
            let (kernels, variants) = (0..)
                .zip(leading.contenders())
                .map(|(order, (kernel, label))| ((order, kernel.to_string()), (order, label.to_string())))
                .unzip();
            return Some(Names { variants, kernels, shapes, types: leading.types().to_string(), ..Names::default() });
        }
        let selected = self.expander.selected(id).filter(|selected| selected.stage.is_last)?;
        let about = self.expander.about(&selected)?;
        Some(Names {
            variants: selected.builds.iter().map(|b| (b.variant.order, b.label.clone())).collect(),
            classes: selected.classes.clone(),
            shapes: about.shapes.iter().map(|(name, _)| name.clone()).collect(),
            not_served: about.not_served,
            basis: about.timed.then(|| BasisReport {
                hot: about.hot,
                declared: selected.builds.first().map(|b| b.label.clone()).unwrap_or_default(),
                whole: about.whole,
                called: about.called,
                classes: about.shapes.iter().cloned().collect(),
                baselines: about.baselines,
            }),
            types: selected.choice.label.clone(),
            per: about.per,
            accepted: selected.accepted,
            host: about.host,
            index_limit: about.index_limit.map(|limit| IndexLimitReport {
                arguments: limit.arguments,
                dtype: limit.dtype,
                limit: limit.limit,
                elements: limit.elements,
            }),
            pairs: vec![],
            kernels: BTreeMap::new(),
        })
    }
}

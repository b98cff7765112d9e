//! The records on which an artifact's statements rest: those of verdicts, times, pairs and methods, and the bundle of them all. Knows how steps name their inputs;
//! does not know what an artifact says of machine code.

use kforge_engine::evidence::IndexedRecord;
use kforge_engine::{Node, Question, Questions};
use kforge_foundation::base::Digest;
use kforge_numerics::measure::sampling::median_interval;
use kforge_numerics::measure::stats::median;
use kforge_pipeline::plan::variants::PlannedVariant;
use kforge_pipeline::release::Bundle;
use kforge_pipeline::release::artifact::kernels::{
    PackagedKernel, PackagedMethod, PackagedRecord, PackagedShape, PackagedTime,
};
use kforge_pipeline::release::transfer::{self, RecordChoice};
use kforge_types::model::Metric;
use kforge_types::record::params::Attribution;
use kforge_types::record::timing::BenchObserved;
use kforge_types::record::{Standing, StepKind};

use super::Steps;
use crate::Error;

impl Steps<'_, '_> {
    /// The time of a champion at a bench shape: that of the series which selection uses.
    pub(super) fn time(&mut self, bench: &str, metric: Metric) -> Result<Option<PackagedTime>, Error> {
        let Some((question, _)) = self.record(bench)? else { return Ok(None) };
        let Some(seen) = self.output::<BenchObserved>(bench, "observation") else { return Ok(None) };
        let series = match metric {
            Metric::Cold => seen.cold,
            Metric::Hot => seen.hot,
        };
        let samples = series.map(|series| series.samples_ns).unwrap_or_default();
        Ok((!samples.is_empty()).then(|| PackagedTime {
            question,
            median_ns: median(&samples),
            interval_ns: median_interval(&samples),
            samples: samples.len() as u64,
        }))
    }

    /// The question of a step that observes a device, and the record that answers it. Both will be packed.
    pub(super) fn record(&mut self, id: &str) -> Result<Option<(Digest, IndexedRecord)>, Error> {
        let Some(Question { node, spec: Some(spec), .. }) = self.asked.get(id).copied() else { return Ok(None) };
        let key = spec.key();
        let Some(seen) = self.cache.seen(&key, spec, node.product.as_deref())? else {
            return Ok(None);
        };
        let packaged = PackagedRecord {
            kind: node.kind,
            record: seen.digest,
            standing: seen.standing(),
            signer: seen.signer.clone().filter(|_| seen.standing() == Standing::Signed),
            device: seen.record.provenance.device.to_string(),
            measured_at: seen.record.provenance.measured_at.clone(),
        };
        self.records.insert(key, packaged);
        self.wanted.insert(id.into());
        Ok(Some((key, seen)))
    }

    /// The questions that a shape names, as the keys of a kernel's records.
    pub(super) fn keys_of(&self, shape: &PackagedShape) -> Vec<(Digest, PackagedRecord)> {
        let time = shape.time.as_ref().map(|time| time.question);
        let keys = [Some(shape.verification), shape.confirmation, time].into_iter().flatten();
        keys.filter_map(|key| Some((key, self.records.get(&key)?.clone()))).collect()
    }

    /// The pairs in which a champion was compared with others, what its methods are worth, and the observations on which both rest.
    pub(super) fn rivals(
        &mut self,
        select: &Node,
        build: &PlannedVariant,
        packaged: &mut PackagedKernel,
    ) -> Result<(), Error> {
        let order = build.variant.order.to_string();
        let of_champion = |input: &&String| {
            let mut parts = input.split(':');
            parts.next() == Some("pairs") && parts.take(2).any(|part| part == order)
        };
        let mut observed: Vec<String> =
            select.inputs.keys().filter(of_champion).filter_map(|input| Self::from(select, input)).collect();
        let mine = |node: &Node| {
            let labels = &node.labels;
            node.kind == StepKind::Attribute
                && labels.package == select.labels.package
                && labels.kernel == select.labels.kernel
                && labels.target == select.labels.target
                && labels.variant.as_ref() == Some(&build.label)
        };
        let attributes: Vec<&Node> = self.known.result.steps.iter().map(|(node, _)| node).filter(|n| mine(n)).collect();
        for node in attributes {
            let Some(found) = self.output::<Attribution>(&node.id, "attribution") else { continue };
            let method = node.labels.method.clone().unwrap_or_default();
            if packaged.methods.iter().any(|known| known.method == method && known.variant == build.variant.label) {
                continue;
            }
            observed.extend(node.inputs.keys().filter(|i| i.starts_with("pairs:")).filter_map(|i| Self::from(node, i)));
            // The kernel without the method is verified, too.
            let judged = node.inputs.keys().filter(|i| i.starts_with("judgement:")).filter_map(|i| Self::from(node, i));
            let verified = judged.filter_map(|judge| Self::from(self.nodes.get(judge.as_str())?, "observation"));
            observed.extend(verified.collect::<Vec<_>>());
            packaged.methods.push(PackagedMethod {
                method,
                variant: build.variant.label.clone(),
                fate: found.fate,
                because: found.because,
                saving: found.saving,
            });
        }
        for step in observed {
            if let Some((key, _)) = self.record(&step)?
                && let Some(record) = self.records.get(&key)
            {
                packaged.records.insert(key, record.clone());
            }
        }
        Ok(())
    }

    /// The bundle of everything that was wanted.
    pub(super) fn evidence(&self) -> Result<Bundle, Error> {
        let wanted = |id: &str| self.wanted.contains(id);
        let asked = self.known.asked.asked.iter().filter(|question| wanted(&question.node.id)).cloned().collect();
        let made = self.known.asked.made.iter().filter(|made| wanted(&made.node.id)).cloned().collect();
        let questions = Questions { asked, made, ..Questions::default() };
        let champions = self.ready.champions(&self.known.asked).into_iter().map(|champion| champion.timed);
        let champions = champions.filter(|champion| champion.package == self.package).collect();
        let gathered =
            transfer::gather(&questions, champions, self.cache, &*self.ready.leaves, RecordChoice::Answering);
        Ok(gathered?.bundle)
    }
}

//! Reads baselines. Kinds of values were checked before; `validate` checks the names of operators.

use toml::de::DeTable;

use super::read::Reader;
use crate::model::Text;
use crate::model::baseline::{Baseline, CONFIRM_ABOVE, How};

/// The name by which `kforge report --baseline` means the variant declared first.
const DECLARED: &str = "declared";

impl Reader<'_> {
    /// `[baseline.NAME]`.
    pub(super) fn baselines(&mut self, root: &DeTable<'_>) -> Vec<Baseline> {
        let mut all = vec![];
        for (name, value) in self.named(root, "baseline") {
            let Some(table) = value.get_ref().as_table() else { continue };
            self.plain_name(&name);
            if name.value == DECLARED {
                let span = name.place.span.clone();
                self.wrong("manifest.name", "`declared` is the variant declared first".into(), span, "another name");
            }
            all.extend(self.baseline(name, table));
        }
        all
    }

    fn baseline(&mut self, name: Text, table: &DeTable<'_>) -> Option<Baseline> {
        let source = self.text(table, "source");
        let stated = self.text(table, "how");
        let how = match &stated {
            // Another word has been reported.
            Some(word) => How::of(&word.value)?,
            None => match (How::of(&name.value), &source) {
                (Some(how), _) => how,
                (None, Some(_)) => How::Eager,
                (None, None) => {
                    let message = format!("`baseline.{name}` does not say what runs");
                    let expected = "`source`, or `how`: \"eager\", \"compile\", \"cudagraph\" or \"cublas\"";
                    self.wrong("manifest.missing-key", message, name.place.span.clone(), expected);
                    return None;
                }
            },
        };
        let mode = self.text(table, "mode");
        if let Some(mode) = mode.as_ref().filter(|_| how != How::Compile) {
            let message = format!("`baseline.{name}` has a mode of `torch.compile` and is not compiled");
            self.wrong("manifest.conflict", message, mode.place.span.clone(), "`how = \"compile\"`, or no `mode`");
        }
        if let Some(source) = source.as_ref().filter(|_| how == How::Cublas) {
            let message = format!("`baseline.{name}` calls cuBLAS and a function");
            self.wrong("manifest.conflict", message, source.place.span.clone(), "another `how`, or no `source`");
        }
        let function = match &source {
            Some(text) => Some(self.function(text, &[".py"])?),
            None => None,
        };
        let confirm_above = self.confirm_above(table);
        Some(Baseline {
            name: name.value,
            place: name.place,
            how,
            mode: mode.map(|mode| mode.value),
            source: function,
            operator: self.text(table, "operator"),
            confirm_above,
        })
    }

    /// The speed-up above which a second device has to confirm it.
    fn confirm_above(&mut self, table: &DeTable<'_>) -> f64 {
        match self.number(table, "confirm_above") {
            None => CONFIRM_ABOVE,
            Some((factor, _)) if factor.is_finite() && factor >= 1.0 => factor,
            Some((_, span)) => {
                let message = "`confirm_above` is not a speed-up".to_string();
                self.wrong("manifest.value", message, span, "a number of 1 or more: how many times as fast");
                CONFIRM_ABOVE
            }
        }
    }
}

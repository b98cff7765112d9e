//! The devices of the workers of a server: which there are, as the settings say, and which questions to them stay on this machine. Knows settings and packages;
//! [`super::remote_observations`] asks the questions.
//!
//! | decision | because |
//! |---|---|
//! | the settings name the devices | a server does not say which workers it has, and a plan must not depend on which of them answers |
//! | a device of this machine comes first | its observations stand `here` |
//! | no worker is a second device of a class | the server chooses the worker, which may be the one that answered before |

#[cfg(feature = "remote")]
use std::collections::BTreeSet;

#[cfg(feature = "remote")]
use super::build::Packages;
use super::open::Session;
#[cfg(feature = "remote")]
use kforge_types::model::ShapeRole;
use kforge_types::record::Device;
#[cfg(feature = "remote")]
use kforge_types::record::event::Labels;

impl Session {
    /// The devices that the settings name, if steps are executed on the workers of a server.
    #[cfg(feature = "remote")]
    pub(super) fn remote_devices(&self) -> Vec<Device> {
        let is_used = self.settings.word("remote.url").is_some() && self.settings.flag("remote.execute");
        if !is_used || self.offline() || self.settings.word("remote.mode") == Some("off") {
            return vec![];
        }
        // The table of settings refuses other texts.
        let named = kforge_foundation::config::keys::devices(self.settings.word("remote.devices").unwrap_or_default());
        let numbered = named.unwrap_or_default().into_iter().enumerate();
        numbered.map(|(number, (arch, product))| Device::remote(number, product, arch)).collect()
    }

    /// None: this program asks no server.
    #[cfg(not(feature = "remote"))]
    pub(super) fn remote_devices(&self) -> Vec<Device> {
        vec![]
    }
}

/// The holdout shapes of packages: a question about one of them would show it to everybody who may read the server.
#[cfg(feature = "remote")]
#[derive(Debug, Clone, Default)]
pub(super) struct HoldoutShapes {
    /// By package, operator and name.
    names: BTreeSet<(String, String, String)>,
}

#[cfg(feature = "remote")]
impl HoldoutShapes {
    pub(super) fn of(packages: &Packages) -> HoldoutShapes {
        let mut names = BTreeSet::new();
        for package in packages.all() {
            for operator in &package.operators {
                let held = operator.shapes.iter().filter(|shape| shape.role == ShapeRole::Holdout);
                let named = held.map(|shape| (package.name.clone(), operator.name.clone(), shape.name.clone()));
                names.extend(named);
            }
        }
        HoldoutShapes { names }
    }

    /// Whether a step is about one of them. A step that names no operator is, if any operator of its package has a holdout shape of that name.
    pub(super) fn has(&self, labels: &Labels) -> bool {
        let Some(shape) = &labels.shape else { return false };
        self.names.iter().any(|(package, operator, name)| {
            *package == labels.package && name == shape && labels.operator.as_ref().is_none_or(|of| of == operator)
        })
    }
}

#[cfg(all(test, feature = "remote"))]
mod tests {
    use super::*;

    #[test]
    fn a_step_about_a_holdout_shape_is_known_by_its_labels() {
        let name = |of: &str| of.to_string();
        let shapes = HoldoutShapes { names: [(name("p"), name("op"), name("secret"))].into() };
        let labels = |package: &str, operator: Option<&str>, shape: Option<&str>| Labels {
            package: package.into(),
            operator: operator.map(name),
            shape: shape.map(name),
            ..Labels::default()
        };
        assert!(shapes.has(&labels("p", Some("op"), Some("secret"))) && shapes.has(&labels("p", None, Some("secret"))));
        for other in [
            labels("p", Some("op"), Some("llama")),
            labels("p", Some("other"), Some("secret")),
            labels("q", Some("op"), Some("secret")),
            labels("p", Some("op"), None),
        ] {
            assert!(!shapes.has(&other), "{other:?}");
        }
    }
}

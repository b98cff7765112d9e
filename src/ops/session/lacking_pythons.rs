//! The versions of Python for which a lockfile names no PyTorch, as a warning. Knows what pip said; resolves nothing.

use kforge_foundation::base::Diagnostic;
use kforge_project::toolchain;

/// A warning for the versions of Python whose PyTorch a lockfile lacks, because pip resolved none for them; none if there is no such version.
pub(crate) fn lacking_pythons(release: &str, lacking: &[(String, toolchain::Error)]) -> Option<Diagnostic> {
    let names: Vec<&str> = lacking.iter().map(|(python, _)| python.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let message = format!("kforge.lock names no wheels of PyTorch {release} for Python {}", names.join(", "));
    let warning = Diagnostic::warning("toolchain.lacking-python", &message);
    let said = lacking.iter().map(|(python, why)| {
        let why = why.to_string();
        format!("for Python {python}: {}", why.lines().map(str::trim).collect::<Vec<_>>().join(" "))
    });
    let warning = said.fold(warning, |warning, note| warning.note(&note));
    Some(warning.hint("`kforge update` asks again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_python_without_wheels_is_named_with_what_pip_said() {
        assert_eq!(lacking_pythons("2.9", &[]), None);
        let refused = |requirement: &str| toolchain::Error::Resolve {
            requirements: vec![requirement.into()],
            why: Box::new(toolchain::Error::Temporary(std::io::Error::other("no answer"))),
        };
        let lacking = [("3.10".to_string(), refused("torch==2.9.*")), ("3.14".to_string(), refused("torch==2.9.*"))];
        let warning = lacking_pythons("2.9", &lacking).unwrap();
        let text = format!("{warning:?}");
        assert!(text.contains("no wheels of PyTorch 2.9 for Python 3.10, 3.14"), "{text}");
        assert!(text.contains("for Python 3.14: ") && text.contains("torch==2.9.*"), "{text}");
    }
}

//! Keys of endpoints. Nothing prints a key: its text is only sent, and keys are removed from every text that comes from an agent.

use kforge_foundation::config::Environment;

/// The text that replaces a key.
const REDACTED: &str = "[key]";

/// The fewest characters of a secret key. Local servers accept any word, and removing `EMPTY` or `none` from sources would break the sources.
const SHORTEST: usize = 8;

/// A key. It has neither `Debug` nor `Display`, so that no message can contain it by mistake.
#[derive(Clone)]
pub(super) struct Key(String);

impl Key {
    /// The key in a variable.
    ///
    /// # Errors
    /// What is wrong with the variable, without its value.
    pub(super) fn of(variable: &str, environment: &Environment) -> Result<Self, String> {
        let text = environment.get(variable).map(str::trim).filter(|key| !key.is_empty());
        let Some(text) = text else {
            return Err(format!("the environment variable `{variable}` is not set"));
        };
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(format!("the environment variable `{variable}` has characters that a header cannot contain"));
        }
        Ok(Key(text.into()))
    }

    /// The value of the header that sends the key.
    pub(super) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

/// Removes keys from texts.
#[derive(Clone)]
pub(super) struct Redactor(Vec<String>);

impl Redactor {
    /// Collects the keys from the variables that are set.
    pub(super) fn of<'v>(variables: impl IntoIterator<Item = &'v str>, environment: &Environment) -> Self {
        let keys = variables.into_iter().filter_map(|variable| Key::of(variable, environment).ok());
        let mut keys: Vec<String> = keys.map(|key| key.0).collect();
        keys.retain(|key| key.len() >= SHORTEST);
        // The longest key first, because one key may be a prefix of another.
        keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
        keys.dedup();
        Redactor(keys)
    }

    /// The text without keys.
    pub(super) fn clean(&self, text: String) -> String {
        self.0.iter().fold(text, |text, key| if text.contains(key) { text.replace(key, REDACTED) } else { text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(value: &str) -> Environment {
        Environment::of([("K".to_string(), value.to_string())])
    }

    #[test]
    fn a_variable_that_holds_no_key_is_named_and_its_value_is_not() {
        for (value, says) in [
            ("", "is not set"),
            ("  ", "is not set"),
            ("sk-1\r\nHost: x", "a header cannot contain"),
            ("sk 1", "a header cannot contain"),
        ] {
            let why = Key::of("K", &environment(value)).err().unwrap();
            assert!(why.contains("`K`") && why.contains(says) && !why.contains("sk"), "{why}");
        }
        assert_eq!(Key::of("K", &environment(" sk-1\n")).ok().unwrap().header(), "Bearer sk-1");
    }

    #[test]
    fn keys_leave_every_text() {
        let vars =
            [("A", "sk-123456"), ("B", "sk-1234567"), ("C", "EMPTY")].map(|(k, v)| (k.to_string(), v.to_string()));
        let redactor = Redactor::of(["A", "B", "C", "D"], &Environment::of(vars));
        assert_eq!(redactor.clean("x sk-1234567 y sk-123456.".into()), "x [key] y [key].");
        assert_eq!(redactor.clean("slot = EMPTY;".into()), "slot = EMPTY;", "a word that is no secret stays");
    }
}

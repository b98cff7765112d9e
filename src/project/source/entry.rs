//! Entries: what the text of one means in C++, and the kernels that it may mean.

use super::Sources;
use super::declarations::closing;
use super::macros::spelled;
use super::part::{What, is_keyword};
use super::tokens::{Token, tokens};

/// The C++ expression for a pointer to an entry: `&k<float>` for `k<float>`; a cast for an entry with the parameters of one of several overloads, such as
/// `k(float *, int)`.
pub fn addressed(entry: &str) -> String {
    let entry = entry.trim().trim_start_matches(['&', ' ']);
    match with_parameters(entry) {
        Some((name, parameters)) => format!("*static_cast<void (*)({parameters})>(&{name})"),
        None => format!("&{entry}"),
    }
}

/// The name and the parameters of an entry that says which overload it means; none for any other entry.
pub fn with_parameters(entry: &str) -> Option<(&str, &str)> {
    let (all, _) = tokens(entry);
    let last = all.last().filter(|t| t.is(")"))?;
    // Outside template arguments, the last group in parentheses is that of the parameters.
    let open = all.iter().rposition(|t| t.is("(")).filter(|open| *open > 0)?;
    let open = (1..=open).find(|at| all[*at].is("(") && closing(&all, *at) == Some(all.len() - 1))?;
    let before = &all[open - 1];
    let named = before.is(">") || before.is_word() && !is_keyword(&before.text);
    let cast = all[0].is("(") || ["static_cast", "reinterpret_cast"].iter().any(|word| all[0].is(word));
    (named && !cast).then(|| (entry[..all[open].start].trim(), entry[all[open].end..last.start].trim()))
}

/// The parameters of a function without names and default values, as far as they can be told apart.
fn types(parameters: &str) -> String {
    let (all, _) = tokens(parameters);
    let mut out: Vec<String> = vec![];
    let mut depth = 0;
    let mut current: Vec<Token> = vec![];
    let mut take = |current: &mut Vec<Token>| {
        let end = current.iter().position(|t| t.is("=")).unwrap_or(current.len());
        let mut kept = current[..end].to_vec();
        kept.retain(|t| !["__restrict__", "__restrict", "__grid_constant__"].iter().any(|word| t.is(word)));
        let words = kept.iter().filter(|t| t.is_word() && !t.is("const")).count();
        // A name follows a type: `int n`, `float *x`.
        let punctuated = kept.len() > 1 && !kept[kept.len() - 2].is_word() && !kept[kept.len() - 2].is("::");
        if kept.last().is_some_and(|t| t.is_word() && !is_keyword(&t.text)) && (words > 1 || punctuated) {
            kept.pop();
        }
        out.push(spelled(&kept));
        current.clear();
    };
    for token in all {
        match token.text.as_str() {
            "(" | "<" | "[" => depth += 1,
            ")" | ">" | "]" => depth -= 1,
            "," if depth == 0 => {
                take(&mut current);
                continue;
            }
            _ => {}
        }
        current.push(token);
    }
    if !current.is_empty() {
        take(&mut current);
    }
    out.join(", ")
}

impl Sources<'_> {
    /// What is wrong with an entry that names several kernels, with a list of them; none if it names one or none.
    pub fn ambiguous(&self, entry: &str) -> Option<String> {
        let (tokens, _) = tokens(entry);
        let end = tokens.iter().position(|t| t.is("<") || t.is("(")).unwrap_or(tokens.len());
        let name = tokens[..end].iter().rfind(|t| t.is_word())?;
        let mut found: Vec<(String, String, String)> = vec![];
        for group in &self.groups {
            let named =
                group.parts.iter().filter(|p| p.kernel && p.what == What::Function && p.names.contains(&name.text));
            for part in named {
                let line = part.tokens.first().map_or(1, |t| t.line);
                let declaration = spelled(&part.header);
                // A declaration and the definition that follows it are one kernel.
                found.retain(|(known, ..)| *known != declaration);
                found.push((declaration, self.place(group.file, line).to_string(), types(&part.parameters)));
            }
        }
        let (_, _, first) = found.first().filter(|_| found.len() > 1)?;
        let base = with_parameters(entry).map_or(entry, |(name, _)| name);
        let mut out = format!(
            "entry `{entry}` names {} kernels; write the parameters of one of them: `{base}({first})`\n",
            found.len()
        );
        for (declaration, place, _) in &found {
            out += &format!("{place}: {declaration}\n");
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_with_parameters_is_a_cast() {
        assert_eq!(addressed(" & k<float, (3 > 2)> "), "&k<float, (3 > 2)>");
        assert_eq!(addressed("a::k"), "&a::k");
        assert_eq!(addressed("k<float>(float *, int)"), "*static_cast<void (*)(float *, int)>(&k<float>)");
        assert_eq!(addressed("k(void (*)(int))"), "*static_cast<void (*)(void (*)(int))>(&k)");
        assert_eq!(addressed("k<decltype(f(1))>"), "&k<decltype(f(1))>");
        assert_eq!(addressed("static_cast<void (*)(int)>(k)"), "&static_cast<void (*)(int)>(k)");
    }

    #[test]
    fn parameters_lose_their_names() {
        for (text, expected) in [
            ("const float *__restrict__ x, int n = 3", "const float *, int"),
            ("float4 v, const T &t, unsigned int m", "float4, const T &, unsigned int"),
            ("float *, int", "float *, int"),
            ("std::pair<int, int> p", "std::pair<int, int>"),
            ("", ""),
        ] {
            assert_eq!(types(text), expected, "{text}");
        }
    }
}

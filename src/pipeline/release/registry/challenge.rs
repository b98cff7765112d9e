//! What a registry demands of a login: the header `WWW-Authenticate`. Knows its grammar (RFC 9110, section 11.6.1); knows no login.

use std::collections::BTreeMap;

/// A demand that kforge can meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// A token from another service.
    Bearer {
        /// The address of that service.
        realm: String,
        /// The name of the registry there, if it has one.
        service: Option<String>,
    },
    /// A user's name and password.
    Basic,
}

/// Why there is no such demand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoChallenge {
    /// The response says nothing.
    #[error("its response has no header `WWW-Authenticate`")]
    None,
    /// The header cannot be read, or names other schemes.
    #[error("expected `Bearer` with a realm, or `Basic`, in its header `WWW-Authenticate`")]
    Unknown,
}

impl Challenge {
    /// The first demand of these headers that kforge can meet, tokens before passwords.
    ///
    /// # Errors
    /// There is none.
    pub fn parse<'h>(headers: impl IntoIterator<Item = &'h str>) -> Result<Challenge, NoChallenge> {
        let mut found = vec![];
        let mut is_empty = true;
        for header in headers {
            is_empty = false;
            found.extend(schemes(header));
        }
        let bearer = found.iter().find(|(scheme, parameters)| scheme == "bearer" && parameters.contains_key("realm"));
        if let Some((_, parameters)) = bearer {
            let get = |name: &str| parameters.get(name).cloned();
            return Ok(Challenge::Bearer { realm: get("realm").unwrap_or_default(), service: get("service") });
        }
        match (is_empty, found.iter().any(|(scheme, _)| scheme == "basic")) {
            (_, true) => Ok(Challenge::Basic),
            (true, _) => Err(NoChallenge::None),
            (false, _) => Err(NoChallenge::Unknown),
        }
    }
}

/// The schemes of a header with their parameters, names in lower case. Reading ends where the grammar is left.
fn schemes(header: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let mut found: Vec<(String, BTreeMap<String, String>)> = vec![];
    let mut rest = header.trim_start_matches([' ', ',']);
    while !rest.is_empty() {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let end = rest.find(|c| !is_token(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        if token.is_empty() {
            break;
        }
        rest = match (after.strip_prefix('='), found.last_mut()) {
            (Some(after), Some((_, parameters))) => {
                let Some((value, after)) = value(after) else { break };
                parameters.insert(token.to_ascii_lowercase(), value);
                after
            }
            (Some(_), None) => break,
            (None, _) => {
                found.push((token.to_ascii_lowercase(), BTreeMap::new()));
                after
            }
        };
        rest = rest.trim_start_matches([' ', ',']);
    }
    found
}

/// A value, quoted or not, and what follows it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ']).unwrap_or(text.len());
        return Some((text[..end].to_string(), &text[end..]));
    };
    let (mut value, mut characters) = (String::new(), quoted.char_indices());
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demand_that_can_be_met_is_found() {
        let bearer = |realm: &str, service: Option<&str>| {
            Ok(Challenge::Bearer { realm: realm.into(), service: service.map(String::from) })
        };
        for (headers, expected) in [
            (
                vec![r#"Bearer realm="https://a.b/token?x=1,2",service="r.b",scope="repository:c:pull""#],
                bearer("https://a.b/token?x=1,2", Some("r.b")),
            ),
            (vec![r#"Basic realm="x", bearer Realm=https://a.b/t"#], bearer("https://a.b/t", None)),
            (vec![r#"Negotiate"#, r#"Basic realm="a \"quoted\" one""#], Ok(Challenge::Basic)),
            (vec![r#"Bearer realm="open"#], Err(NoChallenge::Unknown)),
            (vec![r#"Bearer service="x""#], Err(NoChallenge::Unknown)),
            (vec!["Digest nonce=1"], Err(NoChallenge::Unknown)),
            (vec![r#"="x""#], Err(NoChallenge::Unknown)),
            (vec![], Err(NoChallenge::None)),
        ] {
            assert_eq!(Challenge::parse(headers.clone()), expected, "{headers:?}");
        }
    }
}

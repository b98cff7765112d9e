//! Asks an endpoint by the protocol of OpenAI's chat completions. Knows requests, statuses and which requests may be repeated; does not interpret the answer.
//!
//! The key goes into one header of one request, to the address in the manifest. Redirects are not followed, and the key is removed from everything that comes
//! back.

use std::time::Duration;

use serde_json::{Value, json};
use ureq::{Agent as Client, Error, Proxy};

use super::key::{Key, Redactor};
use super::{Failure, RawReply};
use kforge_foundation::config::Environment;
use kforge_types::record::answer::Prompt;

/// The longest response in bytes. A longer one is unusable.
const LONGEST: u64 = 16 << 20;

/// The most characters of an endpoint's message that are shown.
const LONGEST_MESSAGE: usize = 600;

/// An endpoint that can be asked from any thread. It cannot be printed, because it holds a key.
pub(super) struct Endpoint {
    /// The address before `/chat/completions`.
    pub(super) url: String,
    /// The model.
    pub(super) model: String,
    /// The key, if the endpoint takes one.
    pub(super) key: Option<Key>,
    /// Sampling temperature, if declared.
    pub(super) temperature: Option<f64>,
    /// Most tokens of an answer, if declared.
    pub(super) max_tokens: Option<u64>,
    /// The time limit of a request.
    pub(super) limit: Duration,
    /// The proxy, if any.
    pub(super) proxy: Option<Proxy>,
    /// Removes keys from responses.
    pub(super) redactor: Redactor,
}

impl Endpoint {
    /// Sends a prompt and waits for the answer.
    pub(super) fn ask(&self, prompt: &Prompt) -> Result<RawReply, Failure> {
        let config = Client::config_builder()
            .timeout_global(Some(self.limit))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(self.proxy.clone())
            .user_agent(concat!("kforge/", env!("CARGO_PKG_VERSION")))
            .build();
        let mut request = Client::from(config)
            .post(format!("{}/chat/completions", self.url.trim_end_matches('/')))
            .header("Content-Type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("Authorization", key.header());
        }
        let mut response = request.send(self.body(prompt).to_string()).map_err(|e| self.failed(&e))?;
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_string);
        let (after_s, to) = (header("retry-after").and_then(|text| seconds(&text)), header("location"));
        // Invalid UTF-8 is replaced, because the rest may still be an answer.
        let body = response.body_mut().with_config().limit(LONGEST).lossy_utf8(true);
        let text = match body.read_to_string() {
            // The request was answered and is paid for. The answer is unusable, and that is reported.
            Err(Error::BodyExceedsLimit(_)) if (200..300).contains(&status) => {
                return Ok(RawReply { reply: RawReply::flood(LONGEST), tokens: None, cut: false });
            }
            text => text.map_err(|e| self.failed(&e)),
        };
        match status {
            200..=299 => self.completion(&text?),
            300..=399 => {
                let to = self.redactor.clean(to.unwrap_or_default());
                Err(Failure::Never(format!("it redirects requests to `{to}`: configure the address that answers")))
            }
            _ => {
                // If the body cannot be read, the status is still reported.
                let why = format!("status {status}{}", self.message(&text.unwrap_or_default()));
                match status {
                    408 | 425 | 429 | 500.. => {
                        let busy = status == 429 || after_s.is_some();
                        Err(Failure::Again { why, after_s, busy })
                    }
                    _ => Err(Failure::Never(why)),
                }
            }
        }
    }

    fn body(&self, prompt: &Prompt) -> Value {
        let mut body = json!({
            "model": self.model,
            "messages": [
                { "role": "system", "content": prompt.system },
                { "role": "user", "content": prompt.user },
            ],
        });
        if let Some(temperature) = self.temperature {
            body["temperature"] = json!(temperature);
        }
        if let Some(most) = self.max_tokens {
            body["max_tokens"] = json!(most);
        }
        body
    }

    /// Reads a chat completion.
    fn completion(&self, text: &str) -> Result<RawReply, Failure> {
        let no = |what: &str| Failure::Again {
            why: format!("its answer is not a chat completion: {what}"),
            after_s: None,
            busy: false,
        };
        let value: Value = serde_json::from_str(text).map_err(|e| no(&e.to_string()))?;
        let choice = value.pointer("/choices/0").ok_or_else(|| no("there is no `choices[0]`"))?;
        let content = match &choice["message"]["content"] {
            Value::String(text) => text.clone(),
            // Some endpoints answer in parts, and with no content if they refuse.
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            Value::Null if choice["message"].is_object() => String::new(),
            _ => return Err(no("there is no `message.content`")),
        };
        let usage = |key: &str| value["usage"][key].as_u64();
        let tokens = usage("prompt_tokens").zip(usage("completion_tokens"));
        Ok(RawReply { reply: self.redactor.clean(content), tokens, cut: choice["finish_reason"] == "length" })
    }

    /// The error message of an endpoint.
    fn message(&self, text: &str) -> String {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let said = value["error"]["message"].as_str().or_else(|| value["error"].as_str());
        let said = said.or_else(|| value["message"].as_str()).unwrap_or(text);
        // Keys are removed before the text is cut, because half a key is a secret too.
        let said = self.redactor.clean(said.trim().to_string());
        let short: String = said.chars().take(LONGEST_MESSAGE).collect();
        if short.is_empty() { short } else { format!(": {short}") }
    }

    fn failed(&self, error: &Error) -> Failure {
        let why = self.redactor.clean(error.to_string());
        match error {
            Error::BadUri(_) | Error::Http(_) | Error::InvalidProxyUrl | Error::Tls(_) | Error::Rustls(_) => {
                Failure::Never(why)
            }
            Error::BodyExceedsLimit(_) => Failure::Never(format!("its answer is longer than {} MiB", LONGEST >> 20)),
            Error::Timeout(_) => Failure::Again {
                why: format!("no data arrived within {} s", self.limit.as_secs()),
                after_s: None,
                busy: false,
            },
            _ => Failure::Again { why, after_s: None, busy: false },
        }
    }
}

/// Reads `Retry-After`: seconds, or a date.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(seconds);
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    u64::try_from(date.as_second() - jiff::Timestamp::now().as_second()).ok()
}

/// A variable names no proxy that can be used. The error names the variable but not its value, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable `{0}` names no proxy that kforge can use: expected `http://HOST:PORT`")]
pub struct NotProxy(pub String);

/// The proxy that the environment declares for an address; none for this machine.
///
/// # Errors
/// The variable names no valid proxy.
pub(crate) fn proxy(url: &str, environment: &Environment) -> Result<Option<Proxy>, NotProxy> {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let here = ["localhost", "127.", "[::1]"];
    if here.iter().any(|name| host.starts_with(name)) {
        return Ok(None);
    }
    let names: &[&str] = match url.starts_with("https://") {
        true => &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
        false => &["http_proxy", "all_proxy", "ALL_PROXY"],
    };
    let Some((name, value)) = names.iter().find_map(|name| Some((name, environment.get(name)?))) else {
        return Ok(None);
    };
    let wrong = || NotProxy(name.to_string());
    let stated = Proxy::new(value).map_err(|_| wrong())?;
    let mut builder = Proxy::builder(stated.protocol()).host(stated.host()).port(stated.port());
    if let Some(user) = stated.username() {
        builder = builder.username(user);
    }
    if let Some(password) = stated.password() {
        builder = builder.password(password);
    }
    let except = environment.get("no_proxy").or_else(|| environment.get("NO_PROXY")).unwrap_or_default();
    for entry in except.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        builder = builder.no_proxy(entry);
    }
    builder.build().map(Some).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(vars: &[(&str, &str)]) -> Environment {
        Environment::of(vars.iter().map(|(k, v)| (k.to_string(), v.to_string())))
    }

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        assert_eq!(seconds(" 30 "), Some(30));
        assert_eq!(seconds("Fri, 31 Dec 1999 23:59:59 GMT"), None, "it has passed: no wait is stated");
        assert!(seconds("Fri, 31 Dec 2100 23:59:59 GMT").unwrap() > 1_000_000_000);
        assert_eq!(seconds("soon"), None);
    }

    #[test]
    fn proxies_come_from_the_stated_environment() {
        let of = |url: &str, vars: &[(&str, &str)]| proxy(url, &environment(vars));
        assert!(of("https://a.b/v1", &[]).unwrap().is_none());
        let all = [("https_proxy", "http://u:p@proxy.b:8080"), ("NO_PROXY", "x.b, a.b")];
        let found = of("https://c.b/v1", &all).unwrap().unwrap();
        assert_eq!((found.host(), found.port(), found.username()), ("proxy.b", 8080, Some("u")));
        assert!(found.is_no_proxy(&"https://a.b/v1".parse().unwrap()));
        assert!(!found.is_no_proxy(&"https://c.b/v1".parse().unwrap()));
        for here in ["http://localhost:8000/v1", "http://127.0.0.1:1/v1", "http://[::1]:1/v1"] {
            assert!(of(here, &[("all_proxy", "http://proxy.b:1")]).unwrap().is_none(), "{here}");
        }
        let why = of("http://a.b/v1", &[("http_proxy", "nonsense://secret@x")]).unwrap_err().to_string();
        assert!(why.contains("`http_proxy`") && !why.contains("secret"), "{why}");
    }
}

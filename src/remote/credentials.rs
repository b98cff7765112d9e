//! What is sent with every request so that the server knows who asks: a bearer token from a file, or headers from a credential helper. Knows files and programs;
//! does not know what is asked.
//!
//! A credential helper is a program that answers as those of Bazel do: it is started with `get`, reads `{"uri": URL}` and writes `{"headers": {NAME: [VALUE]}}`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kforge_foundation::process::{Command, End, run};
use serde::Deserialize;
use tonic::metadata::{Ascii, MetadataKey, MetadataMap, MetadataValue};

use super::connection::Access;
use super::error::RemoteError;

/// How long a helper may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a helper writes.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    headers: BTreeMap<String, Vec<String>>,
}

/// The headers for every request.
///
/// # Errors
/// The file or the helper gives none, or they would be sent without encryption.
pub(crate) fn headers(access: &Access, interrupted: &AtomicBool) -> Result<MetadataMap, RemoteError> {
    let mut headers = MetadataMap::new();
    if access.token_file.is_none() && access.credential_helper.is_none() {
        return Ok(headers);
    }
    if !access.url.is_encrypted && !access.url.is_loopback() {
        return Err(RemoteError::Exposed);
    }
    if let Some(path) = &access.token_file {
        let token = read(path)?;
        let token = String::from_utf8_lossy(&token);
        let value = format!("Bearer {}", token.trim());
        let value =
            value.parse().map_err(|_| RemoteError::Credentials(format!("`{}` is not a token", path.display())))?;
        headers.insert("authorization", value);
    }
    if let Some(program) = &access.credential_helper {
        let said = asked(program, &access.environment, &access.url.http(), interrupted)?;
        for (name, value) in
            said.headers.into_iter().flat_map(|(name, values)| values.into_iter().map(move |v| (name.clone(), v)))
        {
            let wrong = || RemoteError::Helper {
                program: program.clone(),
                why: format!("gives a header `{}` that cannot be sent", name.escape_default()),
            };
            let key: MetadataKey<Ascii> = name.to_ascii_lowercase().parse().map_err(|_| wrong())?;
            let value: MetadataValue<Ascii> = value.parse().map_err(|_| wrong())?;
            headers.append(key, value);
        }
    }
    Ok(headers)
}

/// The bytes of a file that the settings name.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, RemoteError> {
    std::fs::read(path).map_err(|e| RemoteError::File { path: path.to_path_buf(), why: e.to_string() })
}

fn asked(
    program: &Path,
    environment: &BTreeMap<String, String>,
    uri: &str,
    interrupted: &AtomicBool,
) -> Result<Answer, RemoteError> {
    let wrong = |why: String| RemoteError::Helper { program: program.to_path_buf(), why };
    let question = serde_json::json!({ "uri": uri }).to_string();
    let mut command = Command::new(program).arg("get").stdin(question);
    for (name, value) in environment {
        command = command.env(name, value);
    }
    let finished = run(&command, Some(PATIENCE), interrupted).map_err(|e| wrong(format!("cannot be started: {e}")))?;
    if finished.end != End::Exited(0) {
        return Err(wrong(finished.end.to_string()));
    }
    serde_json::from_str(&finished.stdout.text()).map_err(|e| wrong(format!("gives no headers: {e}")))
}

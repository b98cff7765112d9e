//! What a server can do, as it announces. Nothing is inferred: some servers ignore what they do not know.

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use reapi::compressor::Value as Compressor;

use super::digests::HashFunction;
use super::error::RemoteError;

/// The largest batch of contents in bytes. Two servers refuse messages of more than 4 MiB whatever they announce.
const LARGEST_BATCH: u64 = 3_500_000;

/// What a server can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    pub(crate) function: HashFunction,
    /// The largest sum of contents in one message, in bytes.
    pub batch: u64,
    /// Whether contents can be sent and read with zstd, outside batches.
    pub has_zstd: bool,
    /// Whether results may be stored.
    pub stores_results: bool,
    /// Whether steps may be executed.
    pub executes: bool,
    /// The ranges of priorities for executions; empty if the server has none.
    pub priorities: Vec<(i32, i32)>,
    /// The names of the digest functions that the server announces.
    pub functions: Vec<String>,
    /// The largest content in bytes; none if the server does not limit it.
    pub largest: Option<u64>,
}

impl Capabilities {
    /// Reads what a server announces.
    pub(crate) fn of(announced: &reapi::ServerCapabilities) -> Result<Capabilities, RemoteError> {
        let cache = announced.cache_capabilities.as_ref().ok_or(RemoteError::Lacks("no cache"))?;
        let function = HashFunction::preferred(&cache.digest_functions)
            .ok_or(RemoteError::Lacks("neither SHA-256 nor BLAKE3 as a digest function"))?;
        let limit = |announced: i64| u64::try_from(announced).ok().filter(|limit| *limit > 0);
        let execution = announced.execution_capabilities.as_ref();
        let priorities = execution.and_then(|execution| execution.execution_priority_capabilities.as_ref());
        let ranges = priorities.into_iter().flat_map(|priorities| &priorities.priorities);
        let executes = execution.is_some_and(|execution| {
            // A server that names none, or only one, has the functions of its cache.
            let named = &execution.digest_functions;
            execution.exec_enabled && (named.is_empty() || named.contains(&function.number()))
        });
        Ok(Capabilities {
            executes,
            priorities: ranges.map(|range| (range.min_priority, range.max_priority)).collect(),
            functions: cache.digest_functions.iter().map(|number| function_name(*number)).collect(),
            function,
            batch: limit(cache.max_batch_total_size_bytes).unwrap_or(LARGEST_BATCH).min(LARGEST_BATCH),
            has_zstd: cache.supported_compressors.contains(&(Compressor::Zstd as i32)),
            stores_results: cache.action_cache_update_capabilities.as_ref().is_some_and(|update| update.update_enabled),
            largest: limit(cache.max_cas_blob_size_bytes),
        })
    }

    /// The name of the function for digests: `blake3` or `sha256`.
    pub fn digest_function(&self) -> &'static str {
        match self.function {
            HashFunction::Blake3 => "blake3",
            HashFunction::Sha256 => "sha256",
        }
    }
}

/// The name of a digest function of the API.
fn function_name(number: i32) -> String {
    match reapi::digest_function::Value::try_from(number) {
        Ok(value) => value.as_str_name().to_ascii_lowercase(),
        Err(_) => format!("number {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_that_are_announced_within_what_servers_take() {
        let announced = |cache| reapi::ServerCapabilities { cache_capabilities: Some(cache), ..Default::default() };
        let cache = |batch| reapi::CacheCapabilities {
            digest_functions: vec![HashFunction::Sha256.number()],
            max_batch_total_size_bytes: batch,
            ..Default::default()
        };
        let of = |batch| Capabilities::of(&announced(cache(batch))).unwrap();
        assert_eq!((of(0).batch, of(1000).batch, of(1 << 40).batch), (LARGEST_BATCH, 1000, LARGEST_BATCH));
        assert_eq!((of(0).has_zstd, of(0).stores_results, of(0).largest), (false, false, None));
        let executing = |exec_enabled, functions: &[HashFunction]| {
            let digest_functions = functions.iter().map(|function| function.number()).collect();
            let execution = reapi::ExecutionCapabilities { exec_enabled, digest_functions, ..Default::default() };
            let announced = announced(cache(0));
            Capabilities::of(&reapi::ServerCapabilities { execution_capabilities: Some(execution), ..announced })
                .unwrap()
                .executes
        };
        assert!(!of(0).executes && executing(true, &[]) && executing(true, &[HashFunction::Sha256]));
        assert!(!executing(false, &[]) && !executing(true, &[HashFunction::Blake3]), "another function");
        assert_eq!(of(0).functions, ["sha256"]);
        let none = reapi::CacheCapabilities { digest_functions: vec![], ..cache(0) };
        assert!(matches!(Capabilities::of(&announced(none)), Err(RemoteError::Lacks(_))));
        assert!(matches!(Capabilities::of(&Default::default()), Err(RemoteError::Lacks(_))));
    }
}

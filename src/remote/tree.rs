//! What a server needs to execute a step: the files of its inputs as a tree, the command, the action. Knows digests and messages; sends nothing.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::protobuf;
use kforge_engine::Blobs;
use kforge_foundation::base::Digest;
use kforge_types::record::Form;
use kforge_types::record::spec::Tree;
use prost::Message as _;

use super::client::Shared;
use super::digests::HashFunction;
use super::step::{Program, RemoteStep};

/// The names in the folder in which the command runs.
pub(crate) const PROGRAM: &str = "kforge";
pub(crate) const SPEC: &str = "spec.json";
pub(crate) const PLACES: &str = "places.json";
pub(crate) const INPUTS: &str = "in";
pub(crate) const OUTPUTS: &str = "out";

/// The words after the program.
pub(crate) const WORDS: [&str; 7] = ["worker", "--once", SPEC, INPUTS, OUTPUTS, "--places", PLACES];

/// What a worker's server gets beyond the step's own limit, which fires first and says more, in seconds.
pub(crate) const BEYOND_S: u64 = 60;

/// Where the bytes of a content are.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    Stored(Digest),
    File(PathBuf),
}

impl Content {
    /// Its bytes; none if the store has lost them.
    pub(crate) fn bytes(&self, store: &dyn Blobs) -> io::Result<Option<Vec<u8>>> {
        match self {
            Content::Bytes(bytes) => Ok(Some(bytes.clone())),
            Content::Stored(digest) => store.get(digest),
            Content::File(path) => std::fs::read(path).map(Some),
        }
    }
}

/// An action, and every content that it consists of, by hash.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prepared {
    pub(crate) action: reapi::Digest,
    /// The program, if it is sent: larger than all the rest, and the same for every step.
    pub(crate) program: Option<String>,
    pub(crate) contents: HashMap<String, (reapi::Digest, Content)>,
}

/// A folder that is being made.
#[derive(Default)]
struct Folder {
    files: BTreeMap<String, (reapi::Digest, bool)>,
    folders: BTreeMap<String, Folder>,
}

impl Folder {
    /// Adds a file by its path. Refuses one that leads elsewhere.
    fn add(&mut self, path: &str, digest: reapi::Digest, is_executable: bool) -> io::Result<()> {
        let mut at = self;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            if part.is_empty() || part == "." || part == ".." || part.contains('\0') {
                return Err(io::Error::other(format!("`{path}` is not a path in a tree")));
            }
            if parts.peek().is_none() {
                at.files.insert(part.to_string(), (digest, is_executable));
                break;
            }
            at = at.folders.entry(part.to_string()).or_default();
        }
        Ok(())
    }

    /// The digest of this folder. Adds it and the folders in it to `contents`.
    fn close(self, function: HashFunction, prepared: &mut Prepared) -> reapi::Digest {
        let folder = |(name, folder): (String, Folder)| reapi::DirectoryNode {
            name,
            digest: Some(folder.close(function, prepared)),
        };
        let directories = self.folders.into_iter().map(folder).collect();
        let file = |(name, (digest, is_executable))| reapi::FileNode {
            name,
            digest: Some(digest),
            is_executable,
            ..Default::default()
        };
        let files = self.files.into_iter().map(file).collect();
        prepared.add(function, reapi::Directory { files, directories, ..Default::default() }.encode_to_vec())
    }
}

impl Prepared {
    fn add(&mut self, function: HashFunction, bytes: Vec<u8>) -> reapi::Digest {
        let digest = function.of(&bytes);
        self.contents.insert(digest.hash.clone(), (digest.clone(), Content::Bytes(bytes)));
        digest
    }
}

/// The action of a step.
///
/// # Errors
/// A content cannot be read, or has a path that leads elsewhere.
pub(crate) fn prepared(step: &RemoteStep, shared: &Shared, function: HashFunction) -> io::Result<Prepared> {
    let mut prepared = Prepared::default();
    let mut root = Folder::default();
    let stored = |prepared: &mut Prepared, digest: &Digest| -> io::Result<reapi::Digest> {
        let named = shared.hashed(digest, function)?;
        prepared.contents.entry(named.hash.clone()).or_insert_with(|| (named.clone(), Content::Stored(*digest)));
        Ok(named)
    };
    for input in &step.inputs {
        let path = format!("{INPUTS}/{}", input.name);
        let digest = stored(&mut prepared, &input.digest)?;
        if input.form == Form::Blob {
            root.add(&path, digest, false)?;
            continue;
        }
        let bytes = shared.store.get(&input.digest)?.ok_or(io::ErrorKind::NotFound)?;
        let tree: Tree = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
        for (name, digest) in &tree.files {
            let digest = stored(&mut prepared, digest)?;
            root.add(&format!("{path}/{name}"), digest, false)?;
        }
    }
    root.folders.entry(INPUTS.to_string()).or_default();
    for (name, bytes) in [(SPEC, &step.spec), (PLACES, &step.places)] {
        let digest = prepared.add(function, bytes.clone());
        root.add(name, digest, false)?;
    }
    let program = match &step.program {
        Program::Installed(path) => path.clone(),
        Program::Sent(path) => {
            let digest = shared.hashed_program(path, function)?;
            prepared.program = Some(digest.hash.clone());
            prepared.contents.insert(digest.hash.clone(), (digest.clone(), Content::File(path.clone())));
            root.add(PROGRAM, digest, true)?;
            format!("./{PROGRAM}")
        }
    };
    let input_root = root.close(function, &mut prepared);
    let variable = |(name, value): &(&str, &str)| reapi::command::EnvironmentVariable {
        name: (*name).into(),
        value: (*value).into(),
    };
    let property =
        |(name, value): &(String, String)| reapi::platform::Property { name: name.clone(), value: value.clone() };
    // Servers compare properties as lists, so they are sorted.
    let platform = reapi::Platform { properties: step.properties.iter().map(property).collect() };
    #[expect(deprecated, reason = "servers of versions before 2.2 do not read the properties of the action")]
    let command = reapi::Command {
        arguments: std::iter::once(program).chain(WORDS.map(String::from)).collect(),
        // No `HOME`: a folder that others share may hold settings of a stranger.
        environment_variables: [("PATH", "/usr/local/bin:/usr/bin:/bin")].iter().map(variable).collect(),
        output_paths: vec![OUTPUTS.into()],
        platform: Some(platform.clone()),
        ..Default::default()
    };
    let command = prepared.add(function, command.encode_to_vec());
    let seconds = i64::try_from(step.time_limit_s.saturating_add(BEYOND_S)).unwrap_or(i64::MAX);
    let action = reapi::Action {
        command_digest: Some(command),
        input_root_digest: Some(input_root),
        timeout: Some(protobuf::Duration { seconds, nanos: 0 }),
        do_not_cache: step.is_observed,
        platform: Some(platform),
        ..Default::default()
    };
    prepared.action = prepared.add(function, action.encode_to_vec());
    Ok(prepared)
}

//! Inputs that lie in files in safetensors format: what a file says of its tensors, and the values of one. Knows files; does not know which inputs an operator has.
//!
//! The header is read and checked without the data, so that a plan costs nothing for large files. The data of a tensor is read without that of the others.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use kforge_numerics::reference::Values;
use kforge_numerics::reference::float::decode;
use kforge_types::model::{DType, Tensor};

/// The most bytes of a file. Its content is kept beside sources, and travels with artifacts.
const MOST: u64 = 4 << 30;
/// The most bytes of a header: that of the format's own library.
const MOST_HEADER: u64 = 100_000_000;
/// The bytes before the header: its length.
const BEFORE: u64 = 8;
/// How a pointer of Git LFS begins, and the most bytes that one has.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
const MOST_POINTER: u64 = 1024;

/// Why a file does not give a tensor. The text follows the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum StoredFault {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is not the file itself.
    #[error("is a pointer of Git LFS instead of the file: `git lfs pull` fetches the file")]
    Pointer,
    /// It is too large.
    #[error("has {0} bytes, more than the {MOST} that are allowed")]
    TooLarge(u64),
    /// It has another format.
    #[error("is not in safetensors format: {0}")]
    Malformed(String),
    /// It has no such tensor.
    #[error("has no tensor `{key}`, but {}", listed(.known))]
    NoTensor {
        /// The name.
        key: String,
        /// The names of those that it has, sorted.
        known: Vec<String>,
    },
    /// The tensor is another one than the operator declares.
    #[error("has `{key}` as {found}, expected {expected}")]
    Differs {
        /// The name.
        key: String,
        /// Its type and shape.
        found: String,
        /// Those that are declared.
        expected: String,
    },
}

/// The most names that a message lists.
const LISTED: usize = 8;

fn listed(names: &[String]) -> String {
    let some: Vec<String> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => "none at all".into(),
        all if all > LISTED => format!("{} and {} more", some.join(", "), all - LISTED),
        _ => some.join(", "),
    }
}

/// A tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHeader {
    /// Its type; none if kforge has no such type.
    pub dtype: Option<DType>,
    /// The type in the words of the format: `BF16`.
    pub said: String,
    /// Its extents, outermost first.
    pub shape: Vec<u64>,
}

/// What a file says of a tensor.
///
/// # Errors
/// See [`StoredFault`].
pub fn header(path: &Path, key: &str) -> Result<StoredHeader, StoredFault> {
    let (_, _, info) = opened(path, key)?;
    Ok(said(&info))
}

/// Whether a file has a tensor as it is declared.
///
/// # Errors
/// See [`StoredFault`].
pub fn check(path: &Path, key: &str, tensor: &Tensor) -> Result<(), StoredFault> {
    agrees(&header(path, key)?, key, tensor)
}

/// The values of a tensor, which must be as it is declared.
///
/// # Errors
/// See [`StoredFault`].
pub fn values(path: &Path, key: &str, tensor: &Tensor) -> Result<Values, StoredFault> {
    let (mut file, start, info) = opened(path, key)?;
    agrees(&said(&info), key, tensor)?;
    let (from, to) = info.data_offsets;
    file.seek(SeekFrom::Start(start + from as u64))?;
    let mut bytes = vec![0; to - from];
    file.read_exact(&mut bytes)?;
    if tensor.dtype == DType::Bool {
        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
    Ok(decode(tensor.dtype, &bytes))
}

/// The file, where its data begins, and what it says of a tensor.
fn opened(path: &Path, key: &str) -> Result<(File, u64, TensorInfo), StoredFault> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length > MOST {
        return Err(StoredFault::TooLarge(length));
    }
    if length <= MOST_POINTER {
        let mut all = vec![];
        file.read_to_end(&mut all)?;
        if all.starts_with(POINTER) {
            return Err(StoredFault::Pointer);
        }
        file.rewind()?;
    }
    let malformed = |why: &str| StoredFault::Malformed(why.to_string());
    let mut before = [0; BEFORE as usize];
    file.read_exact(&mut before).map_err(|_| malformed("it has fewer than 8 bytes"))?;
    let of_header = u64::from_le_bytes(before);
    if of_header > MOST_HEADER || of_header > length - BEFORE {
        return Err(malformed("its header is longer than the file, or than 100 MB"));
    }
    let mut header = vec![0; of_header as usize];
    file.read_exact(&mut header)?;
    let metadata: Metadata = serde_json::from_slice(&header).map_err(|e| malformed(&e.to_string()))?;
    let start = BEFORE + of_header;
    if start.checked_add(metadata.data_len() as u64) != Some(length) {
        return Err(malformed("its length is not that of its tensors"));
    }
    let Some(info) = metadata.info(key) else {
        let mut known: Vec<String> = metadata.tensors().into_keys().collect();
        known.sort();
        return Err(StoredFault::NoTensor { key: key.to_string(), known });
    };
    Ok((file, start, info.clone()))
}

fn said(info: &TensorInfo) -> StoredHeader {
    let shape = info.shape.iter().map(|extent| *extent as u64).collect();
    StoredHeader { dtype: dtype(info.dtype), said: format!("{:?}", info.dtype), shape }
}

fn agrees(found: &StoredHeader, key: &str, tensor: &Tensor) -> Result<(), StoredFault> {
    if found.dtype == Some(tensor.dtype) && found.shape == tensor.shape {
        return Ok(());
    }
    let word = found.dtype.map_or_else(|| found.said.clone(), |dtype| dtype.to_string());
    Err(StoredFault::Differs {
        key: key.to_string(),
        found: format!("{word} of shape {:?}", found.shape),
        expected: format!("{} of shape {:?}", tensor.dtype, tensor.shape),
    })
}

fn dtype(of: Dtype) -> Option<DType> {
    Some(match of {
        Dtype::BOOL => DType::Bool,
        Dtype::U8 => DType::U8,
        Dtype::I8 => DType::I8,
        Dtype::U16 => DType::U16,
        Dtype::I16 => DType::I16,
        Dtype::U32 => DType::U32,
        Dtype::I32 => DType::I32,
        Dtype::U64 => DType::U64,
        Dtype::I64 => DType::I64,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::Bf16,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        Dtype::F8_E4M3 => DType::F8e4m3,
        Dtype::F8_E5M2 => DType::F8e5m2,
        Dtype::F8_E8M0 => DType::F8e8m0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::Role;
    use safetensors::tensor::TensorView;

    /// A file with a tensor of each of these types, whose data is these bytes.
    fn file(tensors: &[(&str, Dtype, &[usize], &[u8])]) -> (tempfile::TempDir, std::path::PathBuf) {
        let views = tensors
            .iter()
            .map(|(name, dtype, shape, data)| (*name, TensorView::new(*dtype, shape.to_vec(), data).unwrap()));
        let bytes = safetensors::serialize(views, None).unwrap();
        written(&bytes)
    }

    fn written(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.safetensors");
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    fn why(path: &Path, key: &str, tensor: &Tensor) -> String {
        check(path, key, tensor).unwrap_err().to_string()
    }

    #[test]
    fn the_values_of_each_tensor_are_those_of_its_bytes() {
        let floats: Vec<u8> = [1.5f32, -2.0, f32::INFINITY, 0.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let longs: Vec<u8> = [i64::MIN, 7].iter().flat_map(|x| x.to_le_bytes()).collect();
        let (_folder, path) = file(&[
            ("mask", Dtype::BOOL, &[3], &[0, 1, 2]),
            ("x", Dtype::F32, &[2, 2], &floats),
            ("n", Dtype::I64, &[2], &longs),
            ("half", Dtype::BF16, &[], &[0x80, 0x3f]),
        ]);
        let of = |key: &str, dtype, shape: &[u64]| {
            values(&path, key, &Tensor::dense("t", Role::Input, dtype, shape)).unwrap()
        };
        assert_eq!(of("x", DType::F32, &[2, 2]), Values::Float(vec![1.5, -2.0, f64::INFINITY, 0.0]));
        assert_eq!(of("n", DType::I64, &[2]), Values::Int(vec![i64::MIN, 7]));
        assert_eq!(of("half", DType::Bf16, &[]), Values::Float(vec![1.0]));
        assert_eq!(of("mask", DType::Bool, &[3]), Values::Int(vec![0, 1, 1]));
    }

    #[test]
    fn what_a_file_lacks_is_said_with_what_is_expected() {
        let (_folder, path) = file(&[("x", Dtype::F16, &[2], &[0; 4]), ("c", Dtype::C64, &[1], &[0; 8])]);
        let x = Tensor::dense("x", Role::Input, DType::F32, &[3]);
        assert_eq!(why(&path, "x", &x), "has `x` as f16 of shape [2], expected f32 of shape [3]");
        assert_eq!(why(&path, "c", &x), "has `c` as C64 of shape [1], expected f32 of shape [3]");
        assert_eq!(why(&path, "y", &x), "has no tensor `y`, but `c`, `x`");
        // The layout in memory is the operator's own.
        let apart = Tensor { strides: vec![8], ..Tensor::dense("x", Role::Input, DType::F16, &[2]) };
        assert!(check(&path, "x", &apart).is_ok());
    }

    #[test]
    fn what_is_no_such_file_is_refused_for_its_reason() {
        let x = Tensor::dense("x", Role::Input, DType::F32, &[1]);
        let of = |bytes: &[u8]| {
            let (_folder, path) = written(bytes);
            why(&path, "x", &x)
        };
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1024\n";
        assert_eq!(of(pointer), "is a pointer of Git LFS instead of the file: `git lfs pull` fetches the file");
        for bytes in [&b""[..], b"short", &[0xff; 16], &[2, 0, 0, 0, 0, 0, 0, 0, b'[', b']']] {
            assert!(of(bytes).starts_with("is not in safetensors format: "), "{bytes:?}: {}", of(bytes));
        }
        let (_folder, path) = file(&[("x", Dtype::F32, &[1], &[0; 4])]);
        let mut cut = std::fs::read(&path).unwrap();
        cut.pop();
        assert_eq!(of(&cut), "is not in safetensors format: its length is not that of its tensors");
        let (_folder, path) = written(b"");
        File::options().write(true).open(&path).unwrap().set_len(MOST + 1).unwrap();
        assert_eq!(why(&path, "x", &x), "has 4294967297 bytes, more than the 4294967296 that are allowed");
        assert!(why(Path::new("/nowhere"), "x", &x).starts_with("cannot be read: "));
    }
}

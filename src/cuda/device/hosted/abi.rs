//! The arguments of a launcher, in the layout of `kforge_host.h`. Knows that header; calls nothing.

use std::ffi::{CString, c_char, c_void};
use std::marker::PhantomData;

use super::message::LauncherProblem;
use kforge_types::model::DType;
use kforge_types::model::bound::Scalar;

/// `KFORGE_HOST_VERSION`.
const VERSION: i32 = 1;

/// `kforge_tensor`.
#[repr(C)]
struct Tensor {
    name: *const c_char,
    data: *mut c_void,
    shape: *const i64,
    strides: *const i64,
    bytes: i64,
    rank: i32,
    dtype: i32,
}

/// `kforge_dim`.
#[repr(C)]
struct Dim {
    name: *const c_char,
    value: i64,
}

/// `kforge_param`.
#[repr(C)]
struct Param {
    name: *const c_char,
    integer: i64,
    real: f64,
    dtype: i32,
    reserved: i32,
}

/// `kforge_call`. Its lifetime is that of the data that it points to.
#[repr(C)]
pub(super) struct Call<'a> {
    version: i32,
    tensors: i32,
    tensor: *const Tensor,
    workspace: *const Tensor,
    dim: *const Dim,
    param: *const Param,
    workspaces: i32,
    dims: i32,
    params: i32,
    reserved: i32,
    stream: *mut c_void,
    made: PhantomData<&'a CallMemory>,
}

/// All data that a call points to.
pub(super) struct CallMemory {
    tensors: Vec<Tensor>,
    workspaces: Vec<Tensor>,
    dims: Vec<Dim>,
    params: Vec<Param>,
    _names: Vec<CString>,
    _numbers: Vec<Vec<i64>>,
}

/// The number of a dtype in the header: its index in the list of all dtypes.
fn number(dtype: DType) -> i32 {
    DType::ALL.iter().position(|d| *d == dtype).map_or(-1, |at| at as i32)
}

impl CallMemory {
    /// Creates the data of a problem. `places` has the address of each tensor, then of each workspace.
    pub(super) fn new(asked: &LauncherProblem, places: &[u64]) -> Self {
        let (mut names, mut numbers): (Vec<CString>, Vec<Vec<i64>>) = (vec![], vec![]);
        // Text and numbers are on the heap, so their addresses stay valid when the lists that hold them grow.
        let mut name = |text: &str| {
            names.push(CString::new(text).unwrap_or_default());
            names.last().map_or(std::ptr::null(), |name| name.as_ptr())
        };
        let mut list = |values: Vec<u64>| {
            numbers.push(values.into_iter().map(u64::cast_signed).collect());
            numbers.last().map_or(std::ptr::null(), |list| list.as_ptr())
        };
        let mut places = places.iter().map(|at| *at as *mut c_void).chain(std::iter::repeat(std::ptr::null_mut()));
        let mut place = || places.next().unwrap_or(std::ptr::null_mut());
        let tensors = asked.tensors.iter().map(|tensor| Tensor {
            name: name(&tensor.name),
            data: place(),
            shape: list(tensor.shape.clone()),
            strides: list(tensor.strides.clone()),
            bytes: tensor.bytes().cast_signed(),
            rank: tensor.shape.len() as i32,
            dtype: number(tensor.dtype),
        });
        let tensors = tensors.collect();
        let workspaces = asked.workspaces.iter().map(|buffer| Tensor {
            name: name(&buffer.name),
            data: place(),
            shape: list(vec![buffer.elements]),
            strides: list(vec![1]),
            bytes: (buffer.elements * buffer.dtype.bytes()).cast_signed(),
            rank: 1,
            dtype: number(buffer.dtype),
        });
        let workspaces = workspaces.collect();
        let dims = asked.dims.iter().map(|(dim, value)| Dim { name: name(dim), value: *value }).collect();
        let params = asked.params.iter().map(|param| Param {
            name: name(&param.name),
            integer: match param.value {
                Scalar::Int(value) => value,
                Scalar::Bool(value) => i64::from(value),
                Scalar::Float(value) => value as i64,
            },
            real: param.value.as_f64(),
            dtype: number(param.dtype),
            reserved: 0,
        });
        let params = params.collect();
        CallMemory { tensors, workspaces, dims, params, _names: names, _numbers: numbers }
    }

    /// The call, with a stream.
    pub(super) fn call(&self, stream: *mut c_void) -> Call<'_> {
        Call {
            version: VERSION,
            tensors: self.tensors.len() as i32,
            tensor: self.tensors.as_ptr(),
            workspace: self.workspaces.as_ptr(),
            dim: self.dims.as_ptr(),
            param: self.params.as_ptr(),
            workspaces: self.workspaces.len() as i32,
            dims: self.dims.len() as i32,
            params: self.params.len() as i32,
            reserved: 0,
            stream,
            made: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::HOST_HEADER;
    use kforge_types::model::bound::{Buffer, Fill, Param as Bound};
    use kforge_types::model::{Role, Tensor as Declared};

    fn asked() -> LauncherProblem {
        let tensor = |name: &str, role, dtype, shape: &[u64], strides: &[u64]| Declared {
            strides: strides.to_vec(),
            ..Declared::dense(name, role, dtype, shape)
        };
        LauncherProblem {
            dims: vec![("cols".into(), 5), ("rows".into(), 3)],
            params: vec![
                Bound { name: "eps".into(), dtype: DType::F32, value: Scalar::Float(0.5) },
                Bound { name: "causal".into(), dtype: DType::Bool, value: Scalar::Bool(true) },
            ],
            tensors: vec![
                tensor("x", Role::Input, DType::F16, &[3, 5], &[8, 1]),
                tensor("y", Role::Output, DType::Bool, &[3], &[1]),
            ],
            workspaces: vec![Buffer { name: "part".into(), dtype: DType::F64, elements: 7, fill: Fill::Zero }],
        }
    }

    /// A launcher that prints everything that it receives, compiled with the header for launchers.
    const LAUNCHER: &str = r#"
        #include <stdio.h>
        #include "kforge_host.h"
        extern "C" int run(const kforge_call *call) {
            char *out = (char *)call->stream;
            out += sprintf(out, "%d:", call->version == KFORGE_HOST_VERSION);
            for (int i = 0; i < call->tensors + call->workspaces; i++) {
                const kforge_tensor *t = i < call->tensors ? &call->tensor[i] : &call->workspace[i - call->tensors];
                out += sprintf(out, " %s %d %ld %ld %d", t->name, t->dtype, (long)t->data, (long)t->bytes, t->rank);
                for (int d = 0; d < t->rank; d++) out += sprintf(out, " %ld/%ld", (long)t->shape[d], (long)t->strides[d]);
            }
            for (int i = 0; i < call->dims; i++) out += sprintf(out, " %s=%ld", call->dim[i].name, (long)call->dim[i].value);
            for (int i = 0; i < call->params; i++) {
                const kforge_param *p = &call->param[i];
                out += sprintf(out, " %s=%d:%ld:%g", p->name, p->dtype, (long)p->integer, p->real);
            }
            sprintf(out, " %d %d %d %d", kforge_data(call, "part") == (void *)48, kforge_find(call, "z") == NULL,
                    (int)kforge_dim_of(call, "rows"), KFORGE_BOOL == kforge_param_of(call, "causal")->dtype);
            return 42;
        }"#;

    #[test]
    #[expect(unsafe_code, reason = "a library that the test made is called")]
    fn a_launcher_reads_what_it_is_handed_through_the_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path(HOST_HEADER.0), HOST_HEADER.1).unwrap();
        std::fs::write(path("launch.cpp"), LAUNCHER).unwrap();
        let compiler = ["/usr/bin/g++", "/usr/bin/c++"].into_iter().find(|c| std::path::Path::new(c).exists());
        let made = Command::new(compiler.expect("tests need a C++ compiler"))
            .args(["-Wall", "-Werror", "-shared", "-fPIC", "-o"])
            .args([path("launch.so"), path("launch.cpp")])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let handed = CallMemory::new(&asked(), &[16, 32, 48]);
        let mut said = vec![0u8; 4096];
        let call = handed.call(said.as_mut_ptr().cast());
        // SAFETY: the library was compiled above. Its function takes this argument, and writes less than the buffer holds.
        let answer = unsafe {
            let library = libloading::Library::new(path("launch.so")).unwrap();
            let run: libloading::Symbol<'_, unsafe extern "C" fn(*const Call<'_>) -> i32> =
                library.get(b"run").unwrap();
            run(&call)
        };
        let said = String::from_utf8(said).unwrap();
        let expected =
            "1: x 2 16 42 2 3/8 5/1 y 17 32 3 1 3/1 part 0 48 56 1 7/1 cols=5 rows=3 eps=1:0:0.5 causal=17:1:1 1 1 3 1";
        assert_eq!((answer, said.trim_end_matches('\0')), (42, expected));
    }

    #[test]
    fn the_header_numbers_every_dtype_as_its_place_is() {
        let (_, header) = HOST_HEADER;
        for dtype in DType::ALL {
            let line = format!("KFORGE_{} = {}", dtype.name().to_uppercase(), number(dtype));
            let found = header.lines().any(|l| l.trim().trim_end_matches(',') == line);
            assert!(found, "{line}");
        }
    }
}

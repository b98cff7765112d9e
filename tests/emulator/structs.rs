//! Struct arguments: what the manifest states is laid out as the host's compiler lays the struct out, member by member, and the kernel reads the values.

use kforge::harness::arguments;
use kforge::model::DType;
use kforge::model::bound::{Arg, Scalar, StructField};
use kforge::model::layout::layout;
use kforge::record::FindingKind;

use super::harness::*;

/// A struct with a member of every kind, an array, a struct, and an array of structs. The kernel writes the size, the offset of each member, and the bytes.
const SOURCE: &str = r#"
#include <cstddef>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
struct Pair { short key; double weight; };
struct Inner { signed char tag; const float *at; };
struct All {
  signed char a; short b; int c; long long d;
  unsigned char e; unsigned short f; unsigned g; unsigned long long h;
  bool i; __half j; bool k; __nv_bfloat16 l; float m; unsigned char n; double o;
  __nv_fp8_e4m3 p; const float *q; const int *r; char s[3]; int t[2];
  Inner u; Pair v[2]; const float *const *w; signed char x;
};
#define EACH(M) M(a) M(b) M(c) M(d) M(e) M(f) M(g) M(h) M(i) M(j) M(k) M(l) M(m) M(n) M(o) M(p) M(q) M(r) \
  M(s[0]) M(s[1]) M(s[2]) M(t[0]) M(t[1]) M(u) M(v[0]) M(v[1]) M(w) M(x)
__global__ void reads(All all, int tail, unsigned *offsets, unsigned char *bytes, int *good) {
  int at = 0;
  offsets[at++] = sizeof(All);
#define ONE(member) offsets[at++] = offsetof(All, member);
  EACH(ONE)
  // Copied by members, because padding has no value.
  for (unsigned i = 0; i < sizeof(All); ++i) bytes[i] = 0;
#define COPY(member) memcpy(bytes + offsetof(All, member), &all.member, sizeof all.member);
  EACH(COPY)
  good[0] = all.a == -1 && all.b == -2 && all.c == -3 && all.d == -4 && all.e == 250 && all.f == 65000 && all.g == 4000000000u
    && all.h == 9000000000000000000ull && all.i && __half2float(all.j) == 1.5f && !all.k && __bfloat162float(all.l) == -2.5f && all.m < -3e38f
    && all.n == 7 && all.o == 0.1 && float(all.p) == 0.5f;
  good[1] = all.q[0] == 11.0f && all.r == nullptr && all.s[0] == 1 && all.s[2] == 3 && all.t[1] == 5;
  good[2] = all.u.tag == 9 && all.u.at[0] == 12.0f && all.v[0].key == 1 && all.v[1].key == 2 && all.v[1].weight == 4.0;
  good[3] = all.w[0][0] == 11.0f && all.w[1][0] == 13.0f && all.x == 6 && tail == 77;
}
"#;

fn scalar(dtype: DType, value: Scalar) -> StructField {
    StructField::Scalar { dtype, value }
}

fn int_of(dtype: DType, value: i64) -> StructField {
    scalar(dtype, Scalar::Int(value))
}

fn real(dtype: DType, value: f64) -> StructField {
    scalar(dtype, Scalar::Float(value))
}

fn at(buffer: &str, offset: u64) -> StructField {
    StructField::Member(Arg::Pointer { buffer: buffer.into(), offset })
}

fn all() -> Vec<StructField> {
    let pair = |key, weight| StructField::Member(Arg::Struct(vec![int_of(DType::I16, key), real(DType::F64, weight)]));
    vec![
        int_of(DType::I8, -1),
        int_of(DType::I16, -2),
        int_of(DType::I32, -3),
        int_of(DType::I64, -4),
        int_of(DType::U8, 250),
        int_of(DType::U16, 65000),
        int_of(DType::U32, 4_000_000_000),
        int_of(DType::U64, 9_000_000_000_000_000_000),
        scalar(DType::Bool, Scalar::Bool(true)),
        real(DType::F16, 1.5),
        scalar(DType::Bool, Scalar::Bool(false)),
        real(DType::Bf16, -2.5),
        real(DType::F32, f64::NEG_INFINITY),
        int_of(DType::U8, 7),
        real(DType::F64, 0.1),
        real(DType::F8e4m3, 0.5),
        at("x", 4),
        StructField::Member(Arg::Null),
        // char[3] and int[2]: an array is its elements.
        int_of(DType::I8, 1),
        int_of(DType::I8, 2),
        int_of(DType::I8, 3),
        int_of(DType::I32, 4),
        int_of(DType::I32, 5),
        StructField::Member(Arg::Struct(vec![int_of(DType::I8, 9), at("x", 8)])),
        pair(1, 3.0),
        pair(2, 4.0),
        StructField::Member(Arg::Pointers(vec!["y".into(), "z".into()])),
        int_of(DType::I8, 6),
    ]
}

#[test]
fn every_kind_of_member_lies_where_the_compiler_reads_it() {
    let built = build(SOURCE, &["reads"], false);
    let fields = all();
    let (offsets, size) = layout(&fields);
    let args =
        |fields: &[StructField]| vec![Arg::Struct(fields.to_vec()), int(77), ptr("offsets"), ptr("bytes"), ptr("good")];
    let buffers = [
        floats("x", [10.0, 11.0, 12.0]),
        floats("y", [11.0]),
        floats("z", [13.0]),
        output("offsets", fields.len() + 1, 4),
        output("bytes", size as usize, 1),
        output("good", 4, 4),
    ];
    let ran = run_with(&built, vec![launch("reads", 1, 1, args(&fields))], &buffers, &How::default());
    assert!(ran.findings.is_empty(), "{:?}", ran.findings);
    assert_eq!(ran.ints("good"), [1; 4]);
    let compiled: Vec<u64> = ran.ints("offsets").iter().map(|at| *at as u64).collect();
    assert_eq!(compiled, [vec![size], offsets.clone()].concat());
    // Addresses differ from run to run; all other bytes are those that a device gets, too.
    let mut none = |_: &Arg| Ok::<u64, ()>(0);
    let mut bytes = arguments::bytes(&Arg::Struct(fields.clone()), &mut none).unwrap();
    let mut got = ran.buffers["bytes"].clone();
    for (position, field) in fields.iter().enumerate() {
        let inner = match field {
            StructField::Member(Arg::Pointer { .. } | Arg::Pointers(_)) => offsets[position],
            StructField::Member(Arg::Struct(inner)) if matches!(inner[1], StructField::Member(_)) => {
                offsets[position] + layout(inner).0[1]
            }
            _ => continue,
        } as usize;
        bytes[inner..inner + 8].fill(0);
        got[inner..inner + 8].fill(0);
    }
    assert_eq!(got, bytes);

    // A struct of another size is refused with its members and both sizes.
    let ran = run_with(&built, vec![launch("reads", 1, 1, args(&fields[..2]))], &buffers, &How::default());
    let message = &ran.only(FindingKind::LaunchRefused).message;
    let why = format!("is a struct of (i8 at 0, i16 at 2) (4 bytes), the parameter a struct of {size} bytes");
    assert!(message.contains(&why), "{message}");
}

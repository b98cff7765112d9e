//! Names beyond the core of CUDA C++: libcu++, split barriers, pipelines, host code, and features that are not emulated. Each source compiles, and either gives
//! the result that CUDA defines or reports the feature that is not emulated, with its place.

use kforge::record::FindingKind;

use super::ORDERS;
use super::harness::*;

const LIBRARY: &str = r#"
#include <cuda/annotated_ptr>
#include <cuda/cmath>
#include <cuda/functional>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/atomic>
#include <cuda/std/bit>
#include <cuda/std/cmath>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>
#include <nv/target>
__global__ void values(int *out, float *f, const int *x) {
  cuda::std::array<int, 4> a = {1, 2, 3, 4};
  cuda::std::tuple<int, float> t(5, 6.f);
  cuda::std::span<const int> s(x, 4);
  cuda::std::complex<float> c(1.f, 2.f);
  out[0] = a[2] + cuda::std::get<0>(t) + (int)s.size() + s[3];
  out[1] = cuda::std::numeric_limits<int>::max();
  out[2] = cuda::std::is_same_v<cuda::std::remove_cvref_t<const int &>, int> + cuda::std::max(3, 4);
  out[3] = cuda::std::popcount(7u) * 100 + cuda::std::countl_zero(cuda::std::uint32_t(1)) + (int)cuda::std::bit_ceil(5u) * 1000;
  out[4] = cuda::ceil_div(7, 2) * 10 + cuda::maximum<int>()(3, 9) * 100 + cuda::round_up(5, 4);
  NV_IF_TARGET(NV_IS_DEVICE, (out[5] = 1;), (out[5] = 2;))
  NV_IF_TARGET(NV_PROVIDES_SM_90, (out[5] = 3;))
  NV_IF_ELSE_TARGET(NV_PROVIDES_SM_80, (out[6] = 1;), (out[6] = 2;))
  out[7] = (int)cuda::std::bit_cast<cuda::std::uint32_t>(1.0f);
  f[0] = (c * c).real();
  cuda::annotated_ptr<const int, cuda::access_property::streaming> p(x);
  out[8] = p[2] + *(p + 1);
}
__global__ void counts(int *out) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> a;
  __shared__ cuda::std::atomic<unsigned char> small;
  __shared__ cuda::latch<cuda::thread_scope_block> all;
  __shared__ cuda::binary_semaphore<cuda::thread_scope_block> one;
  __shared__ int guarded;
  if (threadIdx.x == 0) { a.store(0); small.store(250); guarded = 0; init(&all, blockDim.x); init(&one, 1); }
  __syncthreads();
  a.fetch_add(1, cuda::memory_order_relaxed);
  a += 2;
  ++a;
  small.fetch_add(1);
  one.acquire();
  guarded = guarded + 1;
  one.release();
  cuda::atomic_ref<int, cuda::thread_scope_device> shared_max(out[0]);
  shared_max.fetch_max((int)threadIdx.x);
  all.arrive_and_wait();
  if (threadIdx.x == 0) { out[1] = a.load(); out[2] = small.load(); out[3] = guarded; }
}
"#;

#[test]
#[ignore = "second tier: many sources"]
fn libcu_gives_what_the_standard_library_and_its_atomics_do() {
    for (check, order) in [(false, ORDERS[0]), (true, ORDERS[1]), (true, ORDERS[2])] {
        let built = build(LIBRARY, &["values", "counts"], check);
        let how = How { order, ..How::default() };
        let data = [output("out", 9, 4), output("f", 1, 4), ints("x", [10, 20, 30, 40])];
        let ran =
            run_with(&built, vec![launch("values", 1, 1, vec![ptr("out"), ptr("f"), ptr("x")])], &data, &how).clean();
        assert_eq!(ran.ints("out"), [52, i32::MAX, 5, 8331, 948, 1, 1, 0x3f80_0000, 50]);
        assert_eq!(ran.floats("f"), [-3.0]);
        let data = [ints("out", [-1, 0, 0, 0]).writable()];
        let ran = run_with(&built, vec![launch("counts", 1, 64, vec![ptr("out")])], &data, &how).clean();
        assert_eq!(ran.ints("out"), [63, 256, (250 + 64) % 256, 64]);
    }
}

const STAGES: &str = r#"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_awbarrier_primitives.h>
namespace cg = cooperative_groups;
__global__ void split(const int *in, int *out, int wait) {
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ int data[64];
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();
  int sum = 0;
  for (int r = 0; r < 3; ++r) {
    cuda::memcpy_async(block, data, in + 64 * r, cuda::aligned_size_t<16>(sizeof data), bar); // split: copies
    auto token = bar.arrive();
    if (wait) bar.wait(std::move(token));
    sum += data[63 - threadIdx.x];                                                            // split: reads
    bar.arrive_and_wait();
  }
  out[threadIdx.x] = sum;
}
__global__ void dropped(int *out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ int rounds;
  if (threadIdx.x == 0) { init(&bar, blockDim.x); rounds = 0; }
  __syncthreads();
  for (unsigned r = 0; r < 4; ++r) {
    if (threadIdx.x % 4 == r && threadIdx.x > 0) { bar.arrive_and_drop(); return; }
    bar.arrive_and_wait();
    if (threadIdx.x == 0) ++rounds;
  }
  if (threadIdx.x == 0) out[0] = rounds;
}
__global__ void primitives(int *out) {
  __shared__ __mbarrier_t bar;
  __shared__ int data[32];
  if (threadIdx.x == 0) __mbarrier_init(&bar, blockDim.x);
  __syncthreads();
  data[threadIdx.x] = threadIdx.x;
  __mbarrier_token_t token = __mbarrier_arrive(&bar);
  while (!__mbarrier_test_wait(&bar, token)) {}
  out[threadIdx.x] = data[31 - threadIdx.x];
}
__global__ void pipes(const int *in, int *out, int chunks, int wait) {
  __shared__ int stage[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int ahead = 0, sum = 0;
  for (int c = 0; c < chunks; ++c) {
    for (; ahead < chunks && ahead < c + 2; ++ahead) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, stage[ahead % 2], in + ahead * 64, sizeof(int) * 64, pipe); // pipes: copies
      pipe.producer_commit();
    }
    if (wait) pipe.consumer_wait();
    sum += stage[c % 2][63 - threadIdx.x];                                                  // pipes: reads
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}
__global__ void roles(const int *in, int *out, int chunks) {
  __shared__ int stage[2][32];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto role = block.thread_rank() < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(block, &state, role);
  int sum = 0, lane = threadIdx.x % 32;
  for (int c = 0; c < chunks; ++c) {
    if (role == cuda::pipeline_role::producer) {
      pipe.producer_acquire();
      cuda::memcpy_async(&stage[c % 2][lane], in + c * 32 + lane, sizeof(int), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      sum += stage[c % 2][31 - lane];
      pipe.consumer_release();
    }
  }
  if (role == cuda::pipeline_role::consumer) out[lane] = sum;
}
__global__ void grouped(const int *in, int *out) {
  __shared__ int data[64];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, data, in, sizeof data);
  cg::wait(block);
  auto arrived = block.barrier_arrive();
  block.barrier_wait(std::move(arrived));
  out[threadIdx.x] = data[63 - threadIdx.x];
}
"#;

#[test]
#[ignore = "second tier: many sources"]
fn split_barriers_and_pipelines_hand_over_what_was_copied() {
    let entries = ["split", "dropped", "primitives", "pipes", "roles", "grouped"];
    let chunk = |t: usize, c: usize, width: usize| (c * width + width - 1 - t) as i32;
    for check in [false, true] {
        let built = build(STAGES, &entries, check);
        for order in ORDERS {
            let how = How { order, ..How::default() };
            let go = |launch| {
                run_with(&built, vec![launch], &[ints("in", 0..512), output("out", 64, 4)], &how).clean().ints("out")
            };
            let got = go(launch("split", 1, 64, vec![ptr("in"), ptr("out"), int(1)]));
            assert!((0..64).all(|t| got[t] == (0..3).map(|c| chunk(t, c, 64)).sum::<i32>()), "{got:?}");
            assert_eq!(go(launch("dropped", 1, 32, vec![ptr("out")]))[0], 4);
            assert_eq!(go(launch("primitives", 1, 32, vec![ptr("out")]))[..32], (0..32).rev().collect::<Vec<_>>());
            let got = go(launch("pipes", 1, 64, vec![ptr("in"), ptr("out"), int(6), int(1)]));
            assert!((0..64).all(|t| got[t] == (0..6).map(|c| chunk(t, c, 64)).sum::<i32>()), "{got:?}");
            let got = go(launch("roles", 1, 64, vec![ptr("in"), ptr("out"), int(5)]));
            assert!((0..32).all(|t| got[t] == (0..5).map(|c| chunk(t, c, 32)).sum::<i32>()), "{got:?}");
            let got = go(launch("grouped", 1, 64, vec![ptr("in"), ptr("out")]));
            assert!((0..64).all(|t| got[t] == chunk(t, 0, 64)), "{got:?}");
        }
    }
}

#[test]
fn a_copy_that_is_not_waited_for_is_a_race() {
    let built = build(STAGES, &["split", "pipes"], true);
    let line = |mark: &str| Some(("k.cu".to_owned(), line_of(STAGES, mark)));
    let launches = [
        ("split", launch("split", 1, 64, vec![ptr("in"), ptr("out"), int(0)])),
        ("pipes", launch("pipes", 1, 64, vec![ptr("in"), ptr("out"), int(6), int(0)])),
    ];
    for (name, launch) in launches {
        let data = [ints("in", 0..512), output("out", 64, 4)];
        let ran = run_with(&built, vec![launch], &data, &How { threads: 1, ..How::default() });
        let found = ran.findings.iter().find(|f| f.kind == FindingKind::Race);
        let places = found.map(|f| [f.line.clone(), f.other_line.clone()]);
        let (copies, reads) = (line(&format!("// {name}: copies")), line(&format!("// {name}: reads")));
        assert!(
            places.as_ref().is_some_and(|p| p.contains(&copies) && p.contains(&reads)),
            "{name}: {:#?}",
            ran.findings
        );
    }
}

const NAMED: &str = r#"
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(2, 1, 1) clusters(int *out, int which) {
  __shared__ int mine;
  if (which == 0) cg::this_cluster().sync(); // cluster sync
  if (which == 1) out[0] = *cg::this_cluster().map_shared_rank(&mine, 1); // distributed
  out[1] = 5;
}
__global__ void tensors(const __grid_constant__ CUtensorMap map, int *out, int which) {
  __shared__ alignas(128) int tile[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (which == 0) cuda::ptx::cp_reduce_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, cuda::ptx::op_add, out, tile, 64); // bulk
  if (which == 1) cuda::ptx::getctarank(cuda::ptx::space_cluster, cuda::device::barrier_native_handle(bar)); // rank
  out[1] = 5;
}
__global__ void fetches(cudaTextureObject_t texture, int *out, int which) {
  if (which == 0) out[0] = (int)tex2D<float>(texture, 1.0f, 2.0f); // texture
  if (which == 1) surf2Dwrite(3, texture, 4, 5); // surface
  if (which == 2) out[0] = (int)tex3DLod<float4>(texture, 1.0f, 2.0f, 3.0f, 0.0f).x; // texture level
  out[1] = 5;
}
template <class T> __global__ void child(T *out) { out[0] = 1; }
__global__ void parent(int *out, int which) {
  if (which == 0) child<int><<<1, 32>>>(out); // dynamic
  if (which == 1) cudaDeviceSynchronize(); // runtime call
  out[1] = 5;
}
__global__ void dependents(int *out) {
  cudaGridDependencySynchronize();
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("prefetch.global.L2 [%0];" ::"l"(out));
  __nanosleep(100);
  out[1] = 5;
  cudaTriggerProgrammaticLaunchCompletion();
}
cudaError_t host_side(int *out, int n, cudaStream_t stream) {
  int device, *more;
  cudaGetDevice(&device);
  cudaMalloc(&more, n * sizeof(int));
  cudaFuncSetAttribute(child<int>, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 16);
  child<int>
      <<<dim3((n + 255) / 256), dim3(256), 0, stream>>>(out);
  child<<<n >> 3, 256>>>(out);
  return cudaGetLastError();
}
"#;

#[test]
fn what_is_named_and_not_emulated_is_unknown_when_it_is_executed() {
    let zero = |count: usize| kforge::model::bound::StructField::Scalar {
        dtype: kforge::model::DType::I64,
        value: kforge::model::bound::Scalar::Int(count as i64),
    };
    for check in [false, true] {
        let built = build(NAMED, &["clusters", "tensors", "fetches", "parent", "dependents"], check);
        let map = || kforge::model::bound::Arg::Struct((0..16).map(|_| zero(0)).collect());
        let cases = [
            ("clusters", 0, "cluster_group::sync", "// cluster sync"),
            ("clusters", 1, "cluster_group::map_shared_rank", "// distributed"),
            ("tensors", 0, "cuda::ptx::cp_reduce_async_bulk", "// bulk"),
            ("tensors", 1, "cuda::ptx::getctarank", "// rank"),
            ("fetches", 0, "tex2D", "// texture"),
            ("fetches", 1, "surf2Dwrite", "// surface"),
            ("fetches", 2, "tex3DLod", "// texture level"),
            ("parent", 0, "kernel launch child<int><<<>>>", "// dynamic"),
            ("parent", 1, "cudaDeviceSynchronize", "// runtime call"),
        ];
        let args = |entry: &str, which: i64| match entry {
            "tensors" => vec![map(), ptr("out"), int(which)],
            "fetches" => vec![long(0), ptr("out"), int(which)],
            _ => vec![ptr("out"), int(which)],
        };
        let data = [ints("out", [0; 64]).writable()];
        for (entry, which, what, mark) in cases {
            let ran = run(&built, launch(entry, 1, 1, args(entry, which)), &data);
            assert_eq!(ran.not_emulated, [format!("{what} at k.cu:{}", line_of(NAMED, mark))]);
            assert!(ran.findings.is_empty(), "{:?}", ran.findings);
            let ran = run(&built, launch(entry, 1, 1, args(entry, 9)), &data);
            assert_eq!(ran.clean().ints("out")[1], 5, "not executed, so not in the way");
        }
        let ran = run(&built, launch("dependents", 1, 1, vec![ptr("out")]), &data);
        assert_eq!(ran.clean().ints("out")[1], 5);
    }
}

#[test]
#[ignore = "second tier: many sources"]
fn a_source_that_only_cuda_compiles_is_unknown_at_the_line_that_asks_for_it() {
    let cases = [
        (
            "#include <thrust/pair.h>\n__global__ void k(int *out) {\n  out[0] = thrust::pair<int, int>::F;\n}\n",
            "thrust::pair of thrust/pair.h",
            3,
        ),
        (
            "#include <cuda/std/array>\n__global__ void k(int *out) {\n  out[0] = cuda::std::in_no_version(1);\n}\n",
            "cuda::std::in_no_version",
            3,
        ),
        (
            "__global__ void k(int *out) {\n  out[0] = (int)__cvta_generic_to_constant(out);\n}\n",
            "__cvta_generic_to_constant",
            2,
        ),
        (
            "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n__global__ void k(int *out) {\n  auto t = cg::tiled_partition<64>(cg::this_thread_block());\n  out[0] = t.size();\n}\n",
            "tiles of more than a warp",
            4,
        ),
    ];
    // In a check build, the compiler reads the same headers with the same macros; one case shows that its binary reports the line, too.
    for (check, cases) in [(false, &cases[..]), (true, &cases[2..3])] {
        for &(text, what, line) in cases {
            let built = build(text, &["k"], check);
            let ran = run(&built, launch("k", 2, 32, vec![ptr("out")]), &[output("out", 1, 4)]);
            assert_eq!(ran.not_emulated, [format!("{what} at k.cu:{line}")]);
            assert!(ran.findings.is_empty(), "{:?}", ran.findings);
        }
    }
}

#[test]
fn more_static_shared_memory_than_a_block_can_have_does_not_compile() {
    let text = |floats: u32| {
        format!(
            "__global__ void k(float *y) {{\n  __shared__ float wide[{floats}];\n  wide[threadIdx.x] = 3;\n  __syncthreads();\n  y[0] = wide[0];\n}}\n"
        )
    };
    for check in [false, true] {
        let ran = run(&build(&text(12288), &["k"], check), launch("k", 1, 1, vec![ptr("y")]), &[output("y", 1, 4)]);
        assert_eq!(ran.clean().floats("y"), [3.0]);
        let log = try_build(&text(12289), &["k"], check, &[]).err().unwrap();
        assert!(log.contains("49156 bytes of static shared memory") && log.contains("`wide`"), "{log}");
    }
}

/// A `clang++` in one of the usual places. Tests that need one are skipped without it.
fn clang() -> Option<&'static std::path::Path> {
    let places = ["/usr/bin/clang++", "/usr/local/bin/clang++"].into_iter().map(std::path::Path::new);
    let found = places.into_iter().find(|path| path.exists());
    if found.is_none() {
        kforge_foundation::base::testing::skipped("there is no clang++ in /usr/bin or /usr/local/bin");
    }
    found
}

#[test]
#[ignore = "second tier: every compiler"]
fn clang_makes_the_same_of_sources_as_gcc() {
    let Some(cxx) = clang() else { return };
    let by_clang = |text: &str, entries: &[&str], check| {
        try_build_by(cxx, text, entries, check, &[]).unwrap_or_else(|log| panic!("{log}"))
    };
    for check in [false, true] {
        let built = by_clang(STAGES, &["split", "pipes", "grouped"], check);
        for order in ORDERS {
            let how = How { order, ..How::default() };
            let data = [ints("in", 0..512), output("out", 64, 4)];
            let args = vec![ptr("in"), ptr("out"), int(6), int(1)];
            let got = run_with(&built, vec![launch("pipes", 1, 64, args)], &data, &how).clean().ints("out");
            assert!((0..64).all(|t| got[t] == (0..6).map(|c| (c * 64 + 63 - t) as i32).sum::<i32>()), "{got:?}");
        }
        let built = by_clang(super::BASIC, &["ops::axpy<float>", "block_sum<128>", "&reverse"], check);
        let mut reverse = launch("&reverse", 1, 100, vec![ptr("d"), int(100)]);
        reverse.shared = 400;
        let ran = run(&built, reverse, &[ints("d", 0..100).writable()]);
        assert_eq!(ran.clean().ints("d"), (0..100).rev().collect::<Vec<_>>());
        let moved = by_clang(
            &format!("// a comment\n\n{}", super::BASIC),
            &["ops::axpy<float>", "block_sum<128>", "&reverse"],
            check,
        );
        assert!(
            built.binary == moved.binary && built.lines != moved.lines,
            "a comment changed the binary (check: {check})"
        );

        let built = by_clang(super::warps::WARPS, &["shuffles", "votes"], check);
        let got = run(&built, launch("votes", 1, 32, vec![ptr("out")]), &[output("out", 96, 4)]).clean().ints("out");
        assert_eq!((got[1] as u32, got[0]), (0xaaaa_0000, 240));

        let built = by_clang(NAMED, &["clusters", "parent"], check);
        let data = [ints("out", [0; 64]).writable()];
        let ran = run(&built, launch("parent", 1, 1, vec![ptr("out"), int(0)]), &data);
        assert_eq!(
            ran.not_emulated,
            [format!("kernel launch child<int><<<>>> at k.cu:{}", line_of(NAMED, "// dynamic"))]
        );
        let text = "__global__ void k(int *out) {\n  out[0] = (int)__cvta_generic_to_constant(out);\n}\n";
        let ran = run(&by_clang(text, &["k"], check), launch("k", 1, 1, vec![ptr("out")]), &data);
        assert_eq!(ran.not_emulated, ["__cvta_generic_to_constant at k.cu:2"]);
        // What a source says of a pointer is no access.
        let text = "__global__ void k(float *out, int wide) {\n  float *p = (float *)__builtin_assume_aligned(out + 1, 16);\n  \
                    if (wide) *(float4 *)(out + 2) = float4{1, 2, 3, 4};\n  else p[0] = 5;\n}\n";
        let built = by_clang(text, &["k"], check);
        let y = [floats("y", [0.0; 8]).writable()];
        let on = |wide: i64| run(&built, launch("k", 1, 1, vec![ptr("y"), int(wide)]), &y);
        assert_eq!(on(0).clean().floats("y")[1], 5.0);
        // clang++ does not check every copy of a vector. In a plain build the processor then refuses it, which is also a failure. In a check build it may pass.
        assert!(check || !on(1).findings.is_empty());
    }
    let hidden = super::mistakes::HIDDEN;
    let built = by_clang(hidden, &["copied", "filled", "spills", "flag_late"], true);
    let how = How { threads: 1, ..How::default() };
    let x = floats("x", (0..80).map(|i| i as f32));
    for (launch, kind) in [
        (launch("copied", 1, 64, vec![ptr("x"), ptr("y"), int(256)]), FindingKind::Race),
        (launch("filled", 1, 1, vec![ptr("y"), int(260)]), FindingKind::OutOfBounds),
        (launch("spills", 1, 32, vec![ptr("y"), int(1)]), FindingKind::OutOfBounds),
        (launch("flag_late", 1, 64, vec![ptr("y"), int(1)]), FindingKind::Race),
    ] {
        let ran = run_with(&built, vec![launch], &[x.clone(), output("y", 64, 4)], &how);
        assert!(ran.only(kind).line.as_ref().is_some_and(|(file, _)| file == "k.cu"), "{:?}", ran.findings);
    }
}

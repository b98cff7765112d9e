//! The binary interface between compiled kernels and the runtime: the context (also declared in `kf_runtime.h`), the table of calls, and the generated stub.
//! Knows symbols, offsets and registers; does not know what the calls do (`hooks`).

use std::ffi::c_void;
use std::fmt::Write as _;

/// The stub's name for the hook that reports a construct that is not emulated. A binary without such constructs has no symbol of that name.
pub(super) const HOOK: &str = "kf_not_emulated";
/// The prefix of an inline PTX statement in the text that is passed to the hook.
pub(super) const PTX: &str = "inline PTX ";

/// The folder of the toolkit's files that were adapted for a source with cub, in the paths of line tables.
pub(super) const ADAPTED: &str = "cccl";
/// The folder of the toolkit's files as they are, in the paths of line tables.
pub(super) const TOOLKIT: &str = "toolkit";

/// The most dynamic shared memory that a block may request, in bytes: 227 KiB, as on compute capability 9.0.
pub const MAX_DYNAMIC_SHARED: u64 = 227 * 1024;

/// The most static shared memory that a kernel may declare, in bytes, on every architecture.
pub(super) const MAX_STATIC_SHARED: u64 = 48 * 1024;

/// `kf_ctx` of `kf_runtime.h`: what the running thread reads about itself. Each OS thread has one.
#[repr(C)]
pub(super) struct Context {
    pub(super) tid: [u32; 3],
    pub(super) linear: u32,
    pub(super) bid: [u32; 3],
    pub(super) exited: u32,
    pub(super) bdim: [u32; 3],
    pub(super) next: u32,
    pub(super) gdim: [u32; 3],
    pub(super) count: u32,
    pub(super) order: *const u32,
    pub(super) coords: *const u32,
    pub(super) exited_lanes: *mut u32,
    pub(super) dynamic_shared: u64,
    pub(super) polls: u32,
    pub(super) total_shared: u32,
    pub(super) exit_pc: *const c_void,
    /// The carry flag of inline PTX (CC.CF), which stays from one statement to the next.
    pub(super) carry: u32,
}

/// An entry's trampoline: runs threads of the current block until all of them have started.
pub(super) type Entry = unsafe extern "C" fn(*mut Context, *mut *mut c_void);

/// The stub's names of the runtime's calls, in the order of the table `kf_targets`.
pub(super) const CALLS: [&str; 16] = [
    "kf_self",
    "kf_barrier",
    "kf_warp",
    "kf_converge",
    "kf_fence",
    "kf_poll",
    "kf_print",
    "kf_assert_failed",
    "kf_trap",
    HOOK,
    "kf_access",
    "__ubsan_handle_out_of_bounds",
    "kf_grid_sync",
    "kf_clock",
    "__ubsan_handle_type_mismatch_v1",
    "kf_bounds_exceeded",
];
const ACCESS: usize = 10;

/// The size in bytes of the page that holds the table of calls.
pub(super) const PAGE: usize = 4096;
const _: () = assert!(8 * CALLS.len() <= PAGE);

/// Bits of an access's kind, as in `kf_runtime.h`.
pub(super) const WRITE: u32 = 1;
pub(super) const VOLATILE: u32 = 2;
pub(super) const ATOMIC: u32 = 4;
pub(super) const UNALIGNED: u32 = 8;
/// An atomic operation that writes without reading the old value.
pub(super) const EXCHANGE: u32 = 16;
/// A volatile access of PTX: relaxed, also in shared memory, where one of C++ is plain.
pub(super) const RELAXED: u32 = 32;
/// A read through the read-only cache: `__ldg`, `ld.global.nc`.
pub(super) const READ_ONLY: u32 = 64;
/// An atomic operation whose outcome does not depend on what its thread read before: compare-and-swap, minimum, maximum, and, or.
pub(super) const SETTLES: u32 = 128;

/// An access to all bytes of an object of any size; some may be padding or members without a value.
pub(super) const WHOLE: u32 = 256;
/// Half of a copy: a read, at once followed by a write of what was read. Without [`WHOLE`], a part of one to shared memory.
pub(super) const COPY: u32 = 512;

/// What a shared address is above the low half of a generic one: `KF_SHARED_FROM` of the headers.
pub(super) const SHARED_FROM: usize = 0x4000_0000;

/// The assembly that every binary is linked with: calls that jump through `kf_targets`, each passing its return address as the sixth argument; the thread
/// sanitizer's hooks, as accesses; compare-and-swap; and one area that all `dynamic` names (undefined thread-local arrays) refer to. The hook for constructs
/// that are not emulated is defined only if something calls it, so the binary itself shows whether it holds such a construct.
pub(super) fn stub(dynamic: &[String], unsupported: bool) -> String {
    let mut s = String::from(".text\n");
    let mut function = |name: &str, body: &str| {
        let _ =
            write!(s, ".globl {name}\n.hidden {name}\n.type {name},@function\n{name}:\n{body}.size {name},.-{name}\n");
    };
    let jump = |index: usize| format!("\tmovq (%rsp), %r9\n\tjmp *.Ltargets+{}(%rip)\n", 8 * index);
    for (index, name) in CALLS.iter().enumerate().filter(|(_, name)| unsupported || **name != HOOK) {
        function(name, &jump(index));
    }
    for (operation, kind) in [("read", 0), ("write", WRITE)] {
        for (prefix, more) in
            [("", 0), ("unaligned_", UNALIGNED), ("volatile_", VOLATILE), ("unaligned_volatile_", UNALIGNED | VOLATILE)]
        {
            for size in [1, 2, 4, 8, 16] {
                let body = format!("\tmovl ${size}, %esi\n\tmovl ${}, %edx\n{}", kind | more, jump(ACCESS));
                function(&format!("__tsan_{prefix}{operation}{size}"), &body);
            }
        }
        let body = format!("\tmovl ${}, %edx\n{}", kind | UNALIGNED | WHOLE, jump(ACCESS));
        function(&format!("__tsan_{operation}_range"), &body);
    }
    // The last one is clang++'s check of what a source only says of a pointer (`__builtin_assume_aligned`); accesses through it have a check of their own.
    for name in [
        "__tsan_init",
        "__tsan_func_entry",
        "__tsan_func_exit",
        "__tsan_vptr_update",
        "__tsan_vptr_read",
        "__ubsan_handle_alignment_assumption",
    ] {
        function(name, "\tret\n");
    }
    // Copies and fills of check builds: each range is an access at the place of the call.
    for (name, reads) in [("memcpy", true), ("memmove", true), ("memset", false)] {
        let mut body = String::from("\ttestq %rdx, %rdx\n\tje 1f\n\tpushq %rdi\n\tpushq %rsi\n\tpushq %rdx\n");
        let copy = if reads { COPY } else { 0 };
        let ranges = [(reads, 8, 0), (true, 16, WRITE)];
        for (_, from, kind) in ranges.into_iter().filter(|(asked, ..)| *asked) {
            let _ = write!(
                body,
                "\tmovq {from}(%rsp), %rdi\n\tmovq (%rsp), %rsi\n\tmovl ${}, %edx\n\tmovq 24(%rsp), %r9\n\tcall *.Ltargets+{}(%rip)\n",
                kind | UNALIGNED | WHOLE | copy,
                8 * ACCESS
            );
        }
        let _ = write!(body, "\tpopq %rdx\n\tpopq %rsi\n\tpopq %rdi\n1:\tjmp {name}@PLT\n");
        function(&format!("kf_{name}"), &body);
        // Under the names that clang++ calls in instrumented code.
        function(&format!("__tsan_{name}"), &body);
    }
    // Nothing in shared memory, which is a thread's own memory here, is ever destroyed.
    function("__cxa_thread_atexit", "\txorl %eax, %eax\n\tret\n");
    function("kf_cas1", "\tmovl %esi, %eax\n\tlock cmpxchgb %dl, (%rdi)\n\tmovzbl %al, %eax\n\tret\n");
    function("kf_cas2", "\tmovl %esi, %eax\n\tlock cmpxchgw %dx, (%rdi)\n\tmovzwl %ax, %eax\n\tret\n");
    function("kf_cas4", "\tmovl %esi, %eax\n\tlock cmpxchgl %edx, (%rdi)\n\tret\n");
    function("kf_cas8", "\tmovq %rsi, %rax\n\tlock cmpxchgq %rdx, (%rdi)\n\tret\n");
    function(
        "kf_peek",
        "\tcmpl $8, %esi\n\tje 8f\n\tcmpl $4, %esi\n\tje 4f\n\tcmpl $2, %esi\n\tje 2f\n\tmovzbl (%rdi), %eax\n\tret\n\
         2:\tmovzwl (%rdi), %eax\n\tret\n4:\tmovl (%rdi), %eax\n\tret\n8:\tmovq (%rdi), %rax\n\tret\n",
    );
    // Exported, so that the runtime finds them: the address of this thread's shared memory, and the table.
    s.push_str(
        ".globl kf_tls_anchor\n.type kf_tls_anchor,@function\nkf_tls_anchor:\n\tsubq $8, %rsp\n\tdata16 leaq kf_dynamic_shared@tlsgd(%rip), %rdi\n\
         \t.value 0x6666\n\trex64\n\tcall __tls_get_addr@PLT\n\taddq $8, %rsp\n\tret\n.size kf_tls_anchor,.-kf_tls_anchor\n",
    );
    // A page of its own, which nothing can write once it is filled.
    let bytes = 8 * CALLS.len();
    let _ = write!(
        s,
        ".section .kf_targets,\"aw\",@nobits\n.balign {PAGE}\n.globl kf_targets\n.type kf_targets,@object\n.size kf_targets,{bytes}\nkf_targets:\n.Ltargets:\n\t.zero {PAGE}\n"
    );
    let area = if dynamic.is_empty() { 16 } else { MAX_DYNAMIC_SHARED };
    s.push_str(".section .tbss,\"awT\",@nobits\n.balign 1024\n");
    for name in dynamic.iter().map(String::as_str).chain(["kf_dynamic_shared"]) {
        let _ = write!(s, ".globl {name}\n.hidden {name}\n.type {name},@tls_object\n.size {name},{area}\n{name}:\n");
    }
    let _ = write!(s, "\t.zero {area}\n.section .note.GNU-stack,\"\",@progbits\n");
    s
}

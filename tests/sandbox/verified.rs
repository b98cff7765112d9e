//! Correct, wrong and hostile kernels, compiled for the emulator and verified as in a build: by a verifier, in separate runners.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, SystemTime};

use kforge::harness::message::Response;
use kforge::model::bound::{Buffer, Fill};
use kforge::model::grid::OpenGrid;
use kforge::model::tensor_map::TensorMap;
use kforge::model::{DType, KernelLaunch};
use kforge::record::{Determinism, FindingKind, Fresh, FreshTrial, StepKind, Verdict};
use kforge::reference::generate;

use crate::Test;
use crate::steps::{Bench, COLS, GOOD, REFERENCE, ROWS, asked, kernel, kinds, problem, trial};

pub(crate) const TESTS: &[Test] = &[
    ("a_right_kernel_leaves_an_observation_without_findings", right),
    ("a_wrong_kernel_is_compared_whole", wrong),
    ("elements_that_nobody_wrote_are_named", unwritten),
    ("a_write_beside_a_buffer_is_found_in_a_plain_build", beside),
    ("inputs_cannot_be_changed", inputs),
    ("a_kernel_that_depends_on_thread_order_is_found", ordered),
    ("a_kernel_that_hangs_times_out_and_is_forgotten", hangs),
    ("a_run_is_not_charged_for_the_verifiers_own_time", verifiers_time),
    ("a_kernel_that_ends_the_process_fails", exits),
    ("a_forged_end_of_the_run_hides_no_race", forges),
    ("a_kernel_cannot_replace_the_calls_that_watch_it", unwatched),
    ("no_process_survives_to_rewrite_a_verdict_or_a_tolerance", outlives),
    ("a_kernel_reads_none_of_the_checkers_files", walks),
    ("what_is_said_not_to_be_emulated_must_be_in_the_binary", claims),
    ("a_stack_too_deep_is_believed_of_code_that_may_need_it", deep),
    ("a_kernel_that_starts_threads_without_end_is_ended", crowds),
    ("a_run_reaches_nothing_of_another", runs_apart),
    ("threads_that_left_before_a_barrier_stop_no_comparison", left_early),
    ("what_is_not_emulated_is_neither_pass_nor_fail", not_emulated),
    ("a_grid_of_the_devices_size_has_the_emulators", sized),
    ("only_a_cooperative_grid_can_wait_for_itself", cooperative),
    ("a_kernel_that_reaches_out_is_reported_though_its_values_are_right", reaches_out),
    ("buffers_beyond_the_memory_limit_are_unavailable", too_large),
    ("expectations_that_were_lost_are_made_again", lost_scratch),
    ("values_of_a_fresh_trial_that_cannot_be_stored_fail_the_step_and_not_the_trial", full_scratch),
    ("a_workspace_that_must_be_zero_again_is_checked", workspace),
    ("a_kernel_that_knows_the_fixed_inputs_fails_on_others", memorises),
    ("a_fresh_trial_that_cannot_be_computed_is_left_out_whole", left_out),
    ("what_is_printed_at_a_holdout_shape_or_in_a_fresh_trial_is_shown_to_nobody", prints),
];

fn right() {
    for bench in [Bench::new(), Bench::plain()] {
        let seen = bench.see(GOOD);
        assert_eq!(kinds(&seen), [], "{:?}", seen.findings);
        assert_eq!(seen.determinism, Determinism::Stable);
        assert!(seen.emulated);
        // Every run gave the same bytes, so they are compared only once. Fresh trials are run once.
        let [trial, fresh @ ..] = &seen.trials[..] else { panic!("{seen:?}") };
        let drawn: Vec<&FreshTrial> = fresh.iter().map(|trial| seen.fresh_trial(trial.trial).unwrap()).collect();
        assert_eq!((drawn.len(), seen.asked), (3, 4), "{:?}", seen.fresh);
        assert_eq!([&drawn[1].distribution, &drawn[2].distribution], ["tiny", "ties"]);
        assert!(fresh.iter().all(|trial| trial.outputs[0].front.iter().all(|point| point.error < 1e-5)));
        assert_eq!((trial.outputs[0].elements, trial.outputs[0].class_differing), (ROWS * COLS, 0));
        assert!(trial.outputs[0].front.iter().all(|point| point.error < 1e-5 && point.scale.is_some()));
    }
}

/// A kernel that is correct only on the inputs of the fixed trial. `unknown` is executed by each thread on other inputs.
fn knows_the_fixed_trial(unknown: &str) -> String {
    let values = generate::tensor_values(&problem().tensors[0], 0, None, &trial()).unwrap();
    let first = (values.to_f64(DType::F32)[0] as f32).to_bits();
    format!("if (__float_as_uint(x[0]) == {first}u) {{ {GOOD} }} else {{ {unknown} }}")
}

fn memorises() {
    let bench = Bench::new();
    let seen = bench.see(&knows_the_fixed_trial(&GOOD.replace("+ bias", "+ 2 * bias")));
    let (fixed, fresh): (Vec<_>, Vec<_>) = seen.trials.iter().partition(|seen| seen.trial == 0);
    assert!(fixed.iter().all(|trial| trial.outputs[0].gross.is_none()));
    assert!(!fresh.is_empty() && fresh.iter().all(|trial| trial.outputs[0].gross.is_some()), "{:?}", seen.fresh);
    // Another verification has other inputs, unless it was planned before they were drawn: then they are shared.
    let again = |bench: &Bench| {
        assert!(matches!(bench.verify(), Response::Done { .. }));
        bench.observation().fresh
    };
    let bench = Bench { planned: SystemTime::now(), ..bench };
    let second = again(&bench);
    assert_ne!(second, seen.fresh);
    assert_eq!(again(&bench), second);
    // A finding on such inputs says how to repeat it.
    let seen = Bench::new().see(&knows_the_fixed_trial("__trap();"));
    assert_eq!(kinds(&seen), [FindingKind::Trap], "{:?}", seen.findings);
    assert!(seen.findings[0].message.contains("of a fresh trial: seed "), "{:?}", seen.findings);
}

fn left_out() {
    let bench = Bench::new();
    // A reference that knows only the fixed trial.
    let values = generate::tensor_values(&problem().tensors[0], 0, None, &trial()).unwrap();
    let first = values.to_f64(DType::F32)[0];
    let guard = format!("if (x[0] != {first:e}) std::abort();");
    let reference = REFERENCE.replace("for (int64_t i", &format!("{guard}\n for (int64_t i"));
    bench.file("in/tree-reference/ref.cpp", reference.as_bytes());
    bench.file("in/expected-0", b"");
    let params = asked(&bench.problem, &["y"]);
    let response = bench.step(StepKind::Oracle, serde_json::to_value(params).unwrap());
    assert!(matches!(response, Response::Done { .. }), "{response:?}");
    fs::copy(bench.dir.path().join("out/expected"), bench.dir.path().join("in/expected-0")).unwrap();
    bench.compile(&kernel(GOOD));
    assert!(matches!(bench.verify(), Response::Done { verdict: None, .. }));
    let seen = bench.observation();
    let Some(Fresh::LeftOut(why)) = &seen.fresh else { panic!("{:?}", seen.fresh) };
    assert!(why.contains("`ref.cpp::scale_rows`"), "{why}");
    assert_eq!((seen.trials.len(), seen.asked, kinds(&seen)), (1, 1, vec![]));
}

fn prints() {
    let printed = |bench: &Bench, source: &str| {
        bench.oracle();
        bench.compile(source);
        match bench.verify() {
            Response::Done { notes, .. } => notes.into_iter().map(|note| note.message).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    let says = |text: &str| format!("if (row == 0 && threadIdx.x == 0) printf(\"{text}\"); {GOOD}");
    let with = |body: &str| format!("#include <cstdio>\n{}", kernel(body));
    assert_eq!(printed(&Bench::new(), &with(&says("seen"))), ["seen"]);
    let fresh = says("seen").replace("if (", "if (__float_as_uint(x[0]) != KNOWN && ");
    let known = knows_the_fixed_trial("").split_once("== ").unwrap().1.split_once(')').unwrap().0.to_string();
    assert_eq!(printed(&Bench::new(), &with(&fresh.replace("KNOWN", &known))), [] as [&str; 0]);
    let holdout = Bench { holdout: true, ..Bench::new() };
    assert_eq!(printed(&holdout, &with(&says("seen"))), [] as [&str; 0]);
}

fn wrong() {
    let seen = Bench::new().see(&GOOD.replace("+ bias", "+ bias + (i == 69 ? 1 : 0)"));
    assert_eq!(kinds(&seen), []);
    let output = &seen.trials[0].outputs[0];
    let gross = output.gross.as_ref().unwrap();
    assert_eq!((gross.count, gross.first.index), (ROWS, COLS - 1));
    assert!((output.front[0].error - 1.0).abs() < 1e-5);
}

fn unwritten() {
    let seen = Bench::plain().see(&GOOD.replace("i < cols", "i < 64"));
    let found = &seen.findings[0];
    assert_eq!((found.kind, found.index, found.count), (FindingKind::Unwritten, Some(64), ROWS * 6));
}

fn beside() {
    // The 840 bytes are placed eight bytes before the end of their page, or at its start, so one element too many is within reach.
    let seen = Bench::plain().see(&format!("{GOOD} if (row == 2 && threadIdx.x == 0) y[rows * cols] = 1;"));
    assert!(kinds(&seen).contains(&FindingKind::Canary), "{:?}", seen.findings);
}

fn inputs() {
    let seen = Bench::plain().see(&format!("{GOOD} if (threadIdx.x == 0) const_cast<float*>(x)[row] = 3;"));
    assert!(!seen.findings.is_empty(), "{:?}", seen.findings);
}

fn ordered() {
    // Every thread of a block writes the first element of its row; the last write remains.
    let seen = Bench::plain().see(&format!("{GOOD} y[row * cols] = 100 * threadIdx.x;"));
    assert!(!seen.findings.is_empty() && kinds(&seen).iter().all(|kind| *kind == FindingKind::OrderDependent));
    let Determinism::Differs { output, spread } = &seen.determinism else { panic!("{:?}", seen.determinism) };
    assert_eq!((output.as_str(), *spread), ("y", 6300.0));
    // Runs that differ from the first one are compared too, each under its own name.
    assert!(seen.trials.iter().any(|trial| trial.distribution == "normal, threads reversed"));
}

fn hangs() {
    let mut bench = Bench::plain();
    bench.oracle();
    bench.compile(&format!("extern \"C\" int pause(void);\n{}", kernel("pause();")));
    bench.run = Duration::from_secs(3);
    match bench.verify() {
        Response::Done { verdict: Some(Verdict::Fail(why)), forget: true, .. } => {
            assert!(why.starts_with("the kernel timed out after "), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(kinds(&bench.observation()), [FindingKind::NoProgress]);
}

fn verifiers_time() {
    // Each run has its own time limit, however much of the step's time the verifier itself has used.
    let mut bench = Bench::plain();
    bench.oracle();
    bench.compile(&kernel(GOOD));
    bench.time = Duration::ZERO;
    assert!(matches!(bench.verify(), Response::Done { verdict: None, .. }));
    assert_eq!(kinds(&bench.observation()), []);
}

fn exits() {
    for status in [0, 5, 70, 101] {
        let seen = Bench::plain().see_source(&ends_with(status));
        assert_eq!(kinds(&seen), [FindingKind::Forbidden], "{status}: {:?}", seen.findings);
        assert_eq!(
            seen.findings[0].message,
            "the kernel tried to end the process before the run had ended (exit_group)"
        );
    }
    // There are other ends.
    let killed = format!("extern \"C\" int raise(int);\n{}", kernel("raise(9);"));
    assert_eq!(kinds(&Bench::plain().see_source(&killed)), [FindingKind::Crash]);
}

fn crowds() {
    let start = "static void* wait_for_ever(void*) { for (;;) pause(); }\n";
    let declare =
        "extern \"C\" { int pause(void); int pthread_create(unsigned long*, const void*, void* (*)(void*), void*); }\n";
    // The values are correct. The kernel fails because other processes could start no thread any more.
    let crowd = format!(
        "{GOOD} unsigned long t; if (threadIdx.x == 0) for (int i = 0; i < 2000; ++i) pthread_create(&t, 0, wait_for_ever, 0); if (threadIdx.x == 0) pause();"
    );
    let mut bench = Bench::plain();
    bench.memory = 64 << 30;
    let seen = bench.see_source(&format!("{declare}{start}{}", kernel(&crowd)));
    assert_eq!(kinds(&seen), [FindingKind::LimitExceeded], "{:?}", seen.findings);
}

/// A kernel that ends its process.
fn ends_with(status: i32) -> String {
    format!("extern \"C\" void _exit(int);\n{}", kernel(&format!("_exit({status});")))
}

/// A kernel that writes to its report and then does `after`. The report's descriptor is the first one that is a pipe.
fn says(lines: &str, after: &str) -> String {
    let declare = "extern \"C\" { long write(int, const void*, unsigned long); void _exit(int); int pause(void); long readlink(const char*, char*, unsigned long); }";
    let body = format!(
        "if (row == 0 && threadIdx.x == 0) {{
            const char all[] = {lines:?};
            for (int fd = 3; fd < 64; ++fd) {{
                char path[] = {{'/', 'p', 'r', 'o', 'c', '/', 's', 'e', 'l', 'f', '/', 'f', 'd', '/', '0', '0', 0}}, to[8] = {{}};
                path[14] += fd / 10, path[15] += fd % 10;
                if (fd < 10) path[14] = '0' + fd, path[15] = 0;
                if (readlink(path, to, 5) > 0 && to[0] == 'p') {{ write(fd, all, sizeof all - 1); break; }}
            }}
            {after}
        }}"
    );
    format!("{declare}\n{}", kernel(&body))
}

fn claims() {
    // A kernel can call what constructs compile to with any text. The text counts only if the binary contains it.
    let spelled = |name: &str| -> String {
        let bytes = name.bytes().chain([0]).enumerate().map(|(at, byte)| format!("text[{at}] = {byte};"));
        format!("volatile char text[{}]; {}", name.len() + 1, bytes.collect::<String>())
    };
    let claim = format!("{} kf_not_emulated((const char*)text);", spelled("mma.sync"));
    for bench in [Bench::new(), Bench::plain()] {
        let seen = bench.see(&claim);
        // Nothing was written, and that counts, because nothing excuses it.
        let expected = vec![FindingKind::Protocol, FindingKind::Unwritten];
        assert_eq!((kinds(&seen), &seen.not_emulated), (expected, &None), "{:?}", seen.findings);
        let message = &seen.findings[0].message;
        assert!(message.starts_with("the kernel's process claims that `mma.sync at "), "{message}");
        assert!(message.ends_with("is not emulated, but its binary contains no such construct"), "{message}");
    }
    let real = Bench::plain().see("if (cols > 0) asm(\"mma.sync 0;\");");
    assert!(real.not_emulated.as_ref().is_some_and(|what| what.starts_with("inline PTX: `mma.sync` at ")), "{real:?}");
    // What is written to the report is no claim at all.
    let line = "{\"not-emulated\":{\"cause\":\"stack\",\"what\":\"too much\"}}\n";
    let seen = Bench::plain().see_source(&says(line, "_exit(0);"));
    assert_eq!((kinds(&seen), seen.not_emulated), (vec![FindingKind::Forbidden], None));
}

fn deep() {
    let wide = "volatile float all[50000]; for (int i = 0; i < 50000; ++i) all[i] = i; y[row] = all[row];";
    let recursive = format!(
        "__device__ __attribute__((noinline)) int down(volatile int* n) {{ volatile int own[64]; own[*n & 63] = 1; \
         return *n < 0 ? 0 : down(n) + own[0]; }}\n{}",
        kernel("volatile int n = cols; y[row] = down(&n);")
    );
    for source in [kernel(wide), recursive] {
        for bench in [Bench::new(), Bench::plain()] {
            let seen = bench.see_source(&source);
            assert_eq!(kinds(&seen), [], "{:?}", seen.findings);
            assert!(seen.not_emulated.as_ref().is_some_and(|what| what.contains("bytes of stack")), "{seen:?}");
        }
    }
}

fn runs_apart() {
    // A run does not find what another run left in memory that outlives a launch, in its buffers or in its inherited descriptors: each run counts itself as the
    // first.
    let declare = "extern \"C\" { long lseek(int, long, int); int flock(int, int); int pthread_create(unsigned long*, void*, void* (*)(void*), void*); }\n\
        #include <cstdlib>\nstatic int* before; static void* spoil(void* y) { for (;;) *(volatile float*)y = 7; }\n";
    let body = format!(
        "{GOOD} if (row == 0 && threadIdx.x == 0) {{
            int seen = before ? *before : 0;
            for (int fd = 3; fd < 64; ++fd) {{
                if (lseek(fd, 0, 1) > 0) seen = 1;
                lseek(fd, 99, 0);
            }}
            if (!before) before = (int*)malloc(4);
            *before = 1;
            if (seen) y[0] = 1e9f;
        }}"
    );
    let seen = Bench::plain().see_source(&format!("{declare}{}", kernel(&body)));
    assert_eq!(kinds(&seen), [], "{:?}", seen.findings);
    assert_eq!((seen.trials.len(), seen.determinism), (4, Determinism::Stable));
    assert!(seen.trials[0].outputs[0].gross.is_none());
    // A thread that keeps writing corrupts at most its own run.
    let body = format!(
        "{GOOD} if (row == 2 && threadIdx.x == 0) {{ unsigned long id; pthread_create(&id, 0, spoil, y + 5); }}"
    );
    let seen = Bench::plain().see_source(&format!("{declare}{}", kernel(&body)));
    assert!(
        seen.trials.iter().all(|trial| trial.outputs[0].gross.as_ref().is_none_or(|gross| gross.count == 1)),
        "{seen:?}"
    );
}

/// A race that changes no value: what one thread stores to shared memory, another reads without a barrier, and forgets.
const RACE: &str = "__shared__ float part[2]; if (threadIdx.x == 0) part[0] = part[1] = bias; if (threadIdx.x == 40) (void)*(volatile float*)part;";
const DONE: &str = "{\"trial-done\":{\"trial\":0}}\n";

fn forges() {
    let racy = |after: &str| {
        let source = says(DONE, after)
            .replace("int row = blockIdx.x; (void)row;", &format!("int row = blockIdx.x; {GOOD} {RACE}"));
        // Only the last block forges: the others have written their outputs.
        Bench::new().see_source(&source.replace("row == 0", "row == rows - 1"))
    };
    let seen = Bench::new().see(&format!("{GOOD} {RACE}"));
    assert!(kinds(&seen).contains(&FindingKind::Race), "{:?}", seen.findings);
    // The end of the run, forged before the runner has reported the race, whatever follows.
    for after in ["_exit(0);", "for (;;) pause();", ""] {
        let seen = racy(after);
        assert_eq!(kinds(&seen), [FindingKind::Forbidden], "{after}: {:?}", seen.findings);
        assert_eq!(
            seen.findings[0].message, "the kernel tried to write to a descriptor that is not its own (write)",
            "{after}"
        );
    }
    // The same by code that no launch calls: what runs when a binary is loaded or closed, in a thread, or for a signal to the process.
    let forge = says(DONE, "_exit(0);");
    let (declare, rest) = forge.split_once("__global__").unwrap();
    let body = &rest[rest.find("const char all").unwrap()..rest.rfind('}').unwrap() - 2];
    let declare = format!(
        "{declare}\nextern \"C\" {{ int getpid(void); int kill(int, int); void (*signal(int, void (*)(int)))(int); int pause(void);\
         int pthread_create(unsigned long*, const void*, void* (*)(void*), void*); }}\n"
    );
    let elsewhere = [
        (
            format!(
                "__attribute__((constructor)) static void early() {{ {body} }} __attribute__((destructor)) static void forge() {{ {body} }}"
            ),
            String::new(),
        ),
        (format!("__attribute__((destructor)) static void forge() {{ {body} }}"), String::new()),
        (
            format!("static void* forge(void*) {{ {body} return 0; }}"),
            "unsigned long t; pthread_create(&t, 0, forge, 0); for (;;) pause();".to_string(),
        ),
        (
            format!("static void forge(int) {{ {body} }}"),
            "signal(10, forge); kill(getpid(), 10); for (;;) pause();".to_string(),
        ),
    ];
    for (code, call) in elsewhere {
        let called = format!("{GOOD} {RACE} if (row == rows - 1 && threadIdx.x == 63) {{ {call} }}");
        // Only kernels may be watched, in threads of the emulator.
        let seen = Bench::plain().see_source(&format!("{declare}{code}\n{}", kernel(&called)));
        assert!(kinds(&seen).contains(&FindingKind::Forbidden), "{code}: {:?}", seen.findings);
    }
}

fn unwatched() {
    // The calls of the emulator are no variables of the kernel.
    let replace = format!(
        "extern \"C\" void* kf_targets[];\nstatic void nothing() {{}}\n{}",
        kernel(&format!("if (threadIdx.x == 0 && row == 0) kf_targets[10] = (void*)nothing; {GOOD} {RACE}"))
    );
    for bench in [Bench::new(), Bench::plain()] {
        let seen = bench.see_source(&replace);
        assert!(kinds(&seen).contains(&FindingKind::Crash), "{:?}", seen.findings);
    }
}

fn outlives() {
    // Whoever survives its parent could rewrite what it left: the verdict, the journal, the tolerance, the reference.
    let bench = Bench::plain();
    let precious =
        ["home/actions/record", "work/target/kforge/journal", "work/kernel.toml", "in/tree-reference/ref.cpp"];
    precious[..3].iter().for_each(|name| bench.file(name, b"as it was"));
    let path = |name: &str| bench.dir.path().join(name).display().to_string();
    let declare = "extern \"C\" { int open(const char*, int, ...); int fork(void); int vfork(void); int daemon(int, int); int setsid(void); \
        int rename(const char*, const char*); int prctl(int, ...); long syscall(long, ...); int execl(const char*, const char*, ...); }";
    let mut deeds = vec![
        ("fork();".to_string(), "start a process (clone)"),
        ("vfork();".to_string(), "start a process (vfork)"),
        ("daemon(0, 0);".to_string(), "start a process (clone)"),
        ("setsid();".to_string(), "leave its process group (setsid)"),
        ("prctl(1, 0);".to_string(), "leave its confinement (prctl)"),
        ("execl(\"/bin/sh\", \"sh\", (char*)0);".to_string(), "start a process (execve)"),
    ];
    for name in precious {
        deeds.push((format!("open({:?}, 1);", path(name)), "open a file for writing (open)"));
        deeds.push((format!("rename({:?}, {:?});", path(name), path("gone")), "make, rename or remove files (rename)"));
    }
    bench.oracle();
    for (deed, tried) in deeds {
        let body = format!("{GOOD} if (row == 0 && threadIdx.x == 0) {{ {deed} }}");
        let seen = bench.see_source(&format!("{declare}\n{}", kernel(&body)));
        assert_eq!(kinds(&seen), [FindingKind::Forbidden], "{deed}: {:?}", seen.findings);
        assert_eq!(
            seen.findings[0].message.replace("openat", "open"),
            format!("the kernel tried to {tried}"),
            "{deed}"
        );
    }
    for name in &precious[..3] {
        assert_eq!(fs::read(bench.dir.path().join(name)).unwrap(), b"as it was", "{name}");
    }
    assert_eq!(fs::read(bench.dir.path().join(precious[3])).unwrap(), REFERENCE.as_bytes());
}

fn walks() {
    // What a checker leaves lying about: expected values, the journal, results, the manifest, its own memory, arguments and descriptors.
    let bench = Bench::plain();
    bench.oracle();
    for name in ["work/target/kforge/journal", "home/actions/record", "work/kernel.toml"] {
        bench.file(name, b"here");
    }
    let scratch = fs::read_dir(bench.dir.path().join("scratch")).unwrap().map(|entry| entry.unwrap().path());
    let own = std::process::id();
    let mut read: Vec<String> = scratch.map(|path| path.display().to_string()).collect();
    assert!(!read.is_empty(), "the oracle left no expected values");
    let here = [
        "in/expected-0",
        "in/tree-reference/ref.cpp",
        "work/target/kforge/journal",
        "home/actions/record",
        "work/kernel.toml",
        "scratch",
    ];
    read.extend(here.map(|name| bench.dir.path().join(name).display().to_string()));
    read.extend(
        ["mem", "maps", "environ", "cmdline", "fd", "root/etc/passwd"].map(|file| format!("/proc/{own}/{file}")),
    );
    read.extend(
        ["/proc/self/maps", "/proc/self/environ", "/proc/self/cmdline", "/proc", "/tmp", "/etc/passwd"]
            .map(String::from),
    );
    let tries: String = read.iter().map(|path| format!("if (open({path:?}, 0) >= 0) y[0] = 1e9f;\n")).collect();
    let body = format!("{GOOD} if (row == 0 && threadIdx.x == 0) {{ {tries} }}");
    let seen = bench.see_source(&format!("extern \"C\" int open(const char*, int, ...);\n{}", kernel(&body)));
    // Reading is refused without a report, so that the kernel only finds nothing.
    assert_eq!(kinds(&seen), [], "{:?}", seen.findings);
    assert!(seen.trials[0].outputs[0].gross.is_none(), "something could be read: {:?}", seen.trials);
}

fn left_early() {
    let seen = Bench::new().see(&format!("{GOOD} if (threadIdx.x > 3) return; __syncthreads();"));
    assert_eq!(kinds(&seen), [FindingKind::ExitedBeforeBarrier], "{:?}", seen.findings);
    assert_eq!((seen.asked, seen.trials.len(), seen.determinism), (4, 4, Determinism::Stable));
}

fn not_emulated() {
    let seen = Bench::new().see(&format!("asm volatile(\"wgmma.fence.sync.aligned;\"); {GOOD}"));
    assert_eq!((kinds(&seen), seen.trials.len()), (vec![], 0), "{:?}", seen.findings);
    assert!(
        seen.not_emulated.as_ref().unwrap().starts_with("inline PTX: `wgmma.fence.sync.aligned` at "),
        "{:?}",
        seen.not_emulated
    );
    // Only the driver can make a tensor map. The kernel is not run, so its code has no effect.
    let map = TensorMap {
        buffer: "x".into(),
        dtype: DType::F32,
        extents: vec![COLS, ROWS],
        strides: vec![COLS * 4],
        tile: vec![4, 1],
        swizzle: 0,
        nan: false,
        l2_promotion: 0,
        descriptor: false,
    };
    let source = "#include <cuda.h>\n__global__ void k(const float*, const float*, float*, int, int, float, const __grid_constant__ CUtensorMap map) { __trap(); }\n";
    let mut bench = Bench::new();
    bench.map = Some(map);
    let seen = bench.see_source(source);
    assert_eq!((kinds(&seen), seen.trials.len()), (vec![], 0), "{:?}", seen.findings);
    assert_eq!(seen.not_emulated.as_deref(), Some("a tensor map, argument 7 of `k`"));
}

/// A grid-stride loop over rows, for any grid.
const STRIDING: &str = "for (; row < rows; row += gridDim.x) for (int i = threadIdx.x; i < cols; i += blockDim.x) y[row * cols + i] = x[row * cols + i] * w[i] + bias;";

fn open(extent: &str, launch: KernelLaunch) -> KernelLaunch {
    let open_grid = Some(OpenGrid { extents: vec![extent.into()], names: BTreeMap::new() });
    KernelLaunch { grid: [0; 3], open_grid, ..launch }
}

fn sized() {
    let grid = "if (threadIdx.x == 0 && row == 0) printf(\"%d blocks\", gridDim.x); ";
    let bench = Bench { launch: |launch| open("sm_count * occupancy", launch), ..Bench::new() };
    let seen = bench.see(&format!("{grid}{STRIDING}"));
    assert_eq!(kinds(&seen), [], "{:?}", seen.findings);
    let Response::Done { notes, .. } = bench.verify() else { panic!("done") };
    assert!(notes.iter().any(|note| note.message.contains("16 blocks")), "{notes:?}");

    let none = Bench { launch: |launch| open("sm_count // 100", launch), ..Bench::new() }.see(STRIDING);
    assert_eq!((kinds(&none), none.trials.len()), (vec![FindingKind::LaunchRefused], 0));
    assert!(none.findings[0].message.contains("with sm_count = 8 and occupancy = 2"), "{:?}", none.findings);
}

fn cooperative() {
    let source = format!(
        "#include <cooperative_groups.h>\n{}",
        kernel(&format!("{STRIDING} cooperative_groups::this_grid().sync(); if (row == 0) y[0] += 0.0f;"))
    );
    let together = Bench { launch: |launch| KernelLaunch { cooperative: true, ..launch }, ..Bench::new() };
    assert_eq!(kinds(&together.see_source(&source)), []);
    let apart = Bench::new().see_source(&source);
    assert_eq!(kinds(&apart), [FindingKind::LaunchRefused], "{:?}", apart.findings);
    assert!(apart.findings[0].message.contains("in a launch that is not cooperative"), "{:?}", apart.findings);
}

fn reaches_out() {
    let declare = "extern \"C\" { int open(const char*, int, ...); int socket(int, int, int); int fork(void); int close(int); \
        int dup2(int, int); int unlink(const char*); int raise(int); long write(int, const void*, unsigned long); int puts(const char*); int getpid(void); \
        void* mmap(void*, unsigned long, int, int, int, long); int mprotect(void*, unsigned long, int); }";
    let see = |deed: &str| {
        let body = format!("{GOOD} if (row == 0 && threadIdx.x == 0) {{ {deed} }}");
        Bench::plain().see_source(&format!("{declare}\n{}", kernel(&body)))
    };
    let deeds = [
        ("socket(2, 1, 0);", "open a socket (socket)"),
        ("fork();", "start a process (clone)"),
        ("open(\"/tmp/kforge-was-here\", 66, 0600);", "open a file for writing (open)"),
        ("open(\"/tmp/kforge-was-here\", 1);", "open a file for writing (open)"),
        ("unlink(\"/tmp/kforge-was-here\");", "make, rename or remove files (unlink)"),
        ("mmap(0, 4096, 7, 0x22, -1, 0);", "make memory executable (mmap)"),
        ("mprotect((void*)((unsigned long)getpid & -4096ul), 4096, 5);", "make memory executable (mprotect)"),
        ("for (int fd = 0; fd < 256; ++fd) write(fd, \"\", 1);", "write to a descriptor that is not its own (write)"),
    ];
    for (deed, tried) in deeds {
        let seen = see(deed);
        assert_eq!(kinds(&seen), [FindingKind::Forbidden], "{deed}: {:?}", seen.findings);
        let said = seen.findings[0].message.replace("openat", "open");
        assert_eq!(said, format!("the kernel tried to {tried}"), "{deed}");
    }
    // A forbidden call that changes nothing is refused and has no other consequence.
    let seen = see("if (open(\"/etc/passwd\", 0) >= 0) y[0] = 1e9f; puts(\"to the standard error\");");
    assert_eq!(kinds(&seen), []);
    assert!(seen.trials[0].outputs[0].gross.is_none(), "{:?}", seen.findings);
}

fn too_large() {
    let bench = Bench { memory: 1000, ..Bench::plain() };
    bench.oracle();
    bench.compile(&kernel(GOOD));
    assert!(matches!(bench.verify(), Response::Unavailable { .. }));
}

fn lost_scratch() {
    // A problem of its own name, because a process keeps the values of the problems that it verified on.
    let lost = |dim: &str| {
        let mut bench = Bench::plain();
        bench.problem.dims.insert(dim.into(), 1);
        bench.oracle();
        bench.compile(&kernel(GOOD));
        fs::remove_dir_all(bench.dir.path().join("scratch")).unwrap();
        bench
    };
    let bench = lost("made_again");
    assert!(matches!(bench.verify(), Response::Done { .. }));
    assert_eq!(bench.observation().trials.len(), 4);
    // A reference that gives other values later is not trusted.
    let bench = lost("made_otherwise");
    bench.file("in/tree-reference/ref.cpp", REFERENCE.replace("* w", "+ w").as_bytes());
    let Response::Failed { message, .. } = bench.verify() else { panic!("it was believed") };
    assert!(message.contains("other values than the first time"), "{message}");
}

fn full_scratch() {
    let bench = Bench::plain();
    bench.oracle();
    bench.compile(&kernel(GOOD));
    // Nothing can be written there, as on a full disk.
    let scratch = bench.dir.path().join("scratch");
    if scratch.exists() {
        fs::remove_dir_all(&scratch).unwrap();
    }
    fs::write(&scratch, "").unwrap();
    // Planned now, so that the fresh trials are new and their values are computed.
    let bench = Bench { planned: SystemTime::now(), ..bench };
    let Response::Failed { message, .. } = bench.verify() else { panic!("an observation without a fresh trial") };
    assert!(message.contains("scratch folder"), "{message}");
}

fn workspace() {
    let buffer = Buffer { name: "ws".into(), dtype: DType::I32, elements: 5, fill: Fill::ZeroOnce };
    let source = |value: u32| {
        let body = format!("{GOOD} if (threadIdx.x == 0) atomicExch(ws + row, {value});");
        kernel(&body).replace("float bias)", "float bias, int* ws)")
    };
    let bench = Bench { workspaces: vec![buffer], ..Bench::plain() };
    assert_eq!(kinds(&bench.see_source(&source(0))), []);
    assert_eq!(kinds(&bench.see_source(&source(1))), [FindingKind::WorkspaceDirty]);
}

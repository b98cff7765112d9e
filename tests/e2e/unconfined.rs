//! A system without Landlock: kernels do not run without explicit permission, and results of unconfined runs say so. A test imitates such a system from
//! outside, by a filter on the program that it starts, so that nothing inside kforge, and therefore no candidate, can imitate it.
#![expect(unsafe_code, reason = "a filter is set between fork and exec")]

use std::os::unix::process::CommandExt;
use std::process::Command;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::project::{Built, Project};
use crate::sample::unbuilt;

/// The command on a system whose Linux kernel has no Landlock.
fn without_landlock(mut command: Command) -> Command {
    let rules = [(libc::SYS_landlock_create_ruleset, vec![])].into();
    let missing = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, missing, std::env::consts::ARCH.try_into().unwrap());
    let filter: BpfProgram = filter.unwrap().try_into().unwrap();
    // SAFETY: makes two system calls on memory that already exists.
    unsafe { command.pre_exec(move || seccompiler::apply_filter(&filter).map_err(std::io::Error::other)) };
    command
}

fn build(project: &Project, words: &[&str]) -> Built {
    Built::of(&without_landlock(project.building(words)).output().unwrap())
}

#[test]
#[ignore = "second tier: many builds"]
fn compilers_and_kernels_are_not_run_unconfined_unless_somebody_says_so() {
    let project = unbuilt();
    let refused = build(&project, &[]);
    let compile = refused.step("sample/twice/cpu/compile").to_string();
    assert!(compile.contains("unavailable") && compile.contains("compilers do not run unconfined"), "{compile}");
    assert!(compile.contains("no Landlock"), "{compile}");
    assert!(!refused.executed().iter().any(|step| step.ends_with("/compile")), "{:?}", refused.executed());
    // A binary that was compiled confined is not run here either.
    assert!(project.command(&["check", "--offline"]).output().unwrap().status.success());
    let refused = build(&project, &[]);
    assert_eq!(refused.count("unavailable"), 3, "{}", refused.stderr());
    let verify = refused.step("sample/twice/cpu/tiny/verify").to_string();
    assert!(verify.contains("unavailable") && verify.contains("kernels do not run unconfined"), "{verify}");
    assert!(refused.step("sample/twice/cpu/tiny/judge")["verdict"]["unknown"].is_object());
    let target = &project.report_value()["packages"][0]["kernels"][0]["targets"][0];
    assert!(target["unavailable"].to_string().contains("--allow-unconfined"), "{target}");
    for (project, words) in [
        (unbuilt(), vec!["--allow-unconfined"]),
        (unbuilt().var("KFORGE_SANDBOX_REQUIRED", "false"), vec![]),
        (unbuilt(), vec!["--config", "sandbox.required=false"]),
    ] {
        let built = build(&project, &words).expect(0).says("the kernel ran unconfined: the kernel has no Landlock");
        assert_eq!(built.step("sample/twice/cpu/tiny/judge")["verdict"], "pass");
        let report = project.report_value();
        let shape = &report["packages"][0]["kernels"][0]["targets"][0]["shapes"][0];
        assert!(shape["unconfined"][0].as_str().unwrap().contains("no Landlock"), "{shape}");
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn what_was_seen_unconfined_says_so_wherever_it_is_used() {
    let project = unbuilt();
    build(&project, &["--allow-unconfined"]).expect(0);
    // A build that can confine but needs to run nothing.
    let cloned = project.cloned("again");
    let again = cloned.built(&[]);
    assert!(again.executed().is_empty(), "{:?}", again.executed());
    let judged = again.step("sample/twice/cpu/tiny/judge");
    assert!(judged["notes"].to_string().contains("the kernel ran unconfined"), "{judged}");
    let text = String::from_utf8(cloned.command(&["report"]).output().unwrap().stdout).unwrap();
    assert!(text.contains("unconfined"), "{text}");
    let confined = unbuilt();
    confined.built(&[]);
    assert!(!confined.report().contains("unconfined"));
}

"""Kernels in PyTorch on this GPU: modules that cheat are refused, each for the reason that `expected.toml` names, and correct ones are accepted: those of
tests/python/torch_candidates, and those of tests/gpu/torch_candidates, which need a GPU. Calls of the correct ones are timed, and those that cheat only then are
refused. Prints two tables.

KFORGE_TEST_PYTHON names the Python that has torch with CUDA (python3).
"""

import json
import os
import re
import shutil
import subprocess
import tomllib

from .lab import ROOT

SUITES = (ROOT / "tests/python/torch_candidates", ROOT / "tests/gpu/torch_candidates")
# How long one call may take: a cheat that never ends is ended then.
LIMIT = "20s"
# Of the cheats that need no GPU, those of the shorter form.
QUICK = (
    "cached_by_address", "cached_by_content", "cached_on_the_tensor", "drifts", "prebuilt_result", "zeros", "uninitialised", "part_of_the_rows",
    "falls_back_on_an_error", "falls_back_on_the_reference", "right_in_eval_mode_only", "replaces_copies", "replaces_synchronize", "replaces_events",
    "background_thread", "native_thread", "background_process", "lazy_tensor", "half_inside", "writes_an_input", "walks_the_stack", "never_ends",
)  # fmt: skip


# Kernels that compete: they share an operator, and have baselines. Every other kernel has an operator of its own.
COMPETING = ("eager", "tuned")
BASELINES = {"as_written": "eager", "by_compile": "compile"}

# The milliseconds that `sleeps_a_millisecond` holds the stream, at any clock that the device may have.
SLEPT = (0.9, 3.0)


def torch_candidates(lab, quick, chosen):
    python = os.environ.get("KFORGE_TEST_PYTHON", "python3")
    found = subprocess.run([python, "-c", "import sys, torch; assert torch.cuda.is_available(); print(sys.executable, torch.__version__)"], capture_output=True, text=True, check=False)
    if found.returncode:
        lab.row("torch_candidates", "kernels in PyTorch run on this GPU", None, f"{python} has no torch with CUDA")
        return
    python, release = found.stdout.split()
    cases = [case for case in read(quick) if not chosen or case.name in chosen]
    folder = package(lab, cases)
    done, steps = lab.build(folder, "--jobs", "8", limit=1500, KFORGE_TOOLCHAIN_PYTHON=python, KFORGE_BUILD_TIME_LIMIT=LIMIT)
    targets = dict(lab.targets(folder))
    # A verdict that its timed calls leave open is said where it is not confirmed.
    verdicts = {name: [said(shape) for shape in target["shapes"]] for name, target in targets.items()}
    held = {case.name: case.holds(verdicts.get(case.name, [])) for case in cases}
    table(cases, verdicts, held, release)
    policies(lab, cases, targets)
    kinds = {"cheat": "are refused for their reasons", "timed": "are refused when their calls are timed, for their reasons", "honest": "are accepted", "policy": "are judged by their policies", "beside": "are refused beside a baseline"}
    for kind, what in kinds.items():
        all_of = [case for case in cases if case.kind == kind]
        missed = [f"{case.name}: {verdicts.get(case.name)}"[:300] for case in all_of if not held[case.name]]
        lab.row("torch_candidates", f"{len(all_of)} kernels of the kind `{kind}` {what}", not missed, missed or f"{len(all_of)} in {done.seconds:.0f} s, torch {release}")
    ran = [step for step in steps if step.kind == "verify"]
    missing = [f"{step.id}: {step.wrong()}" for step in ran if not step.ran()]
    lab.row("torch_candidates", "every kernel is verified on the device", bool(ran) and not missing, missing[:3] or f"{len(ran)} steps; {done.last(120)}")
    timed = [step.id for step in steps if step.kind in ("bench", "profile")]
    lab.row("torch_candidates", "none has device times", not timed, timed[:3])
    seen = {step.kernel: step.id for step in steps if step.kind == "judge" and isinstance(step.verdict, dict) and "/against/" in step.id}
    lacking = [case.name for case in cases if case.kind == "beside" and case.name not in seen]
    lab.row("torch_candidates", "what is wrong only beside a baseline is found there", not lacking, lacking or sorted(seen.values())[:2])
    competing(lab, folder, cases, targets, steps)
    times(lab, cases, targets)
    shapes = [shape for _, target in lab.targets(folder) for shape in target["shapes"]]
    unconfined = [shape["unconfined"] for shape in shapes if shape.get("unconfined")]
    lab.row("torch_candidates", "verdicts are of the device, and of confined processes", not unconfined and not any(shape["emulated"] for shape in shapes), unconfined[:2])
    again, steps = lab.build(folder, KFORGE_TOOLCHAIN_PYTHON=python, KFORGE_BUILD_TIME_LIMIT=LIMIT)
    # What took longer than its limit may not do so again.
    executed = {step.kernel for step in steps if step.outcome == "executed"} - {"never_ends", "holds_the_device", None}
    lab.row("torch_candidates", "a second build runs nothing", not executed, sorted(executed)[:3] or f"exit {again.code}, {again.seconds:.1f} s")
    left = lab.left_behind()
    lab.row("torch_candidates", "no process is left", not left, left)
    lab.figures["torch_candidates"] = {"torch": release, "seconds": done.seconds, "held": held, "verdicts": verdicts, "steps": {step.id: step.seconds for step in ran}}


def competing(lab, folder, cases, targets, steps):
    """Variants and kernels of one operator, and baselines, in pairs of calls."""
    names = [case.name for case in cases if case.name in COMPETING]
    if not names:
        return
    of = {name: targets.get(name, {}) for name in names}
    failed = [f"{step.id}: {step.wrong()}" for step in steps if step.kind in ("pairs", "baseline") and not step.ran()]
    lab.row("torch_candidates", "calls are timed in pairs, and beside baselines", not failed, failed[:3])
    chosen = [champion for target in of.values() for champion in target.get("champions", [])]
    lab.row("torch_candidates", "champions are selected by call times", bool(chosen) and not any(one["provisional"] for one in chosen), [one["because"] for one in chosen][:3])
    ratings = [(name, one["baseline"], one["rating"]) for name, target in of.items() for one in target.get("baselines", [])]
    lacking = [f"{name} {baseline}: {rating['verdict']}" for name, baseline, rating in ratings if not rating.get("ratio")]
    lab.row("torch_candidates", "every baseline has a ratio of calls", len(ratings) == len(BASELINES) * len(names) and not lacking, lacking[:3] or f"{len(ratings)} pairs")
    bare = [f"{name} {baseline}: {rating.get('versions')}, {rating['device_ns']}" for name, baseline, rating in ratings if not rating["device_ns"] or not {"torch", "cuda", "gpu"} <= set(rating.get("versions", {}))]
    lab.row("torch_candidates", "every baseline has its versions and a device time, which is shorter than its call", bool(ratings) and not bare and all(rating["device_ns"] < rating["call_ns"] for _, _, rating in ratings), bare[:3] or {f"{name} {baseline}": round(rating["device_ns"]) for name, baseline, rating in ratings})
    own = [rating["ratio"] for name, baseline, rating in ratings if (name, baseline) == ("eager", "as_written") and rating.get("ratio")]
    lab.row("torch_candidates", "the same calls take the same time, within 3 %", bool(own) and all(abs(one["median"] - 1) < 0.03 for one in own), own)
    print("\n| kernel | beside | its call | its device time | the champion's call | ratio of calls |\n|---|---|---|---|---|---|")
    us = lambda ns: "unknown" if ns is None else f"{ns / 1e3:.1f} us"  # noqa: E731
    for name, baseline, rating in ratings:
        ratio = rating.get("ratio")
        text = f"{ratio['median']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]" if ratio else str(rating["verdict"])
        print(f"| {name} | {baseline} | {us(rating['call_ns'])} | {us(rating['device_ns'])} | {us(rating['champion_ns'])} | {text} |")
    for name, target in of.items():
        for champion in target.get("champions", []):
            print(f"{name}: {champion['variant']}, {champion['because']}; {[(one['variant'], round(one['ratio'], 4), [round(end, 4) for end in one['interval']]) for one in champion.get('versus', [])]}")
    report = json.loads((folder / "target/kforge/report.json").read_text()) if (folder / "target/kforge/report.json").exists() else {}
    for package in report.get("packages", []):
        for leader in package.get("leaders", []):
            print(f"leader of {leader['operator']}: {leader['kernel']} {leader['variant']}, {leader['because']}")
    lab.figures["torch_competing"] = {"ratings": ratings, "champions": chosen}


def said(shape):
    """The verdict of a shape, or why it is not confirmed."""
    return {"not confirmed": shape["not_confirmed"]} if shape["verdict"] == "pass" and shape.get("not_confirmed") else shape["verdict"]


def policies(lab, cases, targets):
    """Whether policies hold, and where calls spend time of the device."""
    of = [case for case in cases if case.kind == "policy"]
    print("\n| kernel with a policy | own share | time of the device a call | kernels |\n|---|---|---|---|")
    for case in of:
        for call in targets.get(case.name, {}).get("calls", []):
            own = call.get("own")
            if own:
                kernels = ", ".join(f"{one['name']} ({one['whose'] if isinstance(one['whose'], str) else one['whose']['library']}) {one['share']:.3f}" for one in own["kernels"][:4])
                print(f"| {case.name} | {own['at_least']:.3f} to {own['at_most']:.3f} | {own['device_ns'] / 1e3:.1f} us | {kernels} |")
    lab.figures["torch_policies"] = {case.name: [call.get("own") for call in targets.get(case.name, {}).get("calls", [])] for case in of}


class Case:
    """A kernel of a suite, and what is expected of it."""

    def __init__(self, suite, kind, name, operator, function, reason=None, words=None, policy=None):
        self.folder, self.kind, self.name = suite / {"cheat": "cheats", "policy": "policies"}.get(kind, kind) / name, kind, name
        self.operator, self.function, self.reason, self.words, self.policy = operator, function, reason, words, policy

    def holds(self, verdicts):
        if self.kind == "policy":
            said = [verdict if isinstance(verdict, str) else json.dumps(verdict, ensure_ascii=False) for verdict in verdicts]
            return bool(said) and all(re.search(self.words, text.replace("\\\\", "\\")) if self.words else text == "pass" for text in said)
        if self.kind == "honest":
            # A timed call that is wrong fails it.
            return bool(verdicts) and all(verdict == "pass" for verdict in verdicts)
        fails = [verdict.get("fail", "") if isinstance(verdict, dict) else "" for verdict in verdicts]
        return bool(fails) and all(re.search(self.words, text) for text in fails)


def read(quick):
    """Every case that has one on a device."""
    common, own = (tomllib.loads((suite / "expected.toml").read_text()) for suite in SUITES)
    words = common["reason"] | own["reason"]
    cases = []
    for suite, expected in ((SUITES[0], common), (SUITES[1], own)):
        for name in sorted(path.name for path in (suite / "cheats").iterdir()):
            if suite == SUITES[0] and quick and name not in QUICK:
                continue
            reason = own["cheat"].get(name) or expected["cheat"][name]
            cases.append(Case(suite, "cheat", name, "linear", "ModelNew", reason, words[reason]))
        for name, honest in expected["honest"].items():
            if name not in own["left-out"]:
                cases.append(Case(suite, "honest", name, honest["operator"], honest["function"]))
    for name, words in common["timed"].items():
        cases.append(Case(SUITES[0], "timed", name, "linear", "ModelNew", "found when its calls are timed", words))
    for name, of in own["policy"].items():
        cases.append(Case(SUITES[1], "policy", name, "linear", "ModelNew", "its policy" if "found" in of else None, of.get("found"), of["policy"]))
    for name, words in own["beside"].items():
        cases.append(Case(SUITES[1], "beside", name, "linear", "ModelNew", "found beside a baseline", words))
    cases.append(Case(SUITES[0], "honest", "escapes", "linear", "ModelNew"))
    cases[-1].folder = SUITES[0] / "confined/escapes"
    return cases


def package(lab, cases):
    """A package with all of them, for the architecture at hand and the PyTorch of this machine."""
    folder = lab.folder / "torch_candidates"
    shutil.copytree(SUITES[0] / "reference", folder / "reference")
    text = (SUITES[0] / "operators.toml").read_text()
    text = re.sub(r'\ntorch = "[^"]*"\n', '\ntorch = "system"\n', text)
    text = re.sub(r"^(shapes\.small = \{.*) \}$", r'\1, role = "bench" }', text, flags=re.MULTILINE)
    head, *operators = re.split(r"(?m)^(?=\[operator\.)", text)
    operators = {re.match(r"\[operator\.(\w+)\]", block)[1]: block for block in operators}
    text = head + "".join(operators.values())
    compete = any(case.name in COMPETING for case in cases)
    text += "".join(f'\n[baseline.{name}]\nhow = "{how}"\noperator = "linear"\n' for name, how in BASELINES.items() if compete)
    for case in cases:
        shutil.copytree(case.folder, folder / case.name)
        if case.name not in COMPETING:
            own = f"{case.operator}_of_{case.name}"
            text += "\n" + operators[case.operator].replace(f"[operator.{case.operator}]", f"[operator.{own}]")
            case.operator = own
            if case.kind == "beside":
                text += f'\n[baseline.beside_{case.name}]\nhow = "eager"\noperator = "{own}"\n'
        policy = f"policy = {case.policy}\n" if case.policy else ""
        tuned = "tune.BLOCK = [2, 4]\n" if case.name == "tuned" else ""
        text += f'\n[kernel.{case.name}]\noperator = "{case.operator}"\nlanguage = "torch"\nsource = "{case.name}/kernel.py::{case.function}"\n{tuned}{policy}'
    (folder / "kernel.toml").write_text(text)
    lab.ready(folder)
    shutil.copy(ROOT / "examples/quickstart/kforge.lock", folder)
    return folder


def table(cases, verdicts, held, release):
    print(f"\n| kernel in PyTorch {release} | kind | expected | held | verdict |\n|---|---|---|---|---|")
    for case in sorted(cases, key=lambda case: (case.kind, case.name)):
        said = "; ".join(dict.fromkeys(verdict if isinstance(verdict, str) else " ".join(map(str, *verdict.items())) for verdict in verdicts.get(case.name, [])))
        print(f"| {case.name} | {case.kind} | {case.reason or 'pass'} | {'yes' if held[case.name] else '**no**'} | {said.replace('|', '/')[:160]} |")
    print(json.dumps({"held": sum(held.values()), "of": len(held)}), flush=True)


def times(lab, cases, targets):
    """Call times of the correct kernels."""
    honest = [case.name for case in cases if case.kind == "honest"]
    calls = {name: targets[name].get("calls", []) for name in honest if name in targets}
    lacking = [f"{name}: {found}"[:200] for name, found in calls.items() if len(found) != 1 or found[0]["call_ns"] is None or found[0]["compared"] < 5]
    lab.row("torch_candidates", "calls of every correct kernel are timed, and outputs compared", bool(calls) and not lacking, lacking[:3] or f"{len(calls)} kernels")
    open_ = [name for name in calls for shape in targets[name]["shapes"] if not shape.get("confirmed") or shape.get("not_confirmed")]
    lab.row("torch_candidates", "timed calls confirm their verdicts", bool(calls) and not open_, open_[:3])
    of = {name: found[0] for name, found in calls.items() if found and found[0]["call_ns"]}
    # Both are medians of calls of their own, so a call that is nothing but its hand-over can have the smaller one.
    inside = [name for name, one in of.items() if one["call_ns"] < 0.97 * one["hand_over_ns"]]
    lab.row("torch_candidates", "no call takes less than its hand-over", bool(of) and not inside, inside[:3])
    if "eager" in of and "sleeps_a_millisecond" in of:
        slept = (of["sleeps_a_millisecond"]["call_ns"] - of["eager"]["call_ns"]) / 1e6
        lab.row("torch_candidates", "a call that holds the stream takes that much longer", SLEPT[0] <= slept <= SLEPT[1], f"{slept:.3f} ms")
    lab.figures["torch_calls"] = of
    print("\n| kernel | call time | 95 % interval | hand-over in it | stress class | calls | compared |\n|---|---|---|---|---|---|---|")
    us = lambda ns: "unknown" if ns is None else f"{ns / 1e3:.1f} us"  # noqa: E731
    for name, one in sorted(of.items()):
        low, high = one["interval"] or (None, None)
        print(f"| {name} | {us(one['call_ns'])} | {us(low)} to {us(high)} | {us(one['hand_over_ns'])} | {us(one.get('stress_ns'))} | {one['calls']} | {one['compared']} |")

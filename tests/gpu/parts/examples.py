"""The machine is described, and the examples are built on it: every kernel right on every shape, and nothing left to do after."""

from .lab import ROOT, lines, targets_of


def doctor(lab):
    done = lab.run(["doctor"], lab.folder)
    line = next((l.strip() for l in done.out.splitlines() + done.err.splitlines() if "found GPU" in l), "no line about GPUs")
    lab.figures["machine"] = {"gpu": line, "arch": lab.arch}
    lab.row("doctor", "the GPU is found and described", "found GPU" in line, line)


def examples(lab, names):
    for name, source in names:
        folder = lab.copy(f"example-{name}", source, ready=False)
        targets = targets_of(folder, lab.arch)
        if not targets:
            lab.row("examples", name, False, f"no target of {lab.arch}")
            continue
        words = [word for target in targets for word in ("--target", target)]
        done, steps = lab.build(folder, *words)
        judged = [step for step in steps if step.kind == "judge"]
        right = sum(step.verdict == "pass" for step in judged)
        timed = [step for step in steps if step.kind == "bench"]
        wrong = [f"{step.id}: {step.wrong()}" for step in steps if step.wrong()]
        held = done.code == 0 and right == len(judged) > 0
        lab.row("examples", f"{name}: every variant on every shape", held, f"{right} of {len(judged)} pass, exit {done.code}; {wrong[:2] or ''}")
        known = sum(step.ran() and step.wrong() is None for step in timed)
        lab.row("examples", f"{name}: every bench shape is timed", known == len(timed), f"{known} of {len(timed)}")
        again, _ = lab.build(folder, *words)
        ends = [line["steps"] for line in lines(again.out) if line.get("reason") == "build-finished"]
        executed = ends[-1]["executed"] if ends else None
        lab.row("examples", f"{name}: a second build executes nothing", executed == 0, f"{executed} steps, {again.seconds:.1f} s")
        lab.figures.setdefault("examples", {})[name] = {
            "verdicts": len(judged), "pass": right, "timed": known, "steps": len(steps), "seconds": done.seconds, "again_seconds": again.seconds, "wrong": wrong,
        }


def all_of(quick):
    names = [("quickstart", ROOT / "examples/quickstart"), ("launches", ROOT / "tests/gpu/launches")]
    if not quick:
        names += [("kernels", ROOT / "examples/kernels"), ("generated", ROOT / "examples/generated")]
    return [(name, source) for name, source in names if source.is_dir()]

"""Rounds by rules: three kernels of tests/gpu/optimize go from a naive start to champions at least twice as fast, every method that was applied is classified, the history
of bottlenecks stands in the report, and a second run executes nothing."""

from .lab import ROOT, lines

TIMES = 2


def optimize(lab):
    folder = lab.copy("optimized", ROOT / "tests/gpu/optimize")
    first = lab.run(["optimize", "--message-format", "json"], folder, limit=900)
    lab.row("optimize", "rounds end", first.code == 0, f"exit {first.code}, {first.seconds:.1f} s; {'' if first.code == 0 else first.last()}")
    for name, target in lab.targets(folder):
        rounds = target.get("rounds")
        if not rounds:
            lab.row("optimize", f"{name}: has rounds", False, "none in the report")
            continue
        candidates = rounds["candidates"]
        start = next((c["time_ns"] for c in candidates if c["round"] == 0), None)
        champion = target["champions"][0]["variant"]
        end = next((c["time_ns"] for c in candidates if c["variant"] == champion), None)
        times = start / end if start and end else None
        lab.row("optimize", f"{name}: a champion {TIMES} times as fast as the start", times is not None and times >= TIMES,
                f"{(start or 0) / 1e3:.1f} us to {(end or 0) / 1e3:.1f} us, {times or 0:.1f} times, {champion}")
        fates = {fate["method"]: (fate["fate"], fate["because"]) for fate in rounds["methods"]}
        applied = sorted({method for turn in rounds["rounds"] for method in turn["methods"]})
        classified = [method for method in applied if fates.get(method, (None,))[0]]
        lab.row("optimize", f"{name}: every applied method is classified", applied != [] and classified == applied,
                "; ".join(f"{method} {fates.get(method, ('no fate', ''))[0]}: {fates.get(method, ('', ''))[1]}" for method in applied))
        # What bounded the champion before each round, and what bounds the last.
        seen = [(turn["bound"], turn["gaps"]) for turn in rounds["rounds"] if turn["round"] > 0]
        seen += [(found["roofline"].get("bound"), found["roofline"]["gaps"]) for found in target["rooflines"] if found["variant"] == champion]
        history = " > ".join(f"{bound or 'unknown'} {gaps(of)}" for bound, of in seen)
        lab.row("optimize", f"{name}: the history of its bottlenecks", len(seen) > 1 and all(bound for bound, _ in seen), history)
        lab.figures.setdefault("optimize", {})[name] = {"start_ns": start, "champion_ns": end, "champion": champion, "rounds": rounds["rounds"], "methods": rounds["methods"]}
    again = lab.run(["optimize", "--message-format", "json"], folder, limit=300)
    ends = [line["steps"] for line in lines(again.out) if line.get("reason") == "build-finished"]
    executed = [end["executed"] for end in ends]
    lab.row("optimize", "a second run executes nothing and uses no device", again.code == 0 and executed == [0] and ends[0]["unavailable"] == 0, f"{ends}, {again.seconds:.1f} s; {'' if again.code == 0 else again.last()}")


def gaps(of):
    return "/".join("?" if (of or {}).get(axis) is None else f"{of[axis]:.2f}" for axis in ("compute", "memory", "latency"))

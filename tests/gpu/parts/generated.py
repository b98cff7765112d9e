"""examples/generated with the shapes of its large.toml: every operator verified, its holdout included, and timed; what share of the measured peaks its champion reaches,
against the aims; and, where PyTorch is there, what PyTorch takes for the same or the like. Of the templates' spaces only variants that may win at such shapes are built, and
those without a method that the champions' methods are measured by."""

import json
import re
import subprocess
import sys
import time
import tomllib

from .lab import ROOT, lines, targets_of

PACKAGE = ROOT / "examples/generated"
OVERLAY = PACKAGE / "large.toml"
# The least shares: of the measured bandwidth of memory at the operator's mix of reads and writes, of the measured rate of the tensor cores, and, where f32 is multiplied,
# of what cuBLAS reaches.
BANDWIDTH, MATRICES, CUBLAS = 0.90, 0.60, 0.80
PRODUCTS = ("matmul", "linear")
# What is built, by template, and by kernel where that is not enough: what was seen to be fastest at such shapes, or nearly. A row of the large shapes is 16384 elements.
NARROWED = {
    "elementwise": "VEC > 1 and BLOCK == 128",
    "row-reduction": "VEC > 1 and BLOCK == 512 and not WARP_ROWS",
    "matmul": "VEC > 1 and (UNIT == 'wgmma' and TILE_M == 128 and TILE_N == 256 and STAGES == 4 or UNIT == 'lanes' and TILE_M == 256 and STAGES == 2)",
}
KEPT = "BLOCK * KEEP == 16384 and BLOCK <= 512 and not WARP_ROWS"
NARROWED_KERNELS = {name: KEPT for name in ("softmax", "log_softmax", "rms_norm", "add_rms_norm", "layer_norm")} | {
    "argmax": "VEC > 1 and BLOCK == 256 and not WARP_ROWS",
    "cross_entropy": "VEC > 1 and BLOCK == 512 and not WARP_ROWS and (ONLINE or KEEP == 32)",
}


def condition(kernel, template):
    """Which variants of a kernel are built; on `cpu`, which times nothing, all."""
    return f"arch == 'cpu' or {NARROWED_KERNELS.get(kernel, NARROWED[template])}"


def narrowed(manifest):
    """A manifest whose kernels build those variants only."""

    def kernel(found):
        name, line, before = found["name"], found["line"], found["where"]
        conditions = ([before] if before else []) + [f'"{condition(name, found["template"])}"']
        return f"{line}tune.where = [{', '.join(conditions)}]\n"

    pattern = r'(?P<line>\[kernel\.(?P<name>\w+)\]\noperator = .*\ngenerate = \{ template = "(?P<template>[\w-]+)" \}\n)(?:tune\.where = \[(?P<where>.*)\].*\n)?'
    return re.sub(pattern, kernel, manifest)


def generated(lab, within, chosen=None):
    """One kernel after another, so that what was found of those before stands when the seconds are over. Builds the chosen kernels, or all."""
    folder = lab.copy("generated-large", PACKAGE, ready=False)
    manifest = folder / "kernel.toml"
    manifest.write_text(narrowed(manifest.read_text()))
    words = [word for target in targets_of(folder, lab.arch) for word in ("--target", target)]
    if not words:
        lab.row("generated", "the kernels of examples/generated", None, f"no target of {lab.arch}")
        return
    missing = set(chosen or ()) - set(kernels(folder))
    if missing:
        lab.row("generated", "the kernels of examples/generated", False, f"no kernel named {', '.join(sorted(missing))}")
        return
    words += ["--overlay", str(folder / "large.toml")]
    theirs = beside(lab)
    figures, all_steps, ended, over, start = [], [], [], [], time.monotonic()
    codes, seconds = set(), {}
    for kernel in chosen or kernels(folder):
        left = start + within - time.monotonic()
        done = None
        if left > 0:
            done, steps = lab.build(folder, *words, "--kernel", kernel, limit=left)
        if done is None or done.code is None:
            over.append(kernel)
            continue
        ended.append(kernel)
        codes.add(done.code)
        seconds[kernel] = round(done.seconds, 1)
        all_steps += steps
        figures += [large(name, target, steps, theirs) for name, target in lab.targets(folder) if name == kernel]
    peaks = next((step.summary for step in all_steps if step.kind == "peaks" and step.ran()), None)
    lab.figures["generated"] = {"seconds": seconds, "not_ended": over, "kernels": figures, "kinds": slowest(all_steps), "peaks": peaks, "narrowed": NARROWED | NARROWED_KERNELS}
    if over:
        lab.row("generated", "all kernels within the time limit", None, f"{len(ended)} of {len(ended) + len(over)} in {within:.0f} s; without {', '.join(over)}")
    if not ended:
        return
    verdicts(lab, codes, all_steps, time.monotonic() - start)
    lab.row("generated", "the device's peaks are measured", peaks is not None, peaks)
    for figure in figures:
        told(lab, figure, rate_of("read", peaks))
    fastest(lab, figures)
    again, _ = lab.build(folder, *words, *(word for kernel in ended for word in ("--kernel", kernel)), limit=300)
    ends = [line["steps"] for line in lines(again.out) if line.get("reason") == "build-finished"]
    executed = ends[-1]["executed"] if ends else None
    lab.row("generated", "a second build executes nothing", executed == 0, f"{executed} steps, {again.seconds:.1f} s")


def kernels(folder):
    """Names, in the order in which the manifest has them."""
    return list(tomllib.loads((folder / "kernel.toml").read_text())["kernel"])


def verdicts(lab, codes, steps, seconds):
    judged = [step for step in steps if step.kind == "judge"]
    right = sum(step.verdict == "pass" for step in judged)
    named, held = {step.kernel for step in judged}, [step for step in judged if step.shape == "uneven"]
    wrong = [f"{step.id}: {step.wrong()}" for step in steps if step.wrong()]
    found = f"{right} of {len(judged)} pass, {len(named)} kernels, {len(held)} of them at holdout shapes, exits {sorted(codes)}, {seconds:.0f} s; {wrong[:2] or ''}"
    lab.row("generated", "every variant on every shape", codes == {0} and right == len(judged) > 0 and bool(held), found)
    timed = [step for step in steps if step.kind == "bench"]
    known = sum(step.ran() and step.wrong() is None for step in timed)
    lab.row("generated", "every bench shape is timed", known == len(timed) > 0, f"{known} of {len(timed)}")


def large(name, target, steps, theirs):
    """What the champion for the large shape reaches there."""
    types = target.get("types", "")
    figure = {"kernel": name, "types": types, "roofline": None}
    for found in target["rooflines"]:
        reached = found["achieved"].get("large")
        if reached is None:
            continue
        share = lambda of: reached[of]["share"] if reached.get(of) and reached[of]["measured"] else None
        figure["written"] = (reached["memory"] or {}).get("written", 0)
        figure |= {"variant": found["variant"], "ns": reached["time_ns"], "gb_s": reached["bytes_per_s"] / 1e9, "memory": share("memory"), "compute": share("compute")}
        figure["tflop_s"] = (reached.get("ops_per_s") or 0) / 1e12
        figure["bound"] = found["roofline"].get("bound")
        figure["gaps"], figure["missing"] = found["roofline"]["gaps"], found["roofline"].get("missing", {})
        figure["at"] = found["shape"]
    # Pairs may show that the fastest by medians is not faster than the champion.
    times = [(time["cold_ns"], time["variant"]) for time in target.get("times", []) if time["shape"] == "large" and time["cold_ns"]]
    figure["fastest"] = min(times, default=None)
    figure["overtaken"] = target.get("overtaken", [])
    figure["unknown"] = sorted({f"{step.kind}: {step.wrong()}" for step in steps if step.kernel == name and step.wrong()})
    figure["methods"] = [(m["method"], m["attribution"]["fate"]) for m in target.get("methods", []) if m.get("attribution")]
    figure["beside"] = [line for line in theirs if line["kernel"] == name and line["types"] == types.removeprefix("T=")]
    return figure


def fastest(lab, figures):
    """Whether a champion has a known variant that is more than 1 % faster at a shape of its class. Where pairs do not decide it, that is unknown."""
    all_of = [(figure["kernel"], figure["types"], of) for figure in figures for of in figure["overtaken"]]
    open_of = [of for _, _, of in all_of if of["because"] != "classes"]
    held = True if not all_of else None if len(open_of) == len(all_of) else False
    said = "; ".join(f"{kernel} {types} at {of['shape']}: {of['by']} {of['faster_by']:.1%} faster, {of['because']}" for kernel, types, of in all_of)
    lab.row("generated", "no known variant is more than 1 % faster at a shape of a champion's class", held, said or f"{len(figures)} kernels")


def rate_of(what, peaks):
    """Bytes a second of `read`, `copy` or `write` from the summary of the step `peaks`."""
    found = re.search(rf"\b{what} ([\d.]+) TB/s", peaks or "")
    return float(found[1]) * 1e12 if found else None


def told(lab, figure, read=None):
    name = figure["kernel"] + (f" ({figure['types']})" if figure["types"] else "")
    if "ns" not in figure:
        lab.row("generated", f"{name} at its large shape", False, f"not timed; {figure['unknown'][:1]}")
        return
    product = figure["kernel"] in PRODUCTS
    rate = f"{figure['tflop_s']:.1f} TFLOP/s" if product else f"{figure['gb_s']:.0f} GB/s"
    beside = ", ".join(f"{line['with']} {line['ns'] / 1e3:.1f} us" for line in figure["beside"])
    theirs = next((line["ns"] for line in figure["beside"] if line["with"] == "cuBLAS"), None)
    if product and figure["types"] == "T=f32":
        aim, what, share = CUBLAS, "of cuBLAS", theirs and theirs / figure["ns"]
    elif product:
        aim, what, share = MATRICES, "of the measured matrix rate", figure["compute"]
    else:
        aim, what, share = BANDWIDTH, f"of the measured bandwidth at {figure['written']:.0%} written", figure["memory"]
        rate += f" ({figure['gb_s'] * 1e9 / read:.1%} of reading alone)" if read else ""
    faster = figure["fastest"] if figure["fastest"] and figure["fastest"][0] < 0.99 * figure["ns"] else None
    beside += f"; {faster[0] / 1e3:.1f} us by {faster[1]}" if faster else ""
    said = f"{figure['ns'] / 1e3:.1f} us, {rate}, {'unknown' if share is None else f'{share:.1%}'} {what}; bound by {figure['bound'] or 'what is not known'}; {beside}; {figure['variant']}"
    # An aim that is missed is no failure if it is said what bounds the kernel.
    reached = None if share is None else share >= aim
    lab.row("generated", f"{name}: at least {aim:.0%} {what}", reached, said)
    if reached is False:
        lab.row("generated", f"{name}: the report says what bounds it", figure["bound"] is not None, f"{figure['bound']}: {figure['gaps']} {figure['missing'] or ''}")


def beside(lab):
    done = subprocess.run([sys.executable, str(ROOT / "tests/gpu/generated/beside.py"), str(OVERLAY)], capture_output=True, text=True)
    if done.returncode != 0:
        lab.row("generated", "PyTorch beside it", None, (done.stderr.strip().splitlines()[-1:] or ["it printed nothing"])[0])
    return [line for line in map(json.loads, done.stdout.splitlines()) if "kernel" in line]


def slowest(steps):
    """Steps and seconds in all by kind of step."""
    kinds = {}
    for step in steps:
        count, seconds = kinds.get(step.kind, (0, 0))
        kinds[step.kind] = (count + 1, round(seconds + step.seconds, 2))
    return dict(sorted(kinds.items(), key=lambda of: -of[1][1]))

"""Kernels of one operator that compete: operators of examples/generated at their large shapes, each with a kernel in CUDA C++ and one in Triton, both made by
templates. Each champion is compared with the other, and the report names the leader. Compiling needs Triton, which kforge installs.
"""

from .baselines import GENERATED
from .generated import narrowed
from .lab import ROOT, targets_of

# The release of Triton.
TRITON = "3.9"
# The variants in Triton that are built: those that may be fastest at such shapes.
NARROWED = {name: "KEEP" for name in ("softmax", "rms_norm", "layer_norm", "log_softmax")} | {
    "row_sum": "CHUNK == 4096",
    "row_mean": "CHUNK == 4096",
    "matmul": "TILE_M == 128 and STAGES == 3 and (TILE_N == 256 or TILE_N == 64)",
}


def competing(lab, name):
    """The package in a folder of that name, and the words that build it; none if it has no target for the architecture at hand."""
    folder = lab.copy(name, ROOT / "examples/generated", ready=False)
    targets = targets_of(folder, lab.arch)
    if not targets:
        return None
    manifest = folder / "kernel.toml"
    # The small shapes are only verified.
    text = narrowed(manifest.read_text()).replace('device = "NVIDIA H200"\n', "").replace(', role = "bench" }', " }")
    text = text.replace("[toolchain]\n", f'[toolchain]\ntriton = "{TRITON}"\n', 1)
    names = ", ".join(f'"{name}"' for name in targets)
    for name in GENERATED:
        template = "matmul" if name == "matmul" else "row-reduction"
        text += f'\n[kernel.{name}_triton]\noperator = "{name}"\nlanguage = "triton"\ngenerate = {{ template = "{template}" }}\ntargets = [{names}]\n'
        if name in NARROWED:
            text += f"tune.where = [\"{NARROWED[name]}\"]\n"
    manifest.write_text(text)
    return folder, [word for target in targets for word in ("--target", target)] + ["--overlay", str(folder / "large.toml")]


def leaders(lab, chosen):
    package = competing(lab, "leaders")
    if package is None:
        lab.row("leaders", "kernels in CUDA C++ and in Triton compete", None, f"no target of {lab.arch}")
        return
    folder, words = package
    found = {}
    for name in [name for name in GENERATED if not chosen or name in chosen]:
        done, steps = lab.build(folder, *words, "--kernel", name, "--kernel", f"{name}_triton", limit=300)
        judged = [step for step in steps if step.kind == "judge" and step.verdict != "pass"]
        seats = {target.get("types", ""): target for kernel, target in lab.targets(folder) if kernel == name} if done.code == 0 else {}
        led = [leader for package in lab.report(folder)["packages"] for leader in package.get("leaders", []) if leader["operator"] == name] if seats else []
        what = f"`{name}` and `{name}_triton` are correct, and one of them leads for each choice of types"
        # Pairs must not show another champion to be faster by more than the margin, and medians none by more than what pairs are taken of.
        others = [other for leader in led for other in leader["others"]]
        faster = [other for other in others if (other["pairs"]["interval"][1] < 0.99 if other.get("pairs") else other.get("median", 1) < 0.95)]
        holds = bool(seats) and {leader.get("types", "") for leader in led} == set(seats) and not faster
        lab.row("leaders", what, holds, "; ".join(said(leader) for leader in led) if holds else [*(f"{step.id}: {step.wrong()}" for step in judged[:2]), done.last()])
        times = {}
        for kernel, target in lab.targets(folder) if seats else []:
            for one in target.get("times", []):
                champions = {champion["variant"] for champion in target["champions"] if "large" in champion["shapes"]}
                if one["shape"] == "large" and one["variant"] in champions and not one.get("few"):
                    times[f"{kernel} {target.get('types', '')} {one['variant']}"] = one["cold_ns"]
        found[name] = {"leaders": led, "champions_ns": times, "seconds": done.seconds}
        again, steps = lab.build(folder, *words, "--kernel", name, "--kernel", f"{name}_triton", limit=300)
        ran = [step.id for step in steps if step.outcome == "executed"]
        lab.row("leaders", f"a second build of `{name}` runs nothing", again.code == 0 and not ran, ran[:3] or f"{again.seconds:.1f} s")
    lab.figures["leaders"] = found


def said(leader):
    pairs = [(other["kernel"], other["pairs"]["ratio"], *other["pairs"]["interval"]) for other in leader["others"] if other.get("pairs")]
    others = [f"{kernel} {ratio:.3f} [{low:.3f}, {high:.3f}]" for kernel, ratio, low, high in pairs]
    return f"{leader['kernel']} {leader.get('types', '')}, {leader['variant']}; {', '.join(others) or 'by medians'}"

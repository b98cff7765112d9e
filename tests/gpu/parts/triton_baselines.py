"""Baselines beside champions in Triton: operators of examples/generated at their large shapes, each with a kernel in CUDA C++ and one in Triton, as in the part
`leaders`. PyTorch as written, compiled, and cuBLAS stand in pairs beside the champions of both, and the two ratios of a baseline agree with the pairs of the champions.

KFORGE_TEST_PYTHON names the Python that has torch with CUDA (python3). A KFORGE_HOME that serves `--only leaders --kernel row_mean --kernel matmul` serves this part.
"""

import shutil

from .baselines import told, with_torch
from .lab import ROOT
from .leaders import competing, said

# The ways of each operator.
WAYS = {"row_mean": {"eager": 'how = "eager"', "compile": 'how = "compile"'}, "matmul": {"eager": 'how = "eager"'}}
# How far the ratios of a baseline to two champions may be from the pairs of the champions.
AGREES = 0.05


def triton_baselines(lab, quick):
    part = "triton_baselines"
    python = with_torch(lab, part)
    package = competing(lab, part) if python else None
    if package is None:
        if python:
            lab.row(part, "kernels in CUDA C++ and in Triton beside PyTorch", None, f"no target of {lab.arch}")
        return
    folder, words = package
    manifest = folder / "kernel.toml"
    head, rest = manifest.read_text().split("[operator.matmul]\n", 1)
    # One type of `matmul`: each takes as many processes with PyTorch again.
    text = head + "[operator.matmul]\n" + rest.replace('types = { T = ["f16", "f32"] }', 'types = { T = ["f16"] }', 1)
    text = text.replace("f16 = { atol = 1e-3, ulp = 1 }, f32 = { atol = 1e-4, rtol = 1e-5 }", "f16 = { atol = 1e-3, ulp = 1 }", 1)
    overlay = folder / "large.toml"
    overlay.write_text(overlay.read_text().replace("f16 = { atol = 4e-3, ulp = 1 }, f32 = { atol = 2e-3, rtol = 1e-5 }", "f16 = { atol = 4e-3, ulp = 1 }", 1))
    for name, ways in WAYS.items():
        for way, how in ways.items():
            text += f'\n[baseline.{name}_{way}]\n{how}\nsource = "generated.py::{name}"\noperator = "{name}"\n'
    manifest.write_text(text + '\n[baseline.cublas]\noperator = "matmul"\n')
    shutil.copy(ROOT / "tests/gpu/baselines/generated.py", folder)
    figures = {}
    for name in list(WAYS)[: 1 if quick else None]:
        kernels = (name, f"{name}_triton")
        chosen = [word for kernel in kernels for word in ("--kernel", kernel)]
        done, steps = lab.build(folder, *words, *chosen, limit=300, KFORGE_TOOLCHAIN_PYTHON=python)
        wrong = [f"{step.id}: {step.wrong()}" for step in steps if step.kind in ("judge", "baseline") and (step.wrong() or isinstance(step.verdict, dict))]
        lab.row(part, f"`{name}` and `{name}_triton` are built with their baselines", done.code == 0 and not wrong, wrong[:2] or f"{done.seconds:.0f} s; {done.last(120)}")
        if done.code != 0:
            continue
        rated = {}
        for kernel, target in lab.targets(folder):
            for one in target.get("baselines", []):
                if kernel in kernels and one["shape"] == "large":
                    rated[(kernel, one["baseline"])] = one["rating"]
        names = [f"{name}_{way}" for way in WAYS[name]] + (["cublas"] if name == "matmul" else [])
        lacking = [f"{kernel}/{baseline}" for kernel in kernels for baseline in names if not whole(rated.get((kernel, baseline)))]
        lab.row(part, f"beside both kernels of `{name}`, each baseline is correct and has a ratio of device times and a call time", not lacking, lacking or "; ".join(told(key, one) for key, one in sorted(rated.items())))
        versions = rated.get((kernels[1], names[0]), {}).get("versions", {})
        lab.row(part, f"versions are told beside `{kernels[1]}`", all(one in versions for one in ("torch", "cuda", "gpu")), versions)
        led = [leader for package in lab.report(folder)["packages"] for leader in package.get("leaders", []) if leader["operator"] == name]
        lab.row(part, f"one kernel of `{name}` leads", len(led) == 1, "; ".join(said(leader) for leader in led))
        apart = agreement(led, rated, names) if not lacking else []
        lab.row(part, f"ratios of baselines agree with pairs of the champions of `{name}`", bool(apart) and all(abs(share - 1) < AGREES for share in apart.values()) if apart else None, {key: round(share, 3) for key, share in apart.items()} if apart else "the champions are too far apart for pairs")
        figures[name] = {"seconds": done.seconds, "rated": {"/".join(key): one for key, one in rated.items()}, "leaders": led}
        again, steps = lab.build(folder, *words, *chosen, limit=120, KFORGE_TOOLCHAIN_PYTHON=python)
        ran = [step.id for step in steps if step.outcome == "executed"]
        lab.row(part, f"a second build of `{name}` runs nothing", again.code == 0 and not ran, ran[:3] or f"{again.seconds:.1f} s")
    left = lab.left_behind()
    lab.row(part, "no process is left", not left, left)
    lab.figures[part] = figures


def whole(one):
    return bool(one) and one["verdict"] == "pass" and bool(one["ratio"] and one["call_ns"] and one["device_ns"] and one["champion_ns"])


def agreement(led, rated, names):
    """Of each baseline, its ratio to the slower champion times the pairs of the two, over its ratio to the leader; one if all agree."""
    found = {}
    for leader in led:
        for other in leader["others"]:
            # The other kernel's time over the leader's.
            pairs = (other.get("pairs") or {}).get("ratio")
            for name in names if pairs else []:
                of = lambda kernel: rated[(kernel, name)]["ratio"]["median"]
                found[name] = of(other["kernel"]) * pairs / of(leader["kernel"])
    return found

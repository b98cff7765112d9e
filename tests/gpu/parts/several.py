"""Several GPUs: the space of tests/gpu/tuner on all of them and on one alone. All are used, the same variants are right, the champion is as fast, and it is known sooner.
A large speed-up over a baseline is measured again on another GPU, and stands as unconfirmed where there is none. KFORGE_TEST_PYTHON names the Python that has torch.
"""

import os
import re
import subprocess
import threading

from . import tuner
from .lab import ROOT

# What a process that uses a device takes of its memory at the least: MiB.
CONTEXT = 200


def several(lab, quick):
    gpus = list(memory())
    if len(gpus) < 2:
        lab.row("several", "the work of one GPU on several", None, "this machine has one GPU")
        return
    all_of, used = on(lab, quick, "all", gpus)
    alone, alone_used = on(lab, quick, "one", gpus[:1])
    confirmed(lab, gpus)
    lab.figures["several"] = {"gpus": len(gpus), "used": len(used), "all": all_of, "one": alone}
    lab.row("several", "all are used, and no other", used == set(gpus) and alone_used == set(gpus[:1]), f"{len(used)} of {len(gpus)}; when one may be used: {len(alone_used)}")
    compared(lab, all_of, alone)


def compared(lab, all_of, alone):
    """What several GPUs came to against one of them."""
    apart = sorted(set(all_of["right_variants"]) ^ set(alone["right_variants"]))
    known = f"{all_of['right']} and {alone['right']} of {all_of['variants']} are right and timed"
    lab.row("several", "every variant that is correct on one GPU is correct on several", not apart and all_of["right"] > 0, f"{known}; {apart[:3] or 'the same'}; {said(all_of, apart)}")
    times = [of["best_ms"] or 0 for of in (all_of, alone)]
    # Two GPUs are not equally fast, and of two variants within a per cent no two clocks agree on the faster.
    alike = all_of["best"] == alone["best"] or (min(times) > 0 and max(times) <= 1.01 * min(times))
    lab.row("several", "the same champion or one as fast", alike, f"{times[0]:.3f} ms ({all_of['best']}), alone {times[1]:.3f} ms ({alone['best']})")
    lab.row("several", "the best is known sooner", all_of["seconds"] < alone["seconds"], f"{all_of['seconds']:.1f} s, alone {alone['seconds']:.1f} s")


def said(of, variants):
    """What is said against the first of these variants."""
    return next((f"{variant}: {of['wrong'][variant][:200]}" for variant in variants if variant in of["wrong"]), "")


def on(lab, quick, name, gpus):
    """A build that may use these: what it came to, and which of all GPUs something ran on meanwhile."""
    folder = tuner.space(lab, quick, f"several-{name}")
    before, used, ended = memory(), set(), threading.Event()

    def look():
        while not ended.wait(0.3):
            used.update(gpu for gpu, taken in memory().items() if taken > before[gpu] + CONTEXT)

    looks = threading.Thread(target=look)
    looks.start()
    try:
        # A home of its own, else what is known from before would answer.
        found, steps = tuner.kforge(lab, folder, KFORGE_HOME=str(lab.home(f"several-{name}")), CUDA_VISIBLE_DEVICES=",".join(gpus))
    finally:
        ended.set()
        looks.join()
    return found | {"wrong": {step.variant: step.wrong() for step in steps if step.variant and step.wrong()}}, used


def memory():
    """MiB taken of each GPU's memory."""
    words = ["nvidia-smi", "--query-gpu=uuid,memory.used", "--format=csv,noheader,nounits"]
    asked = subprocess.run(words, capture_output=True, text=True, check=True)
    return {gpu: int(taken) for gpu, taken in (line.split(", ") for line in asked.stdout.splitlines())}


# PyTorch in place of `rms_norm` of examples/quickstart, many times as slow.
SLOW = """
import torch


def slow(x, w, eps):
    for _ in range(4):
        y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w
    return y
"""


def confirmed(lab, gpus):
    """What a second GPU says of a large speed-up, and what is said without one."""
    python = os.environ.get("KFORGE_TEST_PYTHON", "python3")
    found = subprocess.run([python, "-c", "import sys, torch; assert torch.cuda.is_available(); print(sys.executable)"], capture_output=True, text=True, check=False)
    if found.returncode:
        lab.row("several", "a second GPU confirms a large speed-up", None, f"{python} has no torch with CUDA")
        return
    for name, some in (("both", gpus), ("one", gpus[:1])):
        folder = lab.copy(f"second-{name}", ROOT / "examples/quickstart", ready=False)
        manifest = folder / "kernel.toml"
        text = re.sub(r"(?ms)^\[targets\..*?(?=^#|^\[operator)", "", manifest.read_text()).replace('targets = ["cpu", "h200"]', "")
        text = re.sub(r"(?m)^\[operator", f'[targets.gpu]\narch = "{lab.arch}"\n\n[operator', text, count=1)
        manifest.write_text(text + '\n[baseline.slow]\nsource = "slow.py::slow"\n')
        (folder / "slow.py").write_text(SLOW)
        more = {"KFORGE_HOME": str(lab.home(f"second-{name}")), "CUDA_VISIBLE_DEVICES": ",".join(some), "KFORGE_TOOLCHAIN_PYTHON": found.stdout.strip()}
        done, steps = lab.build(folder, **more)
        if not (folder / "target/kforge/report.json").exists():
            lab.row("several", f"a baseline is timed with {name}", False, f"exit {done.code}; {done.last()}")
            continue
        all_of = [one for _, target in lab.targets(folder) for one in target.get("baselines", [])]
        lab.figures[f"second-{name}"] = all_of
        said = [step.summary for step in steps if step.kind == "rate"]
        large = [one for one in all_of if one["rating"].get("is_unusual")]
        answers = [one.get("confirmation", {}) for one in large]
        if name == "one":
            why = [answer.get("unconfirmed", {}).get("why", "") for answer in answers]
            lab.row("several", "with one GPU a large speed-up stands as unconfirmed", bool(why) and all(text.startswith("no second ") for text in why), f"{why}; exit {done.code}; {said}")
            continue
        both = [(one["rating"]["ratio"]["median"], one["confirmation"].get("confirmed", {}).get("ratio", {}).get("median")) for one in large]
        alike = bool(both) and all(second and abs(second / first - 1) <= 0.1 for first, second in both)
        lab.row("several", "a second GPU confirms a large speed-up", alike, f"{both}; exit {done.code}; {said}")

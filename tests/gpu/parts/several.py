"""Several GPUs: the space of tests/gpu/tuner on all of them and on one alone. All are used, the same variants are right, the champion is as fast, and it is known sooner."""

import subprocess
import threading

from . import tuner

# What a process that uses a device takes of its memory at the least: MiB.
CONTEXT = 200


def several(lab, quick):
    gpus = list(memory())
    if len(gpus) < 2:
        lab.row("several", "the work of one GPU on several", None, "this machine has one GPU")
        return
    all_of, used = on(lab, quick, "all", gpus)
    alone, alone_used = on(lab, quick, "one", gpus[:1])
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

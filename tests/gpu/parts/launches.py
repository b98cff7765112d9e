"""Launches that depend on the device and that it cannot make are refused by name. That those which it can make are right, the examples' part says: it builds `tests/gpu/launches`."""

from .lab import ROOT

# A kernel, its grid, what becomes of it, and what is said: one block more than the device holds at once; no block at all.
REFUSED = [
    ("all_together", '"sm_count * occupancy"', '"sm_count * occupancy + 1"', "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"),
    ("persistent", '"min(sm_count * occupancy, rows)"', '"1 if sm_count == 128 else 0"', "is 0 blocks along x"),
]


def launches(lab):
    folder = lab.copy("refused-launches", ROOT / "tests/gpu/launches", ready=False)
    manifest = folder / "kernel.toml"
    text = manifest.read_text().replace("sm_90a", lab.arch)
    for _, grid, becomes, _ in REFUSED:
        text = text.replace(grid, becomes)
    manifest.write_text(text)
    kernels = [word for kernel, *_ in REFUSED for word in ("--kernel", kernel)]
    _, steps = lab.build(folder, "--target", "gpu", *kernels)
    for kernel, _, _, words in REFUSED:
        said = [step.said("fail") or "" for step in steps if step.kind == "judge" and step.kernel == kernel]
        lab.row("launches", f"the refusal of {kernel} names its reason", bool(said) and all(words in text for text in said), said[:1])

"""Loaders: the C, C++, Rust and Python programs of examples/bindings on this GPU, and what the Python loader must do with torch beyond correct results.

Packages examples/bindings/kernels here, unless KFORGE_TEST_ARTIFACTS names a folder with the artifacts `loaders-1.0.0` and
`loaders-1.0.1`, two versions of it. The Rust program is built elsewhere, for want of Rust here: KFORGE_TEST_RUST_PROGRAM names it. KFORGE_TEST_PYTHON
names the Python that has torch. KFORGE_TEST_FATBIN names an artifact of examples/quickstart with `fatbin = true`: its package needs NVIDIA's `fatbinary`.
"""

import json
import os
import subprocess

from .lab import ROOT

VERSIONS = ["1.0.0", "1.0.1"]


def bindings(lab):
    artifacts = prepared(lab)
    if artifacts is None:
        return
    folders = {}
    for version, artifact in artifacts.items():
        for language in ("c", "python"):
            folder = folders[language, version] = lab.folder / f"loaders-{language}-{version}"
            done = lab.run(["bindings", str(artifact), "--language", language, "--output", str(folder)], lab.folder)
            if done.code != 0:
                lab.row("bindings", f"{language} is generated", False, done.last())
                return
    first = VERSIONS[0]
    for name, words in [("C", ["cc", "-std=c99"]), ("C++", ["c++", "-std=c++17"])]:
        source = ROOT / "examples/bindings" / {"C": "c/main.c", "C++": "cpp/main.cpp"}[name]
        program = lab.folder / f"program-{source.suffix[1:]}"
        strict = ["-O2", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", str(folders["c", first])]
        made = subprocess.run([*words, *strict, str(source), "-o", str(program), "-ldl", "-lpthread", "-lm"], capture_output=True, text=True, check=False)
        if made.returncode:
            lab.row("bindings", f"the {name} program is compiled", False, made.stderr[-300:])
            continue
        ran(lab, f"the {name} program gives correct results", [str(program)])
    rust = os.environ.get("KFORGE_TEST_RUST_PROGRAM")
    if rust:
        ran(lab, "the Rust program gives correct results", [rust])
    else:
        lab.row("bindings", "the Rust program gives correct results", None, "KFORGE_TEST_RUST_PROGRAM names no program")
    python = os.environ.get("KFORGE_TEST_PYTHON", "python3")
    ran(lab, "the Python program gives correct results", [python, str(ROOT / "examples/bindings/python/main.py"), str(folders["python", first])])
    check = [python, str(ROOT / "tests/gpu/bindings/check.py"), *(str(folders["python", version]) for version in VERSIONS)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        what, held, found = json.loads(line)
        lab.row("bindings", what, held, found)
    if done.returncode:
        lab.row("bindings", "the checks of the Python loader ran to their end", False, done.stderr[-500:])
    fatbins(lab, python)


def fatbins(lab, python):
    artifact = os.environ.get("KFORGE_TEST_FATBIN")
    if not artifact:
        lab.row("bindings", "the driver loads a fatbin", None, "KFORGE_TEST_FATBIN names no artifact")
        return
    done = subprocess.run([python, str(ROOT / "tests/gpu/bindings/fatbins.py"), artifact], capture_output=True, text=True, check=False)
    if done.returncode:
        lab.row("bindings", "the driver loads a fatbin", False, done.stderr[-500:])
        return
    lab.row("bindings", *json.loads(done.stdout))


def ran(lab, what, words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = "; ".join(done.stdout.strip().splitlines())
    failed = f"exit code {done.returncode}; {said} {done.stderr.strip()[-400:]}"
    lab.row("bindings", what, done.returncode == 0, said if done.returncode == 0 else failed)


def prepared(lab):
    """The artifacts by their versions; none if they could not be made."""
    place = os.environ.get("KFORGE_TEST_ARTIFACTS")
    if place:
        return {version: os.path.join(place, f"loaders-{version}") for version in VERSIONS}
    made = {}
    for version in VERSIONS:
        folder = lab.copy(f"loaders-{version}", ROOT / "examples/bindings/kernels", ready=False)
        manifest = folder / "kernel.toml"
        manifest.write_text(manifest.read_text().replace('version = "1.0.0"', f'version = "{version}"').replace("sm_90a", lab.arch).replace('device = "NVIDIA H200"\n', ""))
        done = lab.run(["package", "--target", "h200", "--output", str(lab.folder / "artifacts")], folder)
        lab.row("bindings", f"version {version} of the examples is built and packaged", done.code == 0, done.last())
        if done.code != 0:
            return None
        made[version] = lab.folder / "artifacts" / f"loaders-{version}"
    return made

"""Compiles one Triton function for one signature. kforge runs it with Python in a confined process, with an empty environment. That process is a copy of one
that may have imported Triton.

    python -I -S -B driver.py JOB OUT

JOB is a file that `triton.rs` writes; OUT is a folder. If the function compiles, OUT holds `cubin` and `launch.json`; if it does not, `error.json`.
What the compiler prints is not an answer: sources can print, too.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kforge_jitted import InertFinder, Refused, constant, function, load, where

del sys.path[0]


def signature(found, job):
    """What the compiler takes: types, constants and attributes. The parameters of the plan must be those of the function."""
    params = job["params"]
    names, stated = list(found.arg_names), [param["name"] for param in params]
    if names != stated:
        raise Refused(f"{job['main']}: `{job['function']}` has the parameters {', '.join(names)}, and kforge read {', '.join(stated)}")
    types_of, constants, attributes = {}, {}, {}
    for at, (param, own) in enumerate(zip(params, found.params)):
        name = param["name"]
        if "type" in param:
            if own.is_constexpr:
                raise Refused(f"{job['main']}: parameter `{name}` of `{job['function']}` is a `tl.constexpr`, and kforge read that it is none")
            types_of[name] = param["type"]
            aligned = not (own.do_not_specialize or getattr(own, "do_not_specialize_on_alignment", False))
            if param.get("divisible") and aligned:
                attributes[(at,)] = [["tt.divisibility", 16]]
            continue
        if own.do_not_specialize and not own.is_constexpr and param.get("value") == 1:
            raise Refused(
                f"{job['main']}: parameter `{name}` of `{job['function']}` is in `do_not_specialize`, and it is 1 here: "
                'state `specialize = "none"` in the kernel'
            )
        types_of[name] = "constexpr"
        constants[name] = own.default if "default" in param else constant(param["value"])
    return types_of, constants, attributes


def options(backend, job):
    """Every option, spelled out. Those that this version of Triton does not have, and that the manifest does not change, are left out."""
    known = type(backend.parse_options({"enable_fp_fusion": True})).__dataclass_fields__
    out = {}
    for name, value in job["options"].items():
        if name in known:
            out[name] = value
        elif value is not None:
            raise Refused(f"this version of Triton has no option `{name}`")
    return out


def tensor_map(meta, job):
    """How the binary takes a tensor descriptor as a tensor map."""
    if meta.get("fp4_padded") or meta.get("is_im2col"):
        raise Refused(f"{job['main']}: a descriptor of `{job['function']}` is of a kind that kforge does not pass")
    return {"box": list(meta["block_size"]), "swizzle": (0, 32, 64, 128)[meta["swizzle"]]}


def compiled(job):
    import triton
    import triton.compiler.compiler as compiler
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend
    from triton.runtime.jit import JITFunction

    version = tuple(int(part) for part in triton.__version__.split("+")[0].split(".")[:2])
    if version not in ((3, 5), (3, 6), (3, 7), (3, 8), (3, 9)):
        raise Refused(f"Triton {triton.__version__} is installed, and kforge knows the launches of 3.5 to 3.9")
    # It hashes the whole library for a cache that starts empty here.
    for module in (compiler, sys.modules.get("triton.runtime.cache"), sys.modules.get("triton.runtime.jit")):
        if module is not None and hasattr(module, "triton_key"):
            module.triton_key = lambda: "kforge"
    target = GPUTarget("cuda", job["capability"], 32)
    backend = make_backend(target)
    # For the same cache it asks the assembler for its version.
    type(backend).hash = lambda self: "kforge"
    found = function(load(job), job, JITFunction)
    types_of, constants, attributes = signature(found, job)
    source = ASTSource(found, types_of, constexprs=constants, attrs=attributes)
    made = triton.compile(source, target=target, options=options(backend, job))
    facts = made.metadata._asdict()
    launch = {
        "version": list(version),
        "name": facts["name"],
        "num_warps": facts["num_warps"],
        "num_ctas": facts["num_ctas"],
        "shared": facts["shared"],
        "global_scratch_size": facts["global_scratch_size"],
        "global_scratch_align": facts["global_scratch_align"],
        "profile_scratch_size": facts["profile_scratch_size"],
        "profile_scratch_align": facts["profile_scratch_align"],
        "cooperative": bool(facts.get("launch_cooperative_grid")),
        "pdl": bool(facts.get("launch_pdl")),
        "descriptors": len(facts.get("tensordesc_meta") or []),
    }
    maps = [tensor_map(meta, job) for meta in facts.get("tensordesc_meta") or []]
    if maps:
        launch["maps"] = maps
    return made.asm["cubin"], launch


def explained(error, job):
    """An error of the compiler with the line of the source, as `softmax.py:12: message`."""
    node, text = getattr(error, "node", None), str(getattr(error, "error_message", None) or "")
    if type(error).__name__ == "PTXASError":
        # The rest is a command with paths of this machine. The assembler knows no line of the source.
        said = re.search(r"\b(?:error|fatal)\s*: (.+)", text)
        return f"{job['main']}: ptxas: {said[1].strip() if said else 'it failed'}"
    if not text:
        text = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
    cause = error.__cause__
    while cause is not None:
        inner = str(getattr(cause, "error_message", None) or cause).strip()
        node = getattr(cause, "node", None) or node
        if inner:
            text = inner.splitlines()[-1].strip() if "\n" in inner else inner
        cause = cause.__cause__
    line = getattr(node, "lineno", None)
    source = getattr(error, "src", None)
    if line is not None and isinstance(source, str):
        # Lines count from the function. The file may hold the function's text once only.
        path = os.path.join(job["tree"], job["main"])
        with open(path, encoding="utf-8") as file:
            whole = file.read()
        at = whole.find(source)
        if at >= 0:
            return f"{job['main']}:{whole.count(chr(10), 0, at) + line}: {text}"
    return f"{where(error, job)}: {text}"


def own_folders(folder):
    """Triton keeps its files in the working folder. It reads these variables when it compiles."""
    home = os.path.join(folder, "home")
    os.environ.update(
        HOME=home, TRITON_HOME=home, TRITON_CACHE_DIR=os.path.join(home, "cache"), TMPDIR=os.path.join(folder, "tmp")
    )


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    out = sys.argv[2]
    own_folders(job["folder"])
    sys.path.append(job["triton"])
    sys.meta_path.insert(0, InertFinder())
    sys.dont_write_bytecode = True
    try:
        cubin, launch = compiled(job)
    except Refused as error:
        answer = {"message": str(error)}
    except Exception as error:
        answer = {"message": explained(error, job)}
        sys.stdout.flush()
        sys.stderr.write(f"{error}\n")
    else:
        with open(os.path.join(out, "cubin"), "wb") as file:
            file.write(cubin)
        with open(os.path.join(out, "launch.json"), "w", encoding="utf-8") as file:
            json.dump(launch, file, sort_keys=True)
        return
    with open(os.path.join(out, "error.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file, sort_keys=True)


if __name__ == "__main__":
    main()

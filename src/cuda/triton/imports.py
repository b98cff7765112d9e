"""Imports Triton for kforge. `call` says where it is. The process that imports it once for many compilations runs this after `kforge_jitted.py`; a process of
one compilation imports it in `driver.py`.
"""

os.nice(call["nice"])
sys.path.append(call["triton"])
sys.meta_path.insert(0, InertFinder())
import triton
import triton.compiler
import triton.language.extra.libdevice

# Compilations need the versions of the assemblers, which are asked for once.
for assembler in ("ptxas", "ptxas_blackwell"):
    getattr(triton.knobs.nvidia, assembler, None)

"""Imports PyTorch on the processor for kforge, and nothing from elsewhere. `call` says where it is. kforge puts this file before `torch_call.py`; the process
that imports PyTorch once for many calls runs it alone.
"""

import ctypes

# The exit status by which kforge is told that torch is missing.
NO_TORCH = 4

for library in call["stubs"]:
    # Stand for libraries of CUDA that this torch is linked with and that no reference uses.
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
let_in = [os.path.join(call["torch"], name) for name in call["packages"]]
# The folder of numpy can hold another PyTorch, and comes after.
sys.path.append(call["torch"])
if call["numpy"] is not None:
    let_in += [os.path.join(call["numpy"], name) for name in ("numpy", "numpy.libs")]
    sys.path.append(call["numpy"])
OnlyKnown(call["root"], call["library"] + let_in, call["left_out"], "torch nor of numpy").stand_in()
import warnings

# torch warns that numpy is missing; nothing here needs it.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        import torch
    except ImportError as error:
        print(error)
        sys.exit(NO_TORCH)
# Nothing is compiled here, and the parts of torch that compile take seconds to import.
torch._disable_dynamo = lambda fn=None, recursive=True: fn if fn is not None else lambda fn: fn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

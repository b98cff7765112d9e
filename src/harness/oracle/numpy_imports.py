"""Imports numpy for kforge, and nothing from elsewhere. `call` says where it is. kforge puts this file before `driver.py`; the process that imports numpy once
for many calls runs it alone.
"""

import importlib.util
import inspect
import json
import traceback

# The exit status by which kforge is told that numpy is missing.
NO_NUMPY = 3

if call["numpy"] is None:
    sys.exit(NO_NUMPY)
numpys = [os.path.join(call["numpy"], name) for name in ("numpy", "numpy.libs")]
OnlyKnown(call["root"], call["library"] + numpys, call["left_out"]).stand_in()
sys.path.append(call["numpy"])
try:
    import numpy
except ImportError:
    sys.exit(NO_NUMPY)

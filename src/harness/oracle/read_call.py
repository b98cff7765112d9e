"""Reads the call for a program that kforge runs as `python driver.py CALL`. kforge puts this file between `known.py` and `torch_imports.py`."""

import json

with open(sys.argv[1]) as described:
    call = json.load(described)

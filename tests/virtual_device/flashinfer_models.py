"""Validates the files of a dataset with the models that the package flashinfer-bench publishes. Its own modules import PyTorch; those of the models do not, and are
imported without the packages around them.

    python flashinfer_models.py DATASET
"""

import importlib
import importlib.util
import pathlib
import sys
import types

ROOT = pathlib.Path(importlib.util.find_spec("flashinfer_bench").submodule_search_locations[0])


def package(name, folder):
    module = types.ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module
    return module


package("flashinfer_bench", ROOT)
package("flashinfer_bench.data", ROOT / "data")
package("flashinfer_bench.utils", ROOT / "none").dtype_str_to_torch_dtype = str
model = lambda module, name: getattr(importlib.import_module("flashinfer_bench.data." + module), name)
Definition, Solution, Trace = model("definition", "Definition"), model("solution", "Solution"), model("trace", "Trace")

dataset = pathlib.Path(sys.argv[1])
definitions, solutions = {}, {}
for path in sorted(dataset.glob("definitions/**/*.json")):
    one = Definition.model_validate_json(path.read_text())
    definitions[one.name] = one
for path in sorted(dataset.glob("solutions/**/*.json")):
    one = Solution.model_validate_json(path.read_text())
    assert one.definition in definitions, path
    solutions[one.name] = one
counts = {}
for path in sorted([*dataset.glob("workloads/**/*.jsonl"), *dataset.glob("traces/**/*.jsonl")]):
    for line in filter(str.strip, path.read_text().splitlines()):
        one = Trace.model_validate_json(line)
        axes = definitions[one.definition].var_axes
        assert sorted(one.workload.axes) == sorted(axes), path
        if one.is_workload_trace():
            status = "workload"
        else:
            assert one.solution in solutions, path
            status = one.evaluation.status.value
        counts[status] = counts.get(status, 0) + 1
print(len(definitions), len(solutions), sorted(counts.items()))

"""A loop of proposals that trains nothing: each is evaluated, and the next one answers what the server said.

    kforge serve --listen 127.0.0.1:7377
    PYTHONPATH=src KFORGE_SERVE_URL=http://127.0.0.1:7377 python3 examples/proposals.py

A model would take the place of `PROPOSALS`, and a trainer that of `print`.
"""

from __future__ import annotations

from kforge_client import Client
from kforge_client.verl import compute_score

TASK = {
    "candidate": {
        "operator": {
            "dims": ["n"],
            "inputs": {"x": {"dtype": "f32", "shape": ["n"]}},
            "outputs": {"y": {"dtype": "f32", "shape": ["n"]}},
            "reference": {"builtin": "elementwise", "y": "2 * x + 1"},
            "tolerance": {"atol": 1e-6, "rtol": 1e-6},
            "shapes": {"small": {"n": 70}},
        },
        "entry": "k",
        "launch": [{"grid": ["ceil_div(n, 64)"], "block": [64], "args": ["x", "y", "n"]}],
    },
    "target": "cpu",
}

KERNEL = """Here is a kernel.

```cuda
__global__ void k(const float *x, float *y, int n) {{
    int i = blockIdx.x * 64 + threadIdx.x;
    {body}
}}
```
"""

PROPOSALS = [
    "if (i < n) y[i] = twice(x[i]) + 1.0f;",
    "if (i < n) y[i] = 2.0f * x[i];",
    "y[i] = 2.0f * x[i] + 1.0f;",
    "if (i < n) y[i] = 2.0f * x[i] + 1.0f;",
]


def main() -> None:
    client = Client()
    for turn, body in enumerate(PROPOSALS, start=1):
        found = compute_score("proposals", KERNEL.format(body=body), TASK, client=client)
        first = found["text"].splitlines()[0] if found["text"] else "correct"
        print(f"turn {turn}: score {found['score']:.2f}: {first}")
        if found["score"] > 0.0:
            break


if __name__ == "__main__":
    main()

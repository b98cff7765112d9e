"""Products that a device makes for the oracle have every bit of those that the host makes: `kforge worker --check-products` compares the digests of both."""

from .lab import lines


def oracle(lab):
    done = lab.run(["worker", "--check-products"], lab.folder, limit=120)
    cases = [case for case in lines(done.out) if "product" in case]
    for case in cases:
        found = f"the device {case['device_s']:.2f} s, the host {case['host_s']:.2f} s" if case["same"] else case["why"] or "other bits"
        lab.row("oracle", case["product"], case["same"], found)
    lab.row("oracle", "every product was compared", done.code == 0 and len(cases) == 9, f"{len(cases)}, exit {done.code} {done.last(100)}")
    lab.figures["oracle"] = cases

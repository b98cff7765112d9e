import torch


def far(received, expected, rtol, atol):
    if received.shape != expected.shape:
        return ["another shape"]
    apart = (received.double() - expected.double()).abs() > atol + rtol * expected.double().abs()
    return ["%d elements" % int(apart.sum())] if bool(apart.any()) else []


def verbose_allequal(received, expected, max_print=5):
    return [] if torch.equal(received, expected) else ["not equal"]


def make_match_reference(reference, rtol=1e-05, atol=1e-08):
    def check(data, output):
        reasons = far(output, reference(data), rtol, atol)
        return not reasons, " ".join(reasons)

    return check

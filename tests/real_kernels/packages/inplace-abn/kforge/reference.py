"""Means and variances of parts, merged."""

import numpy as np


def merged(am, av, ac):
    mean = (am * ac).sum(0) / ac.sum()
    return {"mean": mean, "var": ((av + (am - mean) ** 2) * ac).sum(0) / ac.sum()}

"""The client of `kforge serve`. Standard library only; `kforge_client.environment` also imports verifiers and datasets."""

from .client import Client, Evaluation, KforgeError, evaluate
from .rewards import Bounds, logistic, speedup_of, weighted

__all__ = ["Bounds", "Client", "Evaluation", "KforgeError", "evaluate", "logistic", "speedup_of", "weighted"]

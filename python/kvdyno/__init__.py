"""Results of kvdyno as pandas data frames, and starters of its load agents on engines that speak Python (`kvdyno.ray`).

kvdyno itself is a program, and does all the work: `kvdyno run`, or `python -m kvdyno run`.

>>> result = kvdyno.load("kvdyno-results/2026-11-26T11-46-13-quick")
>>> result.series[["store", "phase_name", "kind", "rate", "service_p99_ns"]]
"""

from kvdyno.histogram import Histogram
from kvdyno.result import Result, ResultError, load

__all__ = ["Histogram", "Result", "ResultError", "load"]

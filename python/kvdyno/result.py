"""A result of kvdyno as data frames: `kvdyno.load(RESULT)`. Names of columns are those of `result.json` and `timeline.csv`,
which docs/RESULTS.md explains.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator

from kvdyno.histogram import Histogram

if TYPE_CHECKING:
    import pandas

# The shape of result.json that this reads.
SCHEMA = 1

_PHASE = ("name", "label", "warmup", "load", "offset_ns", "wall_ns", "drain_ns", "stopped", "offered")
_TALLY = ("reads", "judged", "unknown", "bytes_checked", "writes_acknowledged", "writes_indeterminate")
_TIMES = ("service", "response", "missed_service", "missed_response", "unsuccessful_service", "unsuccessful_response")


class ResultError(Exception):
    """What was named is no result that can be read; says why."""


@dataclass(frozen=True)
class _Trial:
    """One folder of a result, or its `result.json` alone."""

    number: int
    folder: Path
    document: dict[str, Any]

    def phases(self) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """What each row of a phase begins with, the run, and the phase."""
        for number, run in enumerate(self.document["runs"]):
            for phase in run["phases"]:
                begin = {
                    "trial": self.number,
                    "run": number,
                    "store": run["store"]["name"],
                    "phase": phase["index"],
                    "phase_name": phase["name"],
                }
                yield begin, run, phase


@dataclass(frozen=True)
class Result:
    """The result of a run, or of its trials (`kvdyno run --trials`): every frame has a column `trial`, from 1.

    Frames are pandas data frames (`pip install 'kvdyno[pandas]'`), made when they are first asked for.
    """

    trials: tuple[_Trial, ...]

    @property
    def documents(self) -> list[dict[str, Any]]:
        """What `result.json` says, of each trial: all that no frame has."""
        return [trial.document for trial in self.trials]

    @property
    def verdicts(self) -> dict[str, list[str]]:
        """The verdict on each store, by trial: `valid`, `suspect` or `invalid`."""
        verdicts: dict[str, list[str]] = {}
        for document in self.documents:
            for run in document["runs"]:
                verdicts.setdefault(run["store"]["url"], []).append(run["verdict"]["level"])
        return verdicts

    @cached_property
    def phases(self) -> pandas.DataFrame:
        """A row for each phase of each store: what was done, how long it took, what verification saw."""

        def rows(trial: _Trial) -> Iterator[dict[str, Any]]:
            for begin, run, phase in trial.phases():
                yield {
                    **begin,
                    "url": run["store"]["url"],
                    "verdict": run["verdict"]["level"],
                    **{name: phase[name] for name in _PHASE if name != "name"},
                    "rate": sum(series["rate"] or 0 for series in phase["series"]),
                    **{name: phase["tally"][name] for name in _TALLY},
                    "anomalies": sum(phase["tally"]["anomalies"]),
                }

        return self._frame(rows)

    @cached_property
    def series(self) -> pandas.DataFrame:
        """A row for each kind of operation of each client group: counts, rate, latencies (`service_p99_ns`)."""

        def rows(trial: _Trial) -> Iterator[dict[str, Any]]:
            for begin, _run, phase in trial.phases():
                for series in phase["series"]:
                    row = {**begin, **{k: v for k, v in series.items() if not isinstance(v, dict) and k not in _TIMES}}
                    for times in _TIMES:
                        figures = series[times] or {}
                        row.update({f"{times}_{k}": v for k, v in figures.items() if k != "histogram"})
                    yield row

        return self._frame(rows)

    @cached_property
    def faults(self) -> pandas.DataFrame:
        """A row for each fault: what was done to which node, and when (ns since the phase began)."""

        def rows(trial: _Trial) -> Iterator[dict[str, Any]]:
            for begin, _run, phase in trial.phases():
                for fault in phase["faults"]:
                    yield {**begin, **fault}

        return self._frame(rows)

    @cached_property
    def accounts(self) -> pandas.DataFrame:
        """A row for each fault whose cost was told; what is nested has names like `writes.unavailable_ns`."""

        def rows(trial: _Trial) -> Iterator[dict[str, Any]]:
            for begin, _run, phase in trial.phases():
                for account in phase["account"] or []:
                    yield {**begin, **account}

        import pandas

        return pandas.json_normalize([row for trial in self.trials for row in rows(trial)])

    @cached_property
    def intervals(self) -> pandas.DataFrame:
        """The rows of `timeline.csv`: counts and latencies of each second."""
        return self._tables("timeline.csv")

    @cached_property
    def resources(self) -> pandas.DataFrame:
        """The rows of `resources.csv`: what the machine, kvdyno and each node used over time."""
        return self._tables("resources.csv")

    def histogram(
        self,
        store: str | None = None,
        phase: str | None = None,
        kind: str | None = None,
        what: str = "service",
        trial: int | None = None,
    ) -> Histogram:
        """Latencies of all series that match, merged. `what` is `service`, `response`, `missed_service`, …"""
        if what not in _TIMES:
            raise ValueError(f"what is one of {', '.join(_TIMES)}")
        found = []
        for one in self.trials:
            for begin, run, of_phase in one.phases():
                named = store in (None, begin["store"], run["store"]["url"])
                if not named or phase not in (None, begin["phase_name"]) or trial not in (None, one.number):
                    continue
                for series in of_phase["series"]:
                    if kind in (None, series["kind"]) and series[what]:
                        found.append(Histogram.decode(series[what]["histogram"]))
        return Histogram.merged(found)

    def interval_histograms(self) -> pandas.DataFrame:
        """The lines of `intervals.hlog`: a histogram for each interval and series, by `tag` (docs/RESULTS.md)."""

        def rows(trial: _Trial) -> Iterator[dict[str, Any]]:
            for line in (trial.folder / "intervals.hlog").read_text().splitlines():
                if line.startswith("Tag="):
                    tag, start, length, _most, text = line[4:].split(",")
                    yield {
                        "trial": trial.number,
                        "tag": tag,
                        "start_s": float(start),
                        "length_s": float(length),
                        "histogram": Histogram.decode(text),
                    }

        return self._frame(rows)

    def _frame(self, rows: Callable[[_Trial], Iterator[dict[str, Any]]]) -> pandas.DataFrame:
        import pandas

        return pandas.DataFrame([row for trial in self.trials for row in rows(trial)])

    def _tables(self, name: str) -> pandas.DataFrame:
        import pandas

        tables = []
        for trial in self.trials:
            table = pandas.read_csv(trial.folder / name)
            table.insert(0, "trial", trial.number)
            tables.append(table)
        return pandas.concat(tables, ignore_index=True)


def load(result: str | os.PathLike[str]) -> Result:
    """Reads the folder of a run, that of trials, or a `result.json`. Raises ResultError if it is none."""
    place = Path(result)
    if place.is_dir() and not (place / "result.json").exists():
        files = sorted(place.glob("*/result.json"))
        if not files:
            raise ResultError(f"{place} holds no result: name the folder that `kvdyno run` wrote")
    else:
        files = [place / "result.json" if place.is_dir() else place]
    return Result(tuple(_Trial(number, file.parent, _document(file)) for number, file in enumerate(files, 1)))


def _document(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultError(f"{file}: {error}") from error
    if not isinstance(document, dict) or "schema_version" not in document:
        raise ResultError(f"{file} is no result of kvdyno")
    if document["schema_version"] != SCHEMA:
        raise ResultError(
            f"{file} has schema version {document['schema_version']}, and this reads {SCHEMA}: "
            "install the version of kvdyno that wrote it"
        )
    return document

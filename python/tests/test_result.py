"""Results that the command wrote, as data frames. KVDYNO_RESULT names the folder of a run of the suite `quick`."""

import copy
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import pandas

import kvdyno

RESULT = pathlib.Path(os.environ["KVDYNO_RESULT"])
FAULT = {"what": "kill", "node": "redis-1", "role": "peer", "began_ns": 5, "ended_ns": 9, "used": "SIGKILL"}
ACCOUNT = {"what": "kill", "nodes": ["redis-1"], "reads": None, "writes": {"ok": 3, "unavailable_ns": 7}}


class Frames(unittest.TestCase):
    def setUp(self):
        self.result = kvdyno.load(RESULT)
        self.document = json.loads((RESULT / "result.json").read_text())

    def test_every_series_has_a_row_with_its_figures(self):
        rows = self.result.series.to_dict("records")
        phases = [phase for run in self.document["runs"] for phase in run["phases"]]
        written = [series for phase in phases for series in phase["series"]]
        self.assertGreater(len(written), 10)
        self.assertEqual([row["ok"] for row in rows], [series["ok"] for series in written])
        self.assertEqual(
            [row["service_p99_ns"] for row in rows], [series["service"]["p99_ns"] for series in written]
        )
        self.assertEqual({row["store"] for row in rows}, {"lmdb", "fjall", "redb"})

    def test_phases_have_verdicts_and_what_was_verified(self):
        phases = self.result.phases
        self.assertEqual(len(phases), sum(len(run["phases"]) for run in self.document["runs"]))
        self.assertEqual(phases["anomalies"].sum(), 0)
        self.assertGreater(phases["judged"].sum(), 0)
        levels = [run["verdict"]["level"] for run in self.document["runs"]]
        self.assertEqual([level for [level] in self.result.verdicts.values()], levels)

    def test_intervals_are_the_timeline_and_add_up(self):
        by_series = self.result.intervals.groupby(["run", "phase"])["ok"].sum()
        for (run, phase), ok in by_series.items():
            series = self.result.series
            of_phase = series[(series["run"] == run) & (series["phase"] == phase)]
            self.assertEqual(ok, of_phase["ok"].sum())
        self.assertIn("processors", self.result.resources.columns)

    def test_faults_and_accounts_have_rows_of_their_phase(self):
        changed = copy.deepcopy(self.document)
        phase = changed["runs"][1]["phases"][1]
        phase["faults"], phase["account"] = [FAULT, FAULT], [ACCOUNT]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "result.json"
            file.write_text(json.dumps(changed))
            result = kvdyno.load(file)
        self.assertEqual(list(result.faults["node"]), ["redis-1"] * 2)
        self.assertEqual(list(result.faults["phase_name"]), [phase["name"]] * 2)
        self.assertEqual(list(result.accounts["writes.unavailable_ns"]), [7])
        self.assertTrue(self.result.faults.empty and self.result.accounts.empty)

    def test_trials_are_one_result(self):
        with tempfile.TemporaryDirectory() as folder:
            for number in (1, 2):
                os.symlink(RESULT.resolve(), pathlib.Path(folder) / f"trial-0{number}")
            result = kvdyno.load(folder)
        self.assertEqual(set(result.series["trial"]), {1, 2})
        self.assertEqual(len(result.series), 2 * len(self.result.series))
        both = result.histogram(kind="get")
        self.assertEqual(both.count, 2 * self.result.histogram(kind="get").count)

    def test_what_is_no_result_is_refused_in_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(kvdyno.ResultError, "holds no result: name the folder"):
                kvdyno.load(folder)
            file = pathlib.Path(folder) / "result.json"
            file.write_text(json.dumps({**self.document, "schema_version": 99}))
            with self.assertRaisesRegex(kvdyno.ResultError, "schema version 99, and this reads 1"):
                kvdyno.load(folder)
            file.write_text("[]")
            with self.assertRaisesRegex(kvdyno.ResultError, "is no result of kvdyno"):
                kvdyno.load(folder)


class Histograms(unittest.TestCase):
    def setUp(self):
        self.result = kvdyno.load(RESULT)

    def test_they_have_the_figures_that_kvdyno_read_off_them(self):
        document = self.result.documents[0]
        for run in document["runs"]:
            for series in [series for phase in run["phases"] for series in phase["series"]]:
                figures = series["service"]
                histogram = kvdyno.Histogram.decode(figures["histogram"])
                self.assertEqual(histogram.count, figures["count"])
                for percent, name in ((50, "p50_ns"), (99, "p99_ns"), (99.9, "p99_9_ns")):
                    # Of few values there is none.
                    if figures[name] is not None:
                        self.assertEqual(histogram.percentile(percent), figures[name], name)
                self.assertEqual(histogram.max, figures["max_ns"])
                self.assertAlmostEqual(histogram.mean, figures["mean_ns"], delta=figures["mean_ns"] / 1000)

    def test_histograms_of_intervals_merge_into_that_of_the_phase(self):
        lines = self.result.interval_histograms()
        of_gets = lines[lines["tag"].str.match(r"0-lmdb/\d+-get/0/get/service")]
        self.assertGreaterEqual(len(of_gets), 1)
        merged = kvdyno.Histogram.merged(of_gets["histogram"])
        self.assertEqual(merged, self.result.histogram(store="lmdb", phase="get", kind="get"))

    def test_their_frame_has_every_value_once(self):
        histogram = self.result.histogram(store="redb")
        frame = histogram.to_frame()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(frame["count"].sum(), histogram.count)
        self.assertEqual(frame["share"].iloc[-1], 1)
        self.assertTrue((frame["low"] <= frame["high"]).all())

    def test_nothing_and_nonsense(self):
        nothing = self.result.histogram(store="no-such")
        self.assertEqual((nothing.count, nothing.max, nothing.percentile(99)), (0, 0, 0))
        with self.assertRaises(ValueError):
            kvdyno.Histogram.decode("AAAAAAAAAAA=")


class Installed(unittest.TestCase):
    def test_the_example_notebook_draws_three_plots(self):
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        path = pathlib.Path(__file__).parent.parent / "examples/result.ipynb"
        notebook = json.loads(path.read_text())
        names = {}
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
        figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
        self.assertEqual(len(figures), 3)
        for figure in figures:
            self.assertTrue(any(axes.has_data() for axes in figure.axes))

    def test_the_module_runs_the_program(self):
        program = [sys.executable, "-m", "kvdyno", "--version"]
        told = subprocess.run(program, capture_output=True, text=True, check=True).stdout
        self.assertEqual(told.strip(), f"kvdyno {importlib.metadata.version('kvdyno')}")


if __name__ == "__main__":
    unittest.main()

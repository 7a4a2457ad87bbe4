"""The pictures of holdfast poolsim, in a real browser: they load, and show what they should.

Without Chromium this is skipped, and the summary of ctest says so.
"""

import html.parser
import shutil
import subprocess
import sys
import unittest

import binary
from binary import DONE

CHROMIUM = shutil.which("chromium")
SKIPPED = 77
FAULTY = """\
duration: 2m
faults: [{kind: mass_drop, at: 1m, fraction: 0.5}]
defaults: {probeEvery: 1s}
services:
  - name: a-{i}
    replicas: 3
    workload: {enabled: true, arrivals: poisson, rate: 50}
"""


class Marks(html.parser.HTMLParser):
    """Counts elements by name and class."""

    def __init__(self, text):
        super().__init__()
        self.counts = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name in (dict(attrs).get("class") or "").split():
            key = f"{tag}.{name}"
            self.counts[key] = self.counts.get(key, 0) + 1
        self.counts[tag] = self.counts.get(tag, 0) + 1


class PoolsimPage(binary.CommandTest):
    def look(self, page):
        """The page as the browser understood it."""
        done = subprocess.run(
            [
                CHROMIUM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--enable-logging=stderr",
                f"--user-data-dir={self.folder / 'browser'}",
                "--dump-dom",
                (self.folder / page).as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=binary.SECONDS_MAX,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("CONSOLE", done.stderr)
        return Marks(done.stdout).counts

    def test_a_run_has_nine_charts_with_their_marks(self):
        (self.folder / "faulty.yaml").write_text(FAULTY)
        done = self.run_it("poolsim", "run", "faulty.yaml", "--plot", "run.html")
        self.assertEqual(done.code, DONE, done)
        seen = self.look("run.html")
        self.assertEqual(seen["svg"], 9)
        # Target, owned, the middle process, the line for permits, waits, time in the reservoir.
        self.assertEqual(seen["path.line"], 6)
        self.assertEqual(seen["path.band"], 1)
        self.assertEqual(seen["line.level"], 1)
        self.assertEqual(seen["line.fault"], 6)
        self.assertGreater(seen["rect.cell-of-map"], 50)
        # The fill takes two seconds, the refill one; one loss, at one age.
        self.assertEqual(seen["rect.column"], 5)

    def test_a_sweep_is_a_map_with_a_cell_for_each_point(self):
        done = self.run_it(
            "poolsim",
            "sweep",
            "local",
            "--set",
            "duration=1m",
            "--sweep",
            "limiterPerSec=2,100",
            "--sweep",
            "defaults.inFlight=1..3/1",
            "--plot",
            "sweep.html",
        )
        self.assertNotEqual(done.code, DONE, "two a second cannot fill it in time")
        seen = self.look("sweep.html")
        self.assertEqual(seen["td.cell"] % 6, 0)
        self.assertGreater(seen["td.fails"], 0)


if __name__ == "__main__":
    if CHROMIUM is None:
        print("chromium is not installed")
        sys.exit(SKIPPED)
    unittest.main()

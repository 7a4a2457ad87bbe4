"""The pictures of holdfast poolsim, in a real browser: they load, and show what they should.

Without Chromium this is skipped, and the summary of ctest says so.
"""

import html.parser
import re
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

# Writes into the title which colours the page has really got.
PROBE = """\
<script>
const names = ["--page", "--ink", "--soft", "--a", "--b", "--c", "--d", "--fault"];
const look = (name) => {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  return getComputedStyle(probe).color;
};
document.title = [getComputedStyle(document.body).backgroundColor, ...names.map(look)].join(";");
</script>
"""
LIGHT, DARK = "preferredColorScheme=1", "preferredColorScheme=0"


def luminance(rgb):
    """As WCAG 2 defines it, of "rgb(18, 22, 29)"."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", rgb)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


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
    def dump(self, page, scheme=LIGHT):
        """The page as the browser understood it, and without a word of complaint."""
        done = subprocess.run(
            [
                CHROMIUM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--enable-logging=stderr",
                f"--blink-settings={scheme}",
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
        return done.stdout

    def look(self, page):
        return Marks(self.dump(page)).counts

    def plot_faulty(self):
        (self.folder / "faulty.yaml").write_text(FAULTY)
        done = self.run_it("poolsim", "run", "faulty.yaml", "--plot", "run.html")
        self.assertEqual(done.code, DONE, done)

    def test_a_run_has_nine_charts_with_their_marks(self):
        self.plot_faulty()
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

    def test_words_and_lines_stand_out_on_light_and_dark_screens(self):
        self.plot_faulty()
        page = (self.folder / "run.html").read_text()
        (self.folder / "probed.html").write_text(page.replace("</body>", PROBE + "</body>"))
        backgrounds = []
        for scheme in (LIGHT, DARK):
            title = re.search("<title>(.*)</title>", self.dump("probed.html", scheme)).group(1)
            background, page_colour, *colours = title.split(";")
            self.assertEqual(background, page_colour)
            backgrounds.append(luminance(background))
            for colour, least in zip(colours, (7, 4.5, 3, 3, 4.5, 4.5, 3), strict=True):
                self.assertGreater(contrast(colour, background), least, (scheme, title))
        self.assertGreater(backgrounds[0], 0.9)
        self.assertLess(backgrounds[1], 0.1)

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

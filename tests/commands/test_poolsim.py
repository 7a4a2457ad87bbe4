"""holdfast poolsim: what it prints, what it writes, how it ends."""

import re
import signal
import unittest
import xml.etree.ElementTree

import binary
from binary import DONE, REFUSED, UNAVAILABLE, USAGE

SLOW = """\
duration: 2m
limiterPerSec: 1
assertConvergeWithin: 10s
services:
  - name: a
    targetReady: 50
"""

LATE = """\
duration: 1m
cluster: {connect: 10ms}
limiter: {burst: 50}
assertions: [{kind: minOwnedFraction, after: 30s}]
services: [{name: a}]
"""


FLEET = "services: [{name: 'a{i}', replicas: 3, targetReady: 5}]\n"


class Poolsim(binary.CommandTest):
    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def test_a_run_that_holds_says_so_and_writes_its_samples(self):
        done = self.run_it("poolsim", "run", "local", "--profile", "compat", "--out", "local.csv")
        self.assertEqual(done.code, DONE, done)
        self.assertIn("history: size 50/50, checkouts 0, empty 0, refills 100", done.out)
        self.assertIn("most opened in a second: 100 (allowed: 100)", done.out)
        self.assertTrue(done.out.endswith("OK\n"), done)
        rows = (self.folder / "local.csv").read_text().splitlines()
        self.assertEqual(len(rows), 4801)
        self.assertEqual(
            rows[0],
            "t_rfc3339,service,size,target,in_use,checkouts,empty_events,discards,"
            "discard_expired,discard_guard,discard_full,refills,refill_failures,scan_evictions,"
            "limiter_denies,work_started,work_completed",
        )
        self.assertTrue(rows[1].startswith("2026-01-01T00:00:01Z,history,50,50,0,"), rows[1])

    def test_a_failed_assertion_is_told_on_standard_error_and_the_samples_are_kept(self):
        done = self.run_it(
            "poolsim", "run", self.write("slow.yaml", SLOW), "--profile", "compat", "--out", "s.csv"
        )
        self.assertEqual(done.code, REFUSED, done)
        self.assertIn("FAIL: assertConvergeWithin: a: reached 50 connections after 49s", done.err)
        self.assertTrue((self.folder / "s.csv").exists())

    def test_json_has_a_schema_the_verdict_and_every_service(self):
        done = self.run_it("poolsim", "run", "local", "--profile", "compat", "--json")
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(done.json["schema"], 1)
        self.assertTrue(done.json["passed"])
        self.assertEqual([s["opens"] for s in done.json["services"]], [100] * 4)

    def test_the_flags_of_the_older_program_mean_compat(self):
        done = self.run_it("poolsim", "-out", "old.csv")
        self.assertEqual(done.code, DONE, done)
        self.assertIn("refills 100", done.out)
        self.assertTrue((self.folder / "old.csv").exists())
        done = self.run_it("poolsim", "-config", self.write("slow.yaml", SLOW), "-cpuprofile=x")
        self.assertEqual(done.code, REFUSED, done)
        self.assertIn("perf", done.err)

    def test_the_verb_run_takes_the_flags_of_the_older_program(self):
        slow = self.write("slow.yaml", SLOW)
        without_a_verb = self.run_it("poolsim", "-config", slow)
        for words in (
            ("-config", slow),
            (f"-config={slow}",),
            ("-out", "old.csv", "-config", slow),
            (slow, "-out=old.csv"),
            ("-cpuprofile", "x", "-config", slow),
        ):
            done = self.run_it("poolsim", "run", *words)
            self.assertEqual((done.code, done.out), (REFUSED, without_a_verb.out), words)
            self.assertIn("FAIL: assertConvergeWithin: a: reached 50 connections", done.err)
        self.assertTrue((self.folder / "old.csv").exists())
        self.assertEqual(
            self.run_it("poolsim", "run", "-out", "new.csv").out,
            self.run_it("poolsim", "-out", "new.csv").out,
        )
        # A profile that is named counts.
        done = self.run_it("poolsim", "run", "-config", slow, "--profile", "default", "--json")
        self.assertNotIn("minute", done.out)
        self.assertEqual(self.run_it("poolsim", "check", "-config", slow).code, USAGE)

    # The product is full again after a loss in seconds, for it looks at what is idle every second.
    def test_the_default_recovers_as_the_product_does(self):
        drop = self.write(
            "drop.yaml",
            "duration: 20m\nfaults: [{kind: mass_drop, at: 5m, fraction: 0.7}]\n"
            "assertions: [{kind: recoverWithin, within: 10s, value: 0.99}]\n"
            "services: [{name: a}, {name: b}, {name: c}, {name: d}]\n",
        )
        self.assertEqual(self.run_it("poolsim", "run", drop).code, DONE)
        schema = self.run_it("poolsim", "schema", "--json").json
        keys = {key["key"]: key["default"] for key in schema["keys"]}
        self.assertEqual(keys["services[0].probeEvery"], "1s")
        self.assertEqual(keys["services[0].baseLifetime"], "50m")
        self.assertEqual(keys["services[0].jitter"], "5m")

    def test_bad_input_is_a_usage_error_with_its_place(self):
        bad = self.write("bad.yaml", "services:\n  - name: a\n    targetReady: -1\n")
        for verb in ("run", "check"):
            done = self.run_it("poolsim", verb, bad)
            self.assertEqual(done.code, USAGE, done)
            self.assertIn("bad.yaml:3:18: services[0].targetReady: give more than 0", done.err)
        done = self.run_it("poolsim", "run", "local", "--seed", "x")
        self.assertEqual(done.code, USAGE, done)
        done = self.run_it("poolsim", "run", "local", "--set", "x")
        self.assertEqual(done.code, USAGE, done)
        # A pipeline must not take it for an assertion that failed.
        done = self.run_it("poolsim", "run", "no-such.yaml")
        self.assertEqual(done.code, USAGE, done)
        self.assertIn("there is neither a file no-such.yaml nor a built-in scenario", done.err)
        done = self.run_it("poolsim", "run", self.write("long.yaml", "#" * (1 << 20) + "\n"))
        self.assertEqual(done.code, USAGE, done)
        self.assertIn("long.yaml: longer than 1048576 bytes", done.err)

    def test_a_folder_that_is_not_there_is_told_before_the_run(self):
        for option in ("--out", "--junit", "--plot"):
            done = self.run_it("poolsim", "run", "local", option, "nowhere/file")
            self.assertEqual(done.code, USAGE, done)
            self.assertIn("there is no folder 'nowhere'", done.err)
            self.assertEqual(done.out, "")

    def test_what_cannot_be_written_is_told_before_the_run(self):
        slow = self.write("slow.yaml", SLOW)
        for words, told in (
            (("--out", "."), "'.': it is a folder; name a file in it"),
            (("--junit", "/proc/file"), "'/proc/file': "),
            (("--plot", slow), "named twice on the command line; choose another name"),
            (("--out", "./x", "--plot", "x"), "'x': it is named twice on the command line"),
        ):
            done = self.run_it("poolsim", "run", slow, *words)
            self.assertEqual(done.code, USAGE, done)
            self.assertIn("cannot write ", done.err)
            self.assertIn(told, done.err)
            self.assertEqual(done.out, "")
            self.assertEqual(done.err.count("\n"), 1, done.err)
        self.assertEqual((self.folder / slow).read_text(), SLOW)
        self.assertFalse((self.folder / "x").exists(), "nothing is left of a look")
        done = self.run_it("poolsim", "sweep", slow, "--sweep", "limiterPerSec=1,2", "--plot", ".")
        self.assertEqual(done.code, USAGE, done)
        done = self.run_it("poolsim", "run", slow, "--out", "/dev/full")
        self.assertEqual(done.code, UNAVAILABLE, done)
        self.assertIn("cannot write '/dev/full'; check whether its disk is full", done.err)

    def test_the_verdicts_of_several_scenarios_stand_in_one_file(self):
        slow = self.write("slow.yaml", SLOW)
        done = self.run_it(
            *("poolsim", "run", "local", slow, "--set", "duration=1m", "--junit", "all.xml")
        )
        self.assertEqual(done.code, REFUSED, done)
        suites = xml.etree.ElementTree.parse(self.folder / "all.xml").getroot()
        self.assertEqual([s.attrib["name"] for s in suites], ["local", slow])
        self.assertEqual([s.attrib["failures"] for s in suites], ["0", "1"])

    def test_a_folder_does_not_hide_a_shipped_scenario(self):
        (self.folder / "local").mkdir()
        self.assertEqual(self.run_it("poolsim", "check", "local").code, DONE)

    def test_many_seeds_give_percentiles_and_a_share_that_must_hold(self):
        tight = self.write(
            "tight.yaml",
            "duration: 20s\nassertions: [{kind: maxWait, within: 0s}]\n"
            "services: [{name: a, targetReady: 3,\n"
            "            workload: {enabled: true, arrivals: poisson, rate: 30}}]\n",
        )
        many = ("poolsim", "run", tight, "--seeds", "1..8")
        done = self.run_it(*many, "--json", "--confidence", "0")
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(done.json["runs"], 8)
        self.assertLess(done.json["passed_runs"], 8)
        self.assertEqual(len(done.json["failures"]), 8 - done.json["passed_runs"])
        self.assertEqual(done.json["failures"][0]["violations"][0]["assertion"], "maxWait")
        self.assertIn("p99", done.json["figures"]["wait_p99_ms"])
        done = self.run_it(*many, "--junit", "verdict.xml")
        self.assertEqual(done.code, REFUSED, done)
        self.assertIn("holds in", done.err)
        tree = xml.etree.ElementTree.parse(self.folder / "verdict.xml").getroot()
        self.assertEqual(tree.attrib["tests"], "8")
        self.assertEqual(len(tree.findall("testcase/failure")), int(tree.attrib["failures"]))
        done = self.run_it(*many, "--junit", "other.xml", "--assert", "maxTotalConnections")
        self.assertEqual(done.code, DONE, done)
        self.assertIn("holds in 8 of 8 runs", done.out)
        other = xml.etree.ElementTree.parse(self.folder / "other.xml").getroot()
        self.assertEqual(other.attrib["failures"], "0", "those of another do not count")
        for share in ("nan", "1.1", "-0.1", "x"):
            done = self.run_it(*many, "--confidence", share)
            self.assertEqual(done.code, USAGE, done)
            self.assertIn("--confidence", done.err)
        one = self.run_it(*many, "--json", "--jobs", "1", "--confidence", "0")
        two = self.run_it(*many, "--json", "--jobs", "2", "--confidence", "0")
        self.assertEqual(one.out, two.out, "threads change nothing")

    def test_a_sweep_is_a_table_and_a_bisection_finds_the_edge(self):
        short = ("local", "--set", "duration=1m")
        done = self.run_it("poolsim", "sweep", *short, "--sweep", "limiterPerSec=5,100", "--json")
        self.assertEqual(done.code, DONE, done)
        self.assertEqual([p["at"]["limiterPerSec"] for p in done.json["points"]], ["5", "100"])
        done = self.run_it(
            "poolsim", "sweep", *short, "--bisect", "defaults.targetReady=10..4000", "--json"
        )
        self.assertEqual(done.code, DONE, done)
        self.assertTrue(1400 <= done.json["largest"] <= 1500, done)
        done = self.run_it(
            *("poolsim", "sweep", self.write("late.yaml", LATE), "--json"),
            *("--bisect", "services[*].startDelay=0s..1m"),
        )
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(done.json["largest"], "29s", "they are there within a second")
        alone = self.run_it("poolsim", "sweep", *short, "--bisect", "targetReady", "--json")
        self.assertEqual(alone.code, DONE, alone)
        self.assertTrue(1400 <= alone.json["largest"] <= 1500, alone)
        for words in (["--bisect", "limiterPerSec="], ["--bisect", "limiterPerSec=5..1"]):
            done = self.run_it("poolsim", "sweep", *short, *words)
            self.assertEqual(done.code, USAGE, done)
            self.assertIn("write KEY=LOW..HIGH", done.err)
        for words in (["--bisect", "targetRaedy"], ["--bisect", "jitter"]):
            done = self.run_it("poolsim", "sweep", *short, *words)
            self.assertEqual(done.code, USAGE, done)
            self.assertIn(f"{words[1]}: ", done.err)
        done = self.run_it(
            "poolsim", "sweep", *short, "--bisect", "limiterPerSec=1..9", "--plot", "x.html"
        )
        self.assertEqual(done.code, USAGE, done)

    def test_a_sweep_takes_fractions_and_durations_of_any_unit_and_refuses_the_rest(self):
        drop = ("local", "--set", "duration=10s", "--set", "scenario.kind=mass_drop")
        done = self.run_it(
            *("poolsim", "sweep", *drop, "--json", "--set", "scenario.dropAt=5s"),
            *("--sweep", "scenario.dropFraction=0.1..0.4/0.1"),
            *("--sweep", "defaults.jitter=0..1m/0.5m"),
        )
        at = [list(point["at"].values()) for point in done.json["points"]]
        self.assertEqual([share for share, _ in at[::3]], ["0.1", "0.2", "0.3", "0.4"])
        self.assertEqual([jitter for _, jitter in at[:3]], ["0s", "30s", "1m"])
        self.assertFalse(done.json["stopped"])
        done = self.run_it(
            "poolsim", "sweep", *drop, "--bisect", "cluster.failures=0.0..0.5", "--json"
        )
        self.assertIsInstance(done.json["largest"], float)
        for words, told in (
            (("--sweep", "limiterPerSec=1..1000000"), "more than 10000 values"),
            (("--sweep", "jitter=0s..10m/30"), "30 has no unit"),
            (("--sweep", "jitter=0s..10m"), "say in which steps"),
            (("--sweep", "limiterPerSec=1,,2"), "--sweep limiterPerSec: limiterPerSec: ''"),
            (("--sweep", "seed=1,2", "--sweep", "seed=3"), "--sweep seed: swept twice"),
            (("--sweep", "limiterPerSec=1..9999", "--seeds", "1..99"), "are 989901 runs"),
            (("--seeds", "5..1", "--sweep", "seed=1"), "'5..1' is not a seed or a range"),
            (("--jobs", "-1", "--sweep", "seed=1"), "--jobs: must be a number from 0 to 1024"),
        ):
            done = self.run_it("poolsim", "sweep", *drop, *words, "--quiet")
            self.assertEqual(done.code, USAGE, done)
            self.assertIn(told, done.err)
            self.assertEqual(done.err.count("\n"), 1, done.err)

    def test_whoever_stops_it_sees_what_there_is_so_far(self):
        large = FLEET.replace("replicas: 3", "replicas: 300")
        endless = self.write("endless.yaml", "duration: 8000h\nsampleEvery: 100h\n" + large)
        done = self.interrupt("poolsim", "run", endless)
        self.assertRegex(done.err, r"the simulation was stopped at [0-9dhms]+ of 333d8h\n")
        short = self.write("short.yaml", "duration: 10m\n" + FLEET)
        done = self.interrupt("poolsim", "run", short, "--seeds", "1..100000")
        self.assertRegex(done.err, "stopped after [0-9]+ of 100000 runs; .* no verdict\n")
        self.assertNotRegex(done.out, "OK|holds in")
        if "stopped after 0 " not in done.err:
            runs = re.search("stopped after ([0-9]+) of", done.err).group(1)
            self.assertIn(f"short.yaml: {runs} runs\n", done.out)

    def test_an_output_may_be_a_link_to_what_is_not_there_yet(self):
        (self.folder / "out.csv").symlink_to("later.csv")
        done = self.run_it("poolsim", "run", "local", "--set", "duration=1m", "--out", "out.csv")
        self.assertEqual(done.code, DONE, done)
        self.assertTrue((self.folder / "out.csv").is_symlink())
        self.assertIn("history", (self.folder / "later.csv").read_text())

    def interrupt(self, *words):
        """Ends it as a user does, once it has said that it begins."""
        process = self.start(*words)
        first = process.stdout.readline()
        self.assertRegex(first, "^simulating ")
        process.send_signal(signal.SIGINT)
        process.stdout, process.stderr = process.communicate(timeout=binary.SECONDS_MAX)
        done = binary.Done(process)
        process.stdout = process.stderr = None
        self.assertEqual(done.code, 128 + signal.SIGINT, done)
        return done

    def test_the_older_models_tell_each_minute_wherever_it_goes(self):
        done = self.run_it("poolsim", "run", "local", "--profile", "compat")
        lines = done.out.splitlines()
        self.assertEqual(lines[0], "simulating local for 20m: 4 services, 200 connections")
        for minute, line in enumerate(lines[1:21], start=1):
            self.assertRegex(line, rf"^00:{minute:02}:0\d: \d+ events, \d+ waiting$")
        self.assertEqual(lines[21], "local: 20m simulated, 4 services, 100 new connections per second")
        self.assertEqual(done.err, "")
        done = self.run_it("poolsim", "run", "local", "--profile", "compat", "--quiet")
        self.assertTrue(done.out.startswith("local: 20m simulated"), done)
        done = self.run_it("poolsim", "run", "local")
        self.assertEqual(done.out.splitlines()[0], lines[0])
        self.assertTrue(done.out.splitlines()[1].startswith("local: 20m simulated"), done)

    def test_what_if_stands_beside_what_is(self):
        done = self.run_it(
            *("poolsim", "compare", "local", "--what-if", "burst=1000", "--set", "duration=1m"),
            "--json",
        )
        self.assertEqual(done.code, DONE, done)
        before, after = done.json["figures"]["fill_s"]
        self.assertGreater(before, after)

    def test_a_plan_flags_what_cannot_go_well_and_a_run_says_it_first(self):
        done = self.run_it("poolsim", "plan", "ecs-150wps")
        self.assertEqual(done.code, DONE, done)
        self.assertIn("N / residency", done.out)
        large = ("ecs-400wps", "--set", "duration=1s")
        done = self.run_it("poolsim", "plan", *large)
        self.assertEqual(done.code, REFUSED, done)
        done = self.run_it("poolsim", "run", *large)
        self.assertIn("the cluster takes 10000 at most", done.err)

    def test_a_moment_is_explained_and_a_service_traced(self):
        done = self.run_it(
            *("poolsim", "run", "local", "--set", "duration=10s"),
            *("--explain", "500ms", "--trace", "worker"),
        )
        self.assertEqual(done.code, DONE, done)
        self.assertIn("at 500ms: ", done.out)
        self.assertIn("worker: starts", done.err)
        self.assertIn("worker: opens one, ", done.err)
        short = ("poolsim", "run", "local", "--set", "duration=10s", "--explain")
        self.assertIn("at 500ms: ", self.run_it(*short, "t=500ms").out)
        for words in (("x",), ("1s", "--trace", "nobody")):
            done = self.run_it(*short, *words)
            self.assertEqual(done.code, USAGE, done)
            self.assertRegex(done.err, "^holdfast: (--explain x|--trace nobody): ")
        done = self.run_it(*short, "617s")
        self.assertEqual(done.code, USAGE, done)
        self.assertIn("the simulation ends at 10s", done.err)

    def test_one_assertion_counts_if_it_is_named_and_there_is_such_a_one(self):
        slow = self.write("slow.yaml", SLOW + "assertions: [{kind: noLeak}]\n")
        self.assertEqual(self.run_it("poolsim", "run", slow).code, REFUSED)
        done = self.run_it("poolsim", "run", slow, "--assert", "noLeak")
        self.assertEqual(done.code, DONE, done)
        done = self.run_it("poolsim", "run", slow, "--assert", "noLaek")
        self.assertEqual(done.code, USAGE, done)
        self.assertIn("slow.yaml has no assertion 'noLaek'; it has: ", done.err)
        done = self.run_it("poolsim", "run", slow, "--profile", "compat", "--assert", "noLeak")
        self.assertEqual(done.code, USAGE, done)
        self.assertIn("it has: assertMaxConnectsPerSec, assertConvergeWithin", done.err)

    def test_recovery_is_told_for_each_fault(self):
        dropped = self.write(
            "dropped.yaml",
            "duration: 3m\nfaults: [{kind: mass_drop, at: 1m}]\n"
            "services: [{name: a, probeEvery: 1s}]\n",
        )
        done = self.run_it("poolsim", "run", dropped)
        self.assertIn("after mass_drop struck at 1m: full again within", done.out)
        done = self.run_it("poolsim", "run", dropped, "--json")
        self.assertEqual(done.json["recoveries"][0]["fault"], "mass_drop")
        self.assertGreater(done.json["recoveries"][0]["took_ms"], 0)
        self.assertGreater(done.json["services"][0]["fill_ms"], 0)

    def test_what_looks_at_one_scenario_refuses_two(self):
        for words in (["plan"], ["sweep", "--sweep", "limiterPerSec=1,2"]):
            done = self.run_it("poolsim", words[0], "local", "mass-drop", *words[1:])
            self.assertEqual(done.code, USAGE, done)
            self.assertIn("name one file", done.err)

    def test_the_older_models_cannot_be_looked_into(self):
        for words in (["--trace", "history"], ["--explain", "10s"]):
            done = self.run_it("poolsim", "run", "local", "--profile", "compat", *words)
            self.assertEqual(done.code, USAGE, done)
            self.assertIn("--trace and --explain need the profile default", done.err)

    def test_schema_lists_the_keys(self):
        done = self.run_it("poolsim", "schema")
        self.assertEqual(done.code, DONE, done)
        self.assertRegex(done.out, r"services\[0\]\.guardWindow +45s +duration")

    def test_list_names_what_run_takes(self):
        done = self.run_it("poolsim", "list", "--json")
        self.assertEqual(done.code, DONE, done)
        names = [shipped["name"] for shipped in done.json]
        self.assertIn("ecs-400wps", names)
        self.assertIn("compat-s/local", names)
        done = self.run_it("poolsim", "check", *names)
        self.assertEqual(done.code, DONE, done)
        self.assertIn("ecs-400wps: 44 services, 22000 connections, profile default", done.out)


if __name__ == "__main__":
    unittest.main()

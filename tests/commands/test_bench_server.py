"""The shape of what `holdfast bench server` prints. Nothing here says how fast anything is."""

import json
import signal
import unittest

import binary
from binary import DONE, UNAVAILABLE, USAGE

BRIEFLY = ("--rounds", "1", "--seconds", "0.05", "--clients", "4")
SCENARIOS = ("hello", "chain1", "chain5", "fanout", "signals", "timers", "updates", "backlog", "idle")
# Commits of runs that a workflow takes, if a worker waits for each of its tasks.
COMMITS = {"hello": 2, "chain1": 4, "chain5": 12}


class BenchServer(binary.CommandTest):
    def measure(self, *arguments):
        done = self.run_it("bench", "server", *BRIEFLY, "--json", *arguments)
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(done.json["bench"], "server")
        self.assertEqual(done.json["failed"], [])
        return done.json

    def serve(self):
        """A server of its own, its address and its process."""
        process = self.start("server", "start-dev", "--port", "0", "--json")
        return f"127.0.0.1:{json.loads(process.stdout.readline())['port']}", str(process.pid)

    def test_ours_is_measured_on_a_file_in_every_scenario(self):
        report = self.measure("--only", "sqlite", "--open", "20", "--dir", ".")
        self.assertEqual(report["durability"]["sqlite"]["synchronous"], "FULL")
        results = {result["name"]: result for result in report["results"]}
        expected = [f"sqlite.{name}.k4" for name in SCENARIOS]
        # Updates are measured where the server has them.
        self.assertLessEqual(set(expected) - set(results), {"sqlite.updates.k4"})
        self.assertLessEqual(set(results), set(expected))
        for name, result in results.items():
            self.assertEqual(result["unit"], "workflows/s")
            self.assertIsNone(result["floor"])
            self.assertGreater(result["ratio"], 0, name)
            counts = result["counts"]
            for count in ("server_cpu_us", "commits", "statements", "disk_bytes"):
                self.assertIn(count, counts, name)
            self.assertGreater(counts["resident_mb"], 1, name)
            least = COMMITS.get(name.split(".")[1])
            if least:
                # A poll that comes a little late costs one more, so there is no exact number here.
                self.assertGreaterEqual(counts["run_commits"], least, name)
                self.assertLessEqual(counts["p50_us"], counts["p99_us"], name)
        self.assertGreater(results["sqlite.backlog.k4"]["counts"]["starts_per_s"], 0)
        for figure in ("open_resident_mb", "bytes_per_open", "open_cpu_percent"):
            self.assertIn(figure, results["sqlite.idle.k4"]["counts"])
        self.assert_left_behind()

    def test_ours_is_measured_on_a_private_server(self):
        self.folder.chmod(0o755)  # The private server is another user's.
        report = self.measure("--only", "postgres.hello")
        self.assertEqual([result["name"] for result in report["results"]], ["postgres.hello.k4"])
        self.assertEqual(report["durability"]["postgres"]["fsync"], "on")
        self.assert_left_behind()

    def test_two_servers_are_compared_in_one_run(self):
        address, pid = self.serve()
        report = self.measure(
            *("--target", "ours", "--target", address, "--pid", pid, "--only", "versus.chain1")
        )
        [result] = report["results"]
        self.assertEqual(result["name"], "versus.chain1.k4")
        self.assertAlmostEqual(result["ratio"], result["ours"] / result["limit"])
        self.assertGreater(result["counts"]["limit_resident_mb"], 1)
        self.assertGreater(result["counts"]["limit_memory_times_ours"], 0)
        self.assertIn("limit_p99_us", result["counts"])
        self.assertEqual(report["durability"][address], {"durability": "unknown"})
        self.assert_left_behind()

    def test_a_server_that_is_named_is_compared_with_the_bare_database(self):
        address, pid = self.serve()
        report = self.measure(
            *("--target", address, "--pid", pid, "--only", "target.hello", "--namespace", "other")
        )
        [result] = report["results"]
        self.assertEqual(result["name"], "target.hello.k4")
        self.assertGreater(result["counts"]["resident_mb"], 1)
        self.assertNotIn("commits", result["counts"], "which only ours tells")
        self.assertEqual(report["durability"]["sqlite"]["synchronous"], "FULL")

    def test_nothing_is_left_after_an_interrupt(self):
        process = self.start(
            *("bench", "server", "--only", "sqlite.hello", "--only", "sqlite.chain5", "--json"),
            *("--rounds", "40", "--seconds", "0.02", "--clients", "4", "--dir", "."),
        )
        self.assertRegex(process.stderr.readline(), r"^sqlite\.hello\.k4: ")
        process.send_signal(signal.SIGINT)  # In the middle of the second one.
        # Its child has the same standard error, so this also waits for the child's end.
        process.communicate(timeout=binary.SECONDS_MAX)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assert_left_behind()

    def test_what_cannot_be_meant_is_refused(self):
        for arguments, word in (
            (("--target", "a:1", "--target", "b:1", "--target", "c:1"), "at most 2"),
            (("--target", "ours", "--target", "ours"), "another server"),
            (("--pid", "1"), "--pid"),
            (("--scenario", "hello"), "--only"),
            (("--open", "0"), "--open"),
            (("--only", "zebra"), "sqlite.hello.k64"),
        ):
            self.assert_fails(self.run_it("bench", "server", *arguments), USAGE, word)
        done = self.run_it("bench", "sql", "--target", "ours")
        self.assert_fails(done, USAGE, "bench server")
        done = self.run_it("bench", "server", "--target", "127.0.0.1:1", "--pid", "999999999")
        self.assertEqual(done.code, UNAVAILABLE, done)


if __name__ == "__main__":
    unittest.main()

"""The shape of what `holdfast bench` prints. Nothing here says how fast anything is."""

import json
import re
import unittest

import binary
from binary import BINARY, DONE, REFUSED, USAGE

NAMES = [f"pg.update.c{clients}" for clients in (1, 8, 32)] + [
    f"sqlite.commit.w{writers}" for writers in (1, 8, 64)
]
BRIEFLY = ("--rounds", "1", "--seconds", "0.05")


class Bench(binary.CommandTest):
    def bench(self, *arguments, **how):
        done = self.run_it("bench", "sql", *BRIEFLY, *arguments, **how)
        self.assertEqual(done.code, DONE, done)
        return done

    def test_the_json_has_the_promised_shape(self):
        self.folder.chmod(0o755)  # The private server is another user's.
        done = self.bench("--json", env={"TMPDIR": str(self.folder)})
        report = done.json
        self.assertEqual(done.out.count("\n"), 1, "one object, on one line")
        self.assertEqual(report["bench"], "sql")
        self.assertEqual([result["name"] for result in report["results"]], NAMES)
        self.assertGreater(report["machine"]["cores"], 0)
        self.assertGreater(report["machine"]["flush_us"], 0)
        self.assertGreaterEqual(report["machine"]["load"], 0)
        self.assertGreater(report["peak_memory_bytes"], 0)
        self.assertEqual(report["durability"]["postgres"]["fsync"], "on")
        self.assertEqual(report["durability"]["postgres"]["synchronous_commit"], "on")
        self.assertEqual(report["durability"]["sqlite"]["synchronous"], "FULL")
        for result in report["results"]:
            self.assertEqual(result["unit"], "tx/s")
            self.assertEqual(result["rounds"], 1)
            self.assertGreater(result["ours"], 0)
            self.assertGreater(result["limit"], 0)
            self.assertAlmostEqual(result["ratio"], result["ours"] / result["limit"])
            for spread in ("ours_quartiles", "limit_quartiles", "ratio_quartiles"):
                self.assertEqual(len(result[spread]), 2)
            self.assertAlmostEqual(result["counts"]["statements_per_tx"], 1)
        self.assertEqual(
            [result["floor"] for result in report["results"]], [None, 0.85, None, 0.85, 2.5, 5]
        )
        self.assert_left_behind()

    def test_the_gateway_is_measured_against_the_server_below_it(self):
        self.folder.chmod(0o755)
        done = self.run_it("bench", "gateway", *BRIEFLY, "--json", env={"TMPDIR": str(self.folder)})
        self.assertEqual(done.code, DONE, done)
        results = done.json["results"]
        self.assertEqual(
            [(result["name"], result["floor"]) for result in results],
            [("gateway.update.c1", None), ("gateway.update.c8", 0.5)],
        )
        for result in results:
            self.assertGreater(result["ours"], 0)
        self.assertEqual(done.json["durability"]["postgres"]["fsync"], "on")
        self.assert_left_behind()

    def test_the_store_is_measured_on_all_three_databases(self):
        self.folder.chmod(0o755)
        floors = {
            "pg.update.c8": 0.25,
            "pg.add_task.c8": 0.5,
            "sqlite.update.w32": 1.5,
            "dsql.update.c8": 0.4,
        }
        chosen = [argument for name in floors for argument in ("--only", name)]
        done = self.run_it(
            "bench", "store", *BRIEFLY, *chosen, "--json", env={"TMPDIR": str(self.folder)}
        )
        self.assertEqual(done.code, DONE, done)
        results = done.json["results"]
        self.assertEqual({result["name"]: result["floor"] for result in results}, floors)
        for result in results:
            self.assertGreater(result["ours"], 0, result)
            self.assertLessEqual(result["counts"]["round_trips_per_tx"], 2.01, result)
            if not result["name"].startswith("dsql."):
                self.assertEqual(result["counts"]["retries_share"], 0, result)
        self.assertEqual(done.json["durability"]["postgres"]["fsync"], "on")
        self.assertEqual(done.json["durability"]["sqlite"]["synchronous"], "FULL")
        self.assert_left_behind()

    def test_the_store_has_a_name_for_every_work_and_database(self):
        done = self.run_it("bench", "store", "--only", "zebra")
        works = ("create", "update", "add_task", "get_tasks")
        for database, unit in (("pg", "c"), ("sqlite", "w"), ("dsql", "c")):
            for name in [f"{database}.{work}.{unit}{n}" for work in works for n in (1, 8, 32)]:
                self.assertRegex(done.err, rf"\b{re.escape(name)}\b")
        for name in ("pg.update.one_shard.c8", "dsql.update.one_shard.c8"):
            self.assert_fails(done, USAGE, name)

    def test_all_works_of_the_store_are_measured_by_one_client_and_by_many(self):
        self.folder.chmod(0o755)
        arguments = []
        for work in ("create", "add_task", "get_tasks"):
            arguments += ["--only", f"sqlite.{work}", "--only", f"dsql.{work}.c32"]
        done = self.run_it(
            "bench", "store", *BRIEFLY, *arguments, "--json", env={"TMPDIR": str(self.folder)}
        )
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(len(done.json["results"]), 3 * 3 + 3)
        for result in done.json["results"]:
            self.assertGreater(result["ours"], 0, result)
            self.assertIsNone(result["floor"], result)
            self.assertLessEqual(result["counts"]["round_trips_per_tx"], 2.01, result)
        self.assert_left_behind()

    def test_the_store_leaves_no_database_on_a_server_that_is_named(self):
        url = self.postgres()
        self.assert_fails(
            self.run_it("bench", "store", "--db", url, "--only", "pg.create", *BRIEFLY),
            REFUSED,
            "fsync",
        )
        databases = self.psql_at(
            url, "SELECT count(*) FROM pg_database WHERE datname LIKE 'holdfast_bench%'"
        )
        self.assertEqual(databases.strip(), "0")
        self.assert_fails(
            self.run_it("bench", "store", "--db", "dsql://x.dsql.us-east-1.on.aws", *BRIEFLY),
            USAGE,
            "postgres://",
        )

    def flow(self, *arguments):
        done = self.run_it(
            "bench", "flow", "--db", f"sqlite:{self.folder}/flow.db?create=1", "--json", *arguments
        )
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(done.json["failed"], [])
        self.assertEqual(done.json["durability"]["sqlite"]["synchronous"], "FULL")
        self.assertGreater(done.json["peak_memory_bytes"], 0)
        return done.json["results"]

    def test_workflows_are_measured_in_every_scenario(self):
        quick = [f"sqlite.{name}" for name in ("chain1", "chain5", "parallel", "parallel0")]
        slow = [f"sqlite.{name}" for name in ("fanout", "timers", "longhistory", "largepayload")]
        results = {}
        for some in (quick, slow):
            only = [argument for name in some for argument in ("--only", name)]
            results |= {result["name"]: result for result in self.flow(*BRIEFLY, *only)}
        self.assertEqual(
            list(results),
            [f"sqlite.chain1.k{k}" for k in (1, 16, 64)]
            + [f"sqlite.chain5.k{k}" for k in (16, 64)]
            + [f"sqlite.parallel.k20.s{slots}" for slots in (1, 2)]
            + ["sqlite.parallel0.k200"]
            + [f"sqlite.{name}.k1" for name in ("fanout", "timers", "longhistory")]
            + ["sqlite.largepayload.k5"],
        )
        floors = {name: result["floor"] for name, result in results.items() if result["floor"]}
        self.assertEqual(
            floors,
            {"sqlite.chain1.k64": 0.6, "sqlite.chain5.k64": 0.2, "sqlite.parallel0.k200": 0.25},
        )
        activities = {"chain1": 1, "chain5": 5, "parallel": 5, "parallel0": 5, "fanout": 1000}
        for name, result in results.items():
            counts = result["counts"]
            self.assertGreater(result["ratio"], 0, name)
            for count in ("commits", "round_trips", "history_bytes_read", "statements"):
                self.assertIn(count, counts, name)
            if "timers" in name or "longhistory" in name:
                continue
            for figure in ("activities_per_s", "p50_us", "p99_us", "resident_mb"):
                self.assertGreater(counts[figure], 0, name)
            self.assertLessEqual(counts["p50_us"], counts["p99_us"], name)
            scenario = name.split(".")[1]
            self.assertAlmostEqual(counts["activities"], activities.get(scenario, 40), msg=name)
        self.assertAlmostEqual(results["sqlite.chain1.k1"]["counts"]["commits"], 2, delta=0.2)
        self.assertLess(results["sqlite.chain1.k64"]["counts"]["commits"], 1)
        self.assertIn("of_ceiling", results["sqlite.parallel.k20.s1"]["counts"])
        for figure in ("late_p50_ms", "late_p99_ms", "asleep", "asleep_resident_mb"):
            self.assertIn(figure, results["sqlite.timers.k1"]["counts"])
        for figure in ("p50_us", "short_p50_us", "cold_us"):
            self.assertGreater(results["sqlite.longhistory.k1"]["counts"][figure], 0)

    def test_a_scenario_can_be_narrowed_down(self):
        [result] = self.flow("--scenario", "chain1", "--only", "sqlite.chain1.k16", *BRIEFLY)
        self.assertEqual(result["name"], "sqlite.chain1.k16")
        results = self.flow("--scenario", "chain5", "--only", "sqlite", *BRIEFLY)
        self.assertEqual({result["name"].split(".")[1] for result in results}, {"chain5"})
        self.assert_fails(
            self.run_it("bench", "flow", "--scenario", "chain1", "--only", "sqlite.chain5"),
            USAGE,
            "--only matches no measurement",
        )

    def test_ten_thousand_workflows_asleep_take_little(self):
        sanitized = any(name in BINARY.read_bytes() for name in (b"__asan_init", b"__tsan_init"))
        seconds = "0.1" if sanitized else "1"  # A tenth of them, whose size says nothing.
        [result] = self.flow("--scenario", "timers", "--rounds", "1", "--seconds", seconds)
        counts = result["counts"]
        if sanitized:
            return
        self.assertEqual(counts["asleep"], 10_000)
        self.assertLess(counts["asleep_resident_mb"], 48)
        # Not measured on a machine so late that the first woke up before the last was started.
        self.assertLess(counts.get("asleep_cpu_percent", 0), 1)

    def test_the_pool_is_measured_against_a_bare_one(self):
        done = self.run_it("bench", "pool", *BRIEFLY, "--json")
        self.assertEqual(done.code, DONE, done)
        results = done.json["results"]
        self.assertEqual(
            [(result["name"], result["unit"], result["floor"]) for result in results],
            [(f"pool.warm.t{threads}", "pairs/s", 0.8) for threads in (1, 8, 32)],
        )
        for result in results:
            self.assertGreater(result["ours"], 0)
            self.assertGreater(result["limit"], 0)
            # Not counted under a sanitizer.
            self.assertEqual(result["counts"].get("allocations_per_pair", 0), 0)
            self.assertGreater(result["counts"]["wait_p99_us"], 0)
            self.assertGreater(result["counts"]["bare_wait_p99_us"], 0)

    def test_the_simulator_is_measured_in_events_and_seeds(self):
        done = self.run_it("bench", "poolsim", *BRIEFLY, "--json")
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(
            [(result["name"], result["unit"]) for result in done.json["results"]],
            [
                ("poolsim.events.default", "events/s"),
                ("poolsim.events.compat", "events/s"),
                ("poolsim.seeds.t1", "seeds/s"),
                ("poolsim.seeds.t2", "seeds/s"),
                ("poolsim.run.default", "runs/s"),
                ("poolsim.run.compat", "runs/s"),
                ("poolsim.seeds.200", "seeds/s"),
                ("poolsim.memory", "of 200 MB"),
            ],
        )
        for result in done.json["results"][:4]:
            self.assertGreater(result["counts"]["seconds_per_run"], 0)

    def test_one_write_is_one_round_trip_and_many_writers_share_a_commit(self):
        results = {
            result["name"]: result["counts"] for result in self.bench("--json").json["results"]
        }
        self.assertAlmostEqual(results["pg.update.c8"]["round_trips_per_tx"], 1, places=1)
        # How many share one depends on how long a flush takes, and here it may take no time.
        self.assertLess(results["sqlite.commit.w64"]["commits_per_tx"], 1)

    def test_single_ones_can_be_chosen_by_name_or_by_beginning(self):
        done = self.bench("--json", "--only", "sqlite.commit.w8", "--only", "sqlite.commit.w1")
        self.assertEqual(
            [result["name"] for result in done.json["results"]],
            ["sqlite.commit.w1", "sqlite.commit.w8"],
        )
        done = self.bench("--json", "--only", "sqlite")
        self.assertEqual([result["name"] for result in done.json["results"]], NAMES[3:])
        self.assertNotIn("postgres", done.json["durability"], "no server is started for a file")
        self.assert_fails(
            self.run_it("bench", "sql", "--only", "sqlite.commit.w"), USAGE, "sqlite.commit.w8"
        )
        self.assert_fails(self.run_it("bench", "zebra"), USAGE, "sql")

    def test_people_get_a_table_and_a_page(self):
        done = self.bench("--only", "sqlite.commit.w1", "--report", "page.html", "-q")
        self.assertRegex(done.out, r"(?m)^benchmark +ours +limit +unit +ratio")
        self.assertRegex(done.out, r"(?m)^sqlite\.commit\.w1 ")
        self.assertIn("Peak memory", done.out)
        self.assertEqual(done.err, "")
        page = (self.folder / "page.html").read_text()
        self.assertIn("<svg", page)
        self.assertIn("sqlite.commit.w1", page)
        self.bench("--only", "sqlite.commit.w8", "--report", "page.html", "-q")
        self.assertIn("sqlite.commit.w8", (self.folder / "page.html").read_text())
        self.assert_left_behind("page.html")

    def test_progress_goes_to_standard_error(self):
        done = self.bench("--json", "--only", "sqlite.commit.w1")
        self.assertRegex(done.err, r"(?m)^sqlite\.commit\.w1: [\d.,]+ tx/s, ratio [\d.]+$")
        json.loads(done.out)

    def test_on_a_server_that_is_named_it_leaves_no_table(self):
        # The shared server does not flush, and a comparison on it would say nothing.
        url = self.postgres()
        self.assert_fails(
            self.run_it("bench", "sql", "--db", url, "--only", "pg", *BRIEFLY), REFUSED, "fsync"
        )
        tables = self.psql_at(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        self.assertEqual(tables.strip(), "0")

    def test_a_folder_that_cannot_be_written_is_an_error(self):
        done = self.run_it("bench", "sql", "--only", "sqlite", "--dir", "missing", *BRIEFLY)
        self.assert_fails(done, binary.UNAVAILABLE, "missing")
        self.assert_left_behind()


if __name__ == "__main__":
    unittest.main()

"""The shape of what `holdfast bench` prints. Nothing here says how fast anything is."""

import json
import unittest

import binary
from binary import DONE, REFUSED, USAGE

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
        for name in (
            [f"pg.{work}.c8" for work in ("create", "update", "add_task", "get_tasks")]
            + [f"dsql.{work}.c8" for work in ("create", "update", "add_task", "get_tasks")]
            + [f"{database}.update.c{clients}" for database in ("pg", "dsql") for clients in (1, 32)]
            + [f"sqlite.update.w{writers}" for writers in (1, 8, 32)]
            + ["pg.update.one_shard.c8", "dsql.update.one_shard.c8"]
        ):
            self.assert_fails(done, USAGE, name)

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

"""holdfast schema on every database: apply, again, at once; a newer one; what it prints."""

import sqlite3
import unittest

import binary
from binary import DONE, REFUSED


class OnEveryDatabase:
    """The same stories on a file and on a server."""

    def schema(self, verb, *arguments):
        return self.run_it("schema", verb, "--db", self.url, "--json", *arguments)

    def demo_part(self, done):
        self.assertEqual(done.code, DONE, done)
        return {part["part"]: part for part in done.json["parts"]}["demo"]

    def test_apply_brings_a_part_to_the_version_that_is_known(self):
        part = self.demo_part(self.schema("apply"))
        self.assertEqual((part["from"], part["version"]), (0, part["known"]))
        self.assertEqual(self.demo_part(self.schema("status"))["state"], "up to date")

    def test_applying_twice_is_applying_once(self):
        first = self.demo_part(self.schema("apply"))
        again = self.demo_part(self.schema("apply"))
        self.assertEqual((again["from"], again["version"]), (first["version"], first["version"]))

    def test_several_may_apply_at_once(self):
        running = [self.start("schema", "apply", "--db", self.url) for _ in range(6)]
        for process in running:
            out, err = process.communicate(timeout=binary.SECONDS_MAX)
            self.assertEqual(process.returncode, DONE, out + err)
        self.assertEqual(self.demo_part(self.schema("status"))["state"], "up to date")

    def test_a_newer_schema_is_refused_and_left_alone(self):
        self.schema("apply")
        self.execute("UPDATE holdfast_schema SET version = 99")
        self.assert_fails(
            self.run_it("schema", "apply", "--db", self.url), REFUSED, "99", "newer", "upgrade"
        )
        self.assert_fails(self.run_it("demo", "--db", self.url), REFUSED, "99", "newer")
        status = self.demo_part(self.schema("status"))
        self.assertEqual((status["version"], status["state"]), (99, "newer than this binary"))

    def test_the_table_for_people(self):
        self.schema("apply")
        done = self.run_it("schema", "status", "--db", self.url)
        self.assertRegex(
            done.out, r"\Apart +version +known +state\n(\w+ +\d+ +\d+ +up to date\n)+\Z"
        )
        self.assertRegex(done.out, r"(?m)^flow ")
        self.assertRegex(done.out, r"(?m)^demo ")

    def test_a_part_can_be_named(self):
        self.assertEqual(self.demo_part(self.schema("apply", "--part", "demo"))["part"], "demo")

    def test_the_stores_tables_are_made_only_if_they_are_asked_for(self):
        self.demo_part(self.schema("apply"))
        status = self.schema("status", "--part", "store").json["parts"][0]
        self.assertEqual(status["state"], "not there")
        part = self.schema("apply", "--part", "store").json["parts"][0]
        self.assertEqual((part["part"], part["from"], part["version"]), ("store", 0, part["known"]))

    def test_the_stores_tables_are_made_once_by_however_many(self):
        apply = ("schema", "apply", "--part", "store", "--db", self.url)
        for process in [self.start(*apply) for _ in range(6)]:
            out, err = process.communicate(timeout=binary.SECONDS_MAX)
            self.assertEqual(process.returncode, DONE, out + err)
        again = self.schema("apply", "--part", "store").json["parts"][0]
        self.assertEqual((again["from"], again["version"]), (again["known"], again["known"]))


class OnSqlite(OnEveryDatabase, binary.CommandTest):
    def setUp(self):
        super().setUp()
        self.url = "sqlite:x.db"

    def execute(self, statement):
        with sqlite3.connect(self.folder / "x.db") as connection:
            connection.execute(statement)
        connection.close()

    def test_apply_creates_the_file(self):
        self.assert_left_behind()
        self.schema("apply")
        self.assertTrue((self.folder / "x.db").exists())

    def test_the_database_may_come_from_the_environment(self):
        done = self.run_it("schema", "apply", env={"HOLDFAST_DB": self.url})
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(self.demo_part(self.schema("status"))["state"], "up to date")


class OnPostgres(OnEveryDatabase, binary.CommandTest):
    def setUp(self):
        super().setUp()
        self.url = self.postgres()

    def execute(self, statement):
        self.psql_at(self.url, statement)


class Dump(binary.CommandTest):
    def dump(self, dialect, *arguments):
        done = self.run_it("schema", "dump", "--dialect", dialect, *arguments)
        self.assertEqual(done.code, DONE, done)
        return done

    def test_each_dialect_has_its_own_words_and_no_holes(self):
        texts = {dialect: self.dump(dialect).out for dialect in ("sqlite", "postgres", "dsql")}
        for dialect, text in texts.items():
            self.assertIn("holdfast_demo_ledger", text)
            self.assertNotIn("{", text, dialect)
            store = self.dump(dialect, "--part", "store").out
            self.assertEqual(store.count("CREATE TABLE"), 39, dialect)
            self.assertIn(store, text)
        self.assertIn("STRICT", texts["sqlite"])
        self.assertIn("BIGINT", texts["postgres"])
        self.assertIn("INDEX ASYNC", texts["dsql"])
        self.assertNotIn("ASYNC", texts["postgres"])

    def test_what_is_dumped_can_be_run_by_hand(self):
        with sqlite3.connect(":memory:") as connection:
            connection.executescript(self.dump("sqlite").out)
        connection.close()
        self.psql_at(self.postgres(), self.dump("postgres").out)

    def test_it_needs_no_database_and_has_json(self):
        parts = self.dump("sqlite", "--json", "--part", "demo").json["parts"]
        self.assertEqual([part["part"] for part in parts], ["demo"])
        self.assertIn("CREATE TABLE", parts[0]["sql"])
        self.assert_left_behind()


if __name__ == "__main__":
    unittest.main()

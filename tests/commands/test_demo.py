"""The demo tells the truth: nothing lost when it says so, and it would notice."""

import sqlite3
import unittest

import binary
from binary import DONE


class Demo(binary.CommandTest):
    def check(self, done):
        self.assertEqual(done.code, DONE, done)
        story = done.json
        self.assertTrue(story["clean"])
        for kill in story["kills"]:
            self.assertGreater(kill["acknowledged"], 0)
            self.assertEqual((kill["lost"], kill["doubled"], kill["halved"]), (0, 0, 0))
            self.assertEqual(kill["found"], kill["acknowledged"] + kill["in_flight"])
            self.assertLessEqual(
                kill["in_flight"], story["writers"], "a writer has one transfer in flight"
            )
        return story

    def test_on_a_file_of_its_own_it_leaves_nothing_behind(self):
        story = self.check(
            self.run_it("demo", "--kills", "2", "--json", env={"TMPDIR": str(self.folder)})
        )
        self.assertEqual(len(story["kills"]), 2)
        self.assert_left_behind()

    def test_with_many_writers_a_flush_carries_several_transfers(self):
        kill = self.check(self.run_it("demo", "--kills", "1", "--writers", "32", "--json"))[
            "kills"
        ][0]
        self.assertLess(kill["physical_commits"], kill["acknowledged"])

    def test_for_people_it_tells_a_story_that_ends_well(self):
        done = self.run_it("demo", "--kills", "1")
        self.assertEqual(done.code, DONE, done)
        self.assertIn("Nothing acknowledged was lost.", done.out)
        self.assertEqual(done.err, "", "no progress where nobody watches")

    def test_on_a_file_that_is_named_it_leaves_the_file_without_its_rows(self):
        self.check(self.run_it("demo", "--kills", "1", "--json", "--db", "sqlite:mine.db"))
        with sqlite3.connect(self.folder / "mine.db") as connection:
            count = connection.execute("SELECT count(*) FROM holdfast_demo_ledger").fetchone()[0]
        connection.close()
        self.assertEqual(count, 0)

    def test_the_ledger_can_be_kept(self):
        done = self.run_it("demo", "--kills", "1", "--keep", "--json", "--db", "sqlite:mine.db")
        found = self.check(done)["kills"][0]["found"]
        with sqlite3.connect(self.folder / "mine.db") as connection:
            count = connection.execute("SELECT count(*) FROM holdfast_demo_ledger").fetchone()[0]
        connection.close()
        self.assertEqual(count, 2 * found)

    def test_on_a_server_whose_schema_was_applied(self):
        url = self.postgres()
        self.assertEqual(self.run_it("schema", "apply", "--db", url).code, DONE)
        self.check(self.run_it("demo", "--kills", "2", "--json", "--db", url))
        self.assertEqual(
            self.psql_at(url, "SELECT count(*) FROM holdfast_demo_ledger").strip(), "0"
        )

    def test_settings_reach_the_writers(self):
        (self.folder / "h.yaml").write_text("db: sqlite:configured.db\nretry:\n  max_retries: 2\n")
        self.check(self.run_it("--config", "h.yaml", "demo", "--kills", "1", "--json"))
        self.assertTrue((self.folder / "configured.db").exists())


if __name__ == "__main__":
    unittest.main()

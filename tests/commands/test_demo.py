"""The demo tells the truth: every charge done once when it says so, and it would notice."""

import os
import pathlib
import sqlite3
import unittest

import binary
from binary import DONE, REFUSED, USAGE


class DemoTest(binary.CommandTest):
    program = binary.BINARY

    def demo(self, *arguments, **how):
        return self.run_it(*arguments, binary=self.program, **how)

    def check(self, done):
        self.assertEqual(done.code, DONE, done)
        story = done.json
        self.assertTrue(story["clean"])
        self.assertEqual(
            [(kill["worker"], kill["moment"]) for kill in story["kills"]],
            [(1, "reserve"), (2, "approval"), (3, "charge"), (4, "refund")],
        )
        for order in story["orders"]:
            charges = 1 if order["approved"] else 0
            refunds = 1 if order["courier_fails"] else 0
            self.assertEqual((order["charges"], order["refunds"]), (charges, refunds), order)
            self.assertEqual(order["charged_cents"], charges * order["cents"])
        return story

    def ledger(self, name):
        connection = sqlite3.connect(self.folder / name)
        self.addCleanup(connection.close)
        return connection.execute(
            "SELECT order_id, kind, cents FROM holdfast_demo_ledger ORDER BY order_id, kind"
        ).fetchall()

    def check_a_file_of_its_own(self):
        self.check(self.demo("demo", "--json", env={"TMPDIR": str(self.folder)}))
        self.assert_left_behind()


class Demo(DemoTest):
    def test_on_a_file_of_its_own_it_leaves_nothing_behind(self):
        self.check_a_file_of_its_own()

    def test_for_people_it_tells_a_story_that_ends_well(self):
        done = self.demo("demo", "--orders", "3")
        self.assertEqual(done.code, DONE, done)
        self.assertIn("Every charge and every refund happened exactly once.", done.out)
        self.assertEqual(done.out.count("kill -9 worker"), 4)
        self.assertRegex(done.out, r"(?m)^ +\+[\d.]+ s +activity +shop\.refund +=+")
        self.assertEqual(done.err, "", "no progress where nobody watches")

    def test_on_a_file_that_is_named_it_leaves_the_file_without_its_rows(self):
        self.check(self.demo("demo", "--json", "--db", "sqlite:mine.db"))
        self.assertEqual(self.ledger("mine.db"), [])
        listed = self.run_it("flow", "list", "--json", "--db", "sqlite:mine.db").json
        self.assertEqual(listed["instances"], [])

    def test_orders_and_ledger_can_be_kept(self):
        done = self.demo("demo", "--keep", "--json", "--db", "sqlite:mine.db")
        expected = []
        for order in self.check(done)["orders"]:
            expected += [(order["id"], "charge", order["cents"])] * order["charges"]
            expected += [(order["id"], "refund", order["cents"])] * order["refunds"]
        self.assertEqual(self.ledger("mine.db"), sorted(expected))
        listed = self.run_it("flow", "list", "--json", "--db", "sqlite:mine.db").json
        self.assertEqual(len(listed["instances"]), len(done.json["orders"]))

    def test_it_notices_a_charge_that_happened_twice(self):
        self.assertEqual(self.run_it("schema", "apply", "--db", "sqlite:mine.db").code, DONE)
        connection = sqlite3.connect(self.folder / "mine.db")
        connection.execute(
            "CREATE TRIGGER twice AFTER INSERT ON holdfast_demo_ledger "
            "WHEN NEW.kind = 'charge' AND length(NEW.entry_id) = 16 BEGIN "
            "INSERT INTO holdfast_demo_ledger "
            "VALUES (randomblob(17), NEW.run_id, NEW.order_id, NEW.kind, NEW.cents, NEW.worker); "
            "END"
        )
        connection.commit()
        connection.close()
        done = self.demo("demo", "--orders", "3", "--db", "sqlite:mine.db")
        self.assertEqual(done.code, REFUSED, done)
        self.assertIn("THIS IS A BUG.", done.out)

    def test_on_a_server_whose_schema_was_applied(self):
        url = self.postgres()
        self.assertEqual(self.run_it("schema", "apply", "--db", url).code, DONE)
        self.check(self.demo("demo", "--json", "--db", url))
        self.assertEqual(
            self.psql_at(url, "SELECT count(*) FROM holdfast_demo_ledger").strip(), "0"
        )

    def test_settings_reach_the_workers(self):
        (self.folder / "h.yaml").write_text("db: sqlite:configured.db\nretry:\n  max_retries: 2\n")
        self.check(self.demo("--config", "h.yaml", "demo", "--json"))
        self.assertTrue((self.folder / "configured.db").exists())


class DemoAlone(DemoTest):
    """The program that `./run demo` builds."""

    program = pathlib.Path(os.environ["HOLDFAST_DEMO"])

    def test_on_a_file_of_its_own_it_leaves_nothing_behind(self):
        self.check_a_file_of_its_own()

    def test_it_names_the_program_that_opens_a_cluster(self):
        done = self.demo("demo", "--db", "dsql://ann@cluster.example")
        self.assert_fails(done, USAGE, "./run build", "build/holdfast demo --db dsql://")

    def test_it_has_no_other_verb(self):
        self.assert_fails(self.demo("flow", "list"), USAGE, "unknown word 'flow'")


if __name__ == "__main__":
    unittest.main()

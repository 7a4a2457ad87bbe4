"""psql and pgbench through the gateway: real clients that nobody here wrote."""

import re
import unittest

import binary
from cluster import Cluster

ROWS = 100


class ClientTest(binary.CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.reap)

    def setUp(self):
        super().setUp()
        self.cluster.sql(
            "DROP TABLE IF EXISTS accounts",
            "CREATE TABLE accounts (id bigint PRIMARY KEY, owner text, balance bigint NOT NULL)",
            f"INSERT INTO accounts SELECT n, 'o' || n, 0 FROM generate_series(1, {ROWS}) n",
        )

    def run_client(self, *command, **how):
        done = self.cluster.run(*command, cwd=self.folder, **how)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done


class Psql(ClientTest):
    def psql(self, *commands):
        words = [word for command in commands for word in ("-c", command)]
        return self.run_client("psql", "-Xq", "-v", "ON_ERROR_STOP=1", *words)

    def test_copy_in_and_out_bring_the_same_rows(self):
        lines = "".join(f"{n}\tsomebody \\\\ else {n}\t{n * n}\n" for n in range(1001, 1601))
        (self.folder / "in.tsv").write_text(lines)
        self.psql(
            "\\copy accounts FROM 'in.tsv'",
            "\\copy (SELECT * FROM accounts WHERE id > 1000 ORDER BY id) TO 'out.tsv'",
        )
        self.assertEqual((self.folder / "out.tsv").read_text(), lines)

    def test_a_bad_row_in_a_copy_brings_none(self):
        (self.folder / "in.csv").write_text("2001,a,1\n2002,b,not a number\n")
        done = self.cluster.run(
            "psql", "-Xq", "-c", "\\copy accounts FROM 'in.csv' CSV", cwd=self.folder
        )
        self.assertIn("invalid input syntax", done.stderr)
        self.assertEqual(self.cluster.sql("SELECT count(*) FROM accounts"), str(ROWS))

    def test_it_describes_a_table(self):
        told = self.psql("\\d accounts").stdout
        self.assertRegex(told, r"balance +\| bigint +\| +\| not null")
        self.assertIn('"accounts_pkey" PRIMARY KEY', told)
        self.assertRegex(self.psql("\\dt").stdout, r"public +\| accounts +\| table +\| admin")
        self.assertRegex(self.psql("\\d").stdout, r"accounts")
        self.assertIn("admin", self.psql("\\du").stdout)

    def test_a_script_of_transactions(self):
        (self.folder / "script.sql").write_text(
            "BEGIN;\nUPDATE accounts SET balance = 5 WHERE id = 1;\nROLLBACK;\n"
            "BEGIN;\nUPDATE accounts SET balance = balance + 7 WHERE id = 1;\nCOMMIT;\n"
            "SELECT balance FROM accounts WHERE id = 1 \\gset\n\\echo now :balance\n"
        )
        done = self.run_client("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-f", "script.sql")
        self.assertEqual(done.stdout, "now 7\n")

    def test_what_the_service_refuses_is_refused(self):
        done = self.cluster.run("psql", "-X", "-v", "VERBOSITY=verbose", "-c", "TRUNCATE accounts")
        self.assertIn("ERROR:  0A000: unsupported statement: Truncate", done.stderr)


class Pgbench(ClientTest):
    """Its own tables have fill factors, and its own script a row that everybody wants."""

    def pgbench(self, script, *options):
        (self.folder / "script").write_text(script)
        done = self.run_client("pgbench", "-n", "-f", "script", "--max-tries=1000", *options)
        figure = r"number of transactions actually processed: (\d+)"
        self.assertIn("number of failed transactions: 0 ", done.stdout)
        return int(re.search(figure, done.stdout)[1])

    def total(self):
        return int(self.cluster.sql("SELECT sum(balance) FROM accounts"))

    update = (
        f"\\set id random(1, {ROWS})\n"
        "UPDATE accounts SET balance = balance + 1 WHERE id = :id;\n"
    )

    def test_updates_by_key_with_prepared_statements(self):
        self.assertEqual(self.pgbench(self.update, "-M", "prepared", "-c", "8", "-t", "25"), 200)
        self.assertEqual(self.total(), 200)

    def test_updates_by_key_with_simple_queries(self):
        self.assertEqual(self.pgbench(self.update, "-M", "simple", "-c", "8", "-t", "25"), 200)
        self.assertEqual(self.total(), 200)

    def test_updates_by_key_with_the_extended_protocol(self):
        self.assertEqual(self.pgbench(self.update, "-M", "extended", "-c", "4", "-t", "25"), 100)
        self.assertEqual(self.total(), 100)

    # Whoever loses is told so at COMMIT and tries again; nothing is counted twice or lost.
    def test_transactions_that_meet_on_few_rows(self):
        script = (
            "\\set a random(1, 3)\n\\set b random(1, 3)\nBEGIN;\n"
            "UPDATE accounts SET balance = balance - 1 WHERE id = :a;\n"
            "UPDATE accounts SET balance = balance + 3 WHERE id = :b;\nEND;\n"
        )
        self.assertEqual(self.pgbench(script, "-M", "prepared", "-c", "4", "-t", "15"), 60)
        self.assertEqual(self.total(), 120)

    def test_a_pipeline(self):
        script = (
            f"\\set id random(1, {ROWS})\n\\startpipeline\n"
            "SELECT balance FROM accounts WHERE id = :id;\n"
            "UPDATE accounts SET balance = balance + 1 WHERE id = :id;\n\\endpipeline\n"
        )
        self.assertEqual(self.pgbench(script, "-M", "extended", "-c", "1", "-t", "20"), 20)
        self.assertEqual(self.total(), 20)


if __name__ == "__main__":
    unittest.main()

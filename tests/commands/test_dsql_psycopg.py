"""Python's psycopg through the gateway. `./run` fetches it from PyPI."""

import os
import pathlib
import sys
import unittest

from cluster import Cluster

SKIPPED = 77  # For ctest, which then says so in its summary.
PACKAGES = pathlib.Path(os.environ["HOLDFAST_PSYCOPG"])
ROWS = [(1, "one", 1.5), (2, "zwei \t \\ \u00e9", None), (3, "", -2.25)]


class Psycopg(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.reap)

    def setUp(self):
        offer = self.cluster.offer
        self.connection = psycopg.connect(
            host=offer["endpoint"],
            hostaddr="127.0.0.1",
            port=offer["port"],
            dbname="postgres",
            user="admin",
            password=self.cluster.token(),
            sslmode="verify-full",
            sslrootcert=offer["root_certificate"],
            autocommit=True,
        )
        self.addCleanup(self.connection.close)
        self.connection.execute("DROP TABLE IF EXISTS goods")
        self.connection.execute("CREATE TABLE goods (id bigint PRIMARY KEY, name text, price float8)")

    def copy_in(self, rows, options):
        with self.connection.cursor() as cursor:
            with cursor.copy(f"COPY goods FROM STDIN {options}") as copy:
                if options:
                    copy.set_types(["int8", "text", "float8"])
                for row in rows:
                    copy.write_row(row)

    def copy_out(self, options):
        with self.connection.cursor() as cursor:
            with cursor.copy(f"COPY (SELECT * FROM goods ORDER BY id) TO STDOUT {options}") as copy:
                copy.set_types(["int8", "text", "float8"])
                return list(copy.rows())

    def test_a_copy_brings_the_same_rows_in_text_and_in_binary(self):
        for options in ("", "(FORMAT binary)"):
            with self.subTest(options=options):
                self.connection.execute("DELETE FROM goods")
                self.copy_in(ROWS, options)
                self.assertEqual(self.copy_out(options), ROWS)

    def test_a_broken_binary_copy_brings_no_row(self):
        with self.assertRaises(psycopg.errors.BadCopyFileFormat):
            with self.connection.cursor() as cursor:
                with cursor.copy("COPY goods FROM STDIN (FORMAT binary)") as copy:
                    copy.write(b"1\tone\t1.5\n")
        self.assertEqual(self.copy_out(""), [])

    def test_binary_parameters_and_results(self):
        cursor = self.connection.cursor(binary=True)
        for _ in range(8):  # psycopg prepares a statement that comes back.
            cursor.execute("SELECT %b::bigint, %b::text, %b::float8", [7, "é", 0.5])
            self.assertEqual(cursor.fetchone(), (7, "é", 0.5))


if __name__ == "__main__":
    if not (PACKAGES / ".fetched").exists():
        print(f"skipped: pip has not brought psycopg into {PACKAGES}; ./run test tries to")
        sys.exit(SKIPPED)
    sys.path.insert(0, str(PACKAGES))
    import psycopg

    unittest.main()

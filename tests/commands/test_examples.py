"""The examples do what they say, on a file and on a server. HOLDFAST_EXAMPLES is their folder."""

import os
import pathlib
import unittest

import binary
from binary import DONE

EXAMPLES = pathlib.Path(os.environ["HOLDFAST_EXAMPLES"])


class Ledger(binary.CommandTest):
    STORY = (
        "ann paid 2500 cents to bob\n"
        "account ann has changed meanwhile; looking again\n"
        "ann paid 1000 cents to bob\n"
    )

    def ledger(self, *arguments):
        return self.run_it(*arguments, binary=EXAMPLES / "ledger")

    def test_on_a_file(self):
        done = self.ledger("sqlite:ledger.db?create=1")
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(done.out, self.STORY + "ann has 6500 cents\nbob has 3500 cents\n")
        again = self.ledger("sqlite:ledger.db")
        self.assertEqual(again.out, self.STORY + "ann has 3000 cents\nbob has 7000 cents\n")

    def test_on_a_server(self):
        done = self.ledger(self.postgres())
        self.assertEqual(done.code, DONE, done)
        self.assertEqual(done.out, self.STORY + "ann has 6500 cents\nbob has 3500 cents\n")

    def test_without_a_url_it_says_how(self):
        done = self.ledger()
        self.assertEqual(done.code, 2)
        self.assertIn("usage:", done.err)

    def test_a_missing_file_is_told(self):
        done = self.ledger("sqlite:missing.db")
        self.assertEqual(done.code, 1)
        self.assertIn("missing.db", done.err)
        self.assert_left_behind()


if __name__ == "__main__":
    unittest.main()

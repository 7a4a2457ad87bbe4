"""tools/coverage.py lists what no test claims, and does not believe a misspelt claim."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

CHECKLIST = """
# A comment.
locks C1: the first
locks C2: the second
- locks C3: because we have no such thing
"""


class Coverage(unittest.TestCase):
    def coverage(self, test, *arguments):
        with tempfile.TemporaryDirectory(prefix="holdfast-house-") as folder:
            for name, text in {"docs/checklists/locks.txt": CHECKLIST, "src/x_test.cpp": test}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run(
                [sys.executable, REPOSITORY / "tools/coverage.py", *arguments, folder],
                capture_output=True,
                text=True,
                check=False,
            )
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_what_no_test_claims_is_listed(self):
        answer = self.coverage('HOLDFAST_CHECK("locks C2");\n// HOLDFAST_CHECK("locks C1");\n')
        self.assertEqual(answer, (1, "locks C1: the first\n1 of 2 items are claimed by a test\n"))

    def test_nothing_is_listed_when_all_is_claimed(self):
        answer = self.coverage('HOLDFAST_CHECK("locks C1"); HOLDFAST_CHECK("locks C2");\n')
        self.assertEqual(answer, (0, "2 of 2 items are claimed by a test\n"))

    def test_a_claim_of_an_item_that_no_list_has_is_found(self):
        answer = self.coverage('HOLDFAST_CHECK("lock C1");\n', "--known")
        self.assertEqual(answer, (1, "src/x_test.cpp:1: no checklist has an item 'lock C1'\n"))

    def test_known_says_nothing_about_what_is_missing(self):
        self.assertEqual(self.coverage('HOLDFAST_CHECK("locks C1");\n', "--known"), (0, ""))


if __name__ == "__main__":
    unittest.main()

"""tools/coverage.py lists what no test claims, and refuses misspelt claims and tests that claim too much."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

ITEMS = """
# Locks

Some text.

## Groups

- `locks C1`: The first.
- `locks C2` with-a-slug: The second.

## Items that do not apply

- `locks C3`: There is no such thing.
"""


class Coverage(unittest.TestCase):
    def coverage(self, test, *arguments, items=ITEMS):
        with tempfile.TemporaryDirectory(prefix="holdfast-house-") as folder:
            for name, text in {"docs/conformance/locks.md": items, "src/x_test.cpp": test}.items():
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
        self.assertEqual(answer, (1, "locks C1: The first.\n1 of 2 items are claimed by a test\n"))

    def test_nothing_is_listed_when_all_is_claimed(self):
        answer = self.coverage('HOLDFAST_CHECK("locks C1"); HOLDFAST_CHECK("locks C2");\n')
        self.assertEqual(answer, (0, "2 of 2 items are claimed by a test\n"))

    def test_a_claim_of_an_item_that_no_list_has_is_found(self):
        answer = self.coverage('HOLDFAST_CHECK("lock C1");\n', "--known")
        self.assertEqual(answer, (1, "src/x_test.cpp:1: no conformance list has an item 'lock C1'\n"))

    def test_known_says_nothing_about_what_is_missing(self):
        self.assertEqual(self.coverage('HOLDFAST_CHECK("locks C1");\n', "--known"), (0, ""))

    def test_an_item_that_does_not_apply_may_be_claimed(self):
        self.assertEqual(self.coverage('HOLDFAST_CHECK("locks C3");\n', "--known"), (0, ""))

    def test_a_test_claims_at_most_eight_items(self):
        items = "".join(f"- `locks C{i}`: Number {i}.\n" for i in range(1, 18))
        claims = [f'    HOLDFAST_CHECK("locks C{i}");\n' for i in range(1, 18)]
        eight = "TEST(Lock, IsTaken) {\n" + "".join(claims[:8]) + "}\n\n"
        nine = "TEST_P(Lock,\n       IsGivenBack) {\n" + "".join(claims[8:]) + "}\n"
        self.assertEqual(self.coverage(eight, "--known", items=items), (0, ""))
        message = "src/x_test.cpp:12: this test claims 9 items; split it into tests of at most 8\n"
        self.assertEqual(self.coverage(eight + nine, "--known", items=items), (1, message))
        self.assertEqual(
            self.coverage(eight + nine, items=items), (1, message + "17 of 17 items are claimed by a test\n")
        )


if __name__ == "__main__":
    unittest.main()

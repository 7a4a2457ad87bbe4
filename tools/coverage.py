#!/usr/bin/env python3
"""Which items of the conformance lists are claimed by a test.

usage: coverage.py [--known] [ROOT]

Reads docs/conformance/*.md, whose items are "- `id`: sentence", and the HOLDFAST_CHECK("id") marks in the
tests. Lists the items that no test claims and exits with 1 if there are any. With --known it only checks
the marks: each names an item, for a misspelt mark would claim nothing, and no test claims more than eight.
"""

import pathlib
import re
import sys

MARK = re.compile(r'\bHOLDFAST_CHECK\("([^"]+)"\)')
ITEM = re.compile(r"- `([^`]+)`[^:]*: (.+)")
VOID = "## Items that do not apply"
TEST = re.compile(r"[A-Z_]*(?:TEST|PROP)[A-Z_]*\(")
CLAIMS_MAX = 8  # Of one test: what claims more proves too little of each.
FOLDERS = ("src", "apps", "bench", "tests", "examples")


def read_lists(root):
    """The sentences of the items by id, and the ids that do not apply."""
    items, void = {}, set()
    for path in sorted((root / "docs/conformance").glob("*.md")):
        applies = True
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("#"):
                applies = line != VOID
            if not line.startswith("- "):
                continue
            item = ITEM.fullmatch(line)
            if not item:
                sys.exit(f"{path.relative_to(root)}:{number}: expected '- `id`: sentence'")
            if item[1] in items or item[1] in void:
                sys.exit(f"{path.relative_to(root)}:{number}: '{item[1]}' is there twice")
            if applies:
                items[item[1]] = item[2]
            else:
                void.add(item[1])
    return items, void


def read_marks(root):
    """Where each id is claimed, and how many each test claims. A mark in a comment claims nothing."""
    marks, claims = {}, {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            test = f"{path.relative_to(root)}:1"
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if TEST.match(line):
                    test = f"{path.relative_to(root)}:{number}"
                for name in MARK.findall(line.split("//")[0]):
                    marks.setdefault(name, []).append(f"{path.relative_to(root)}:{number}")
                    claims[test] = claims.get(test, 0) + 1
    return marks, claims


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--known"]
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    items, void = read_lists(root)
    marks, claims = read_marks(root)

    unknown = sorted(marks.keys() - items.keys() - void)
    for name in unknown:
        print(f"{marks[name][0]}: no conformance list has an item '{name}'")
    crowded = [test for test, count in claims.items() if count > CLAIMS_MAX]
    for test in crowded:
        print(f"{test}: this test claims {claims[test]} items; split it into tests of at most {CLAIMS_MAX}")
    if "--known" in sys.argv:
        return 1 if unknown or crowded else 0

    missing = [name for name in items if name not in marks]
    for name in missing:
        print(f"{name}: {items[name]}")
    print(f"{len(items) - len(missing)} of {len(items)} items are claimed by a test")
    return 1 if missing or unknown or crowded else 0


if __name__ == "__main__":
    sys.exit(main())

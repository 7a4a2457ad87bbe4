#!/usr/bin/env python3
"""Which items of the checklists are claimed by a test.

usage: coverage.py [--known] [ROOT]

Reads docs/checklists/*.txt, whose lines are "name: what it asks", and the HOLDFAST_CHECK("name") marks
in the tests. Lists the items no test claims and exits with 1 if there are any. With --known it only
asks whether every mark names an item: a misspelt mark would claim nothing.
"""

import pathlib
import re
import sys

MARK = re.compile(r'\bHOLDFAST_CHECK\("([^"]+)"\)')
FOLDERS = ("src", "apps", "bench", "tests", "examples")


def read_checklists(root):
    """The items by name, and the names that do not apply."""
    items, void = {}, set()
    for path in sorted((root / "docs/checklists").glob("*.txt")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, colon, asked = line.partition(": ")
            if not colon:
                sys.exit(f"{path.relative_to(root)}:{number}: expected 'name: what it asks'")
            if name.startswith("- "):
                void.add(name[2:])
            elif name in items:
                sys.exit(f"{path.relative_to(root)}:{number}: '{name}' is there twice")
            else:
                items[name] = asked
    return items, void


def read_marks(root):
    """Where each name is claimed. A mark in a comment claims nothing."""
    marks = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                for name in MARK.findall(line.split("//")[0]):
                    marks.setdefault(name, []).append(f"{path.relative_to(root)}:{number}")
    return marks


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--known"]
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    items, void = read_checklists(root)
    marks = read_marks(root)

    unknown = sorted(marks.keys() - items.keys() - void)
    for name in unknown:
        print(f"{marks[name][0]}: no checklist has an item '{name}'")
    if "--known" in sys.argv:
        return 1 if unknown else 0

    missing = [name for name in items if name not in marks]
    for name in missing:
        print(f"{name}: {items[name]}")
    print(f"{len(items) - len(missing)} of {len(items)} items are claimed by a test")
    return 1 if missing or unknown else 0


if __name__ == "__main__":
    sys.exit(main())

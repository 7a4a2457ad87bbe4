"""Writes the C++ blocks of a guide into files that a compiler can read.

usage: extract.py GUIDE.md PROGRAM.cpp FRAGMENTS.cpp

The block with a main() is a program of its own; all the others, one after another, are a second
file. The compiler's complaints name the guide's own lines.
"""

import pathlib
import re
import sys

BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.M | re.S)


def main():
    guide, program, fragments = map(pathlib.Path, sys.argv[1:])
    text = guide.read_text()
    programs, others = [], []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start(1)) + 1
        block = f'#line {line} "{guide.resolve()}"\n{match[1]}'
        (programs if "int main(" in match[1] else others).append(block)
    if len(programs) != 1 or not others:
        sys.exit(f"{guide}: {len(programs)} programs, {len(others)} fragments; 1 program is right")
    program.write_text(programs[0])
    fragments.write_text("\n".join(others))


if __name__ == "__main__":
    main()

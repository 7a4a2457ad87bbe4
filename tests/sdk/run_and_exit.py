"""Runs a Python program, and ends the process without Python's own clean-up.

usage: run_and_exit.py PROGRAM [ARGUMENT...]

Native threads of the SDK may still run then, and abort a process that has done all its work.
"""

import os
import runpy
import sys


def end():
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")
    end()

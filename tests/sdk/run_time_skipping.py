"""The test environment of the Python SDK, with our server as the one whose time it skips."""

import subprocess
import sys

from server import BINARY, HERE, PYTHON_PACKAGES, environment, must_end, skip_without_python_packages


def main():
    skip_without_python_packages()
    script = [sys.executable, HERE / "run_and_exit.py", HERE / "time_skipping.py", BINARY]
    must_end(subprocess.Popen(script, env=environment(PYTHONPATH=str(PYTHON_PACKAGES))))


if __name__ == "__main__":
    main()

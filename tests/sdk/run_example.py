"""An example's worker and client at a server of their own, as a user runs them.

usage: run_example.py typescript|python
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import server
from server import NODE_MODULES, PYTHON_PACKAGES, SECONDS_MAX, Server, environment

EXAMPLES = server.HERE.parents[1] / "examples/server"


def typescript(folder):
    """Compiles the copy with npm's packages beside it; gives how to run the worker and the client."""
    server.skip_without_node()
    (folder / "node_modules").symlink_to(NODE_MODULES)
    subprocess.run(["node", "node_modules/typescript/bin/tsc"], cwd=folder, check=True)
    return ["node", "lib/worker.js"], ["node", "lib/client.js"], {}


def python(_):
    server.skip_without_python_packages()
    paths = {"PYTHONPATH": str(PYTHON_PACKAGES)}
    client = [sys.executable, server.HERE / "run_and_exit.py", "client.py"]
    return [sys.executable, "worker.py"], client, paths


def main():
    language = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="holdfast-sdk-") as parent:
        folder = pathlib.Path(parent) / language
        shutil.copytree(EXAMPLES / language, folder)
        worker, client, more = {"typescript": typescript, "python": python}[language](folder)
        with Server() as one:
            how = {"cwd": folder, "env": environment(TEMPORAL_ADDRESS=one.address, **more)}
            working = subprocess.Popen(worker, **how)
            try:
                done = subprocess.run(
                    client, **how, stdout=subprocess.PIPE, text=True, timeout=SECONDS_MAX
                )
            finally:
                working.kill()
                working.wait()
            if (done.returncode, done.stdout) != (0, "Hello, world!\n"):
                sys.exit(f"the client ended with {done.returncode} and said {done.stdout!r}")
            one.stop()
    print(f"example {language}: 1 workflow, 1 activity")


if __name__ == "__main__":
    main()

"""Plays one scenario against a server of its own, on a file unless told.

usage: run_scenario.py NAME [--in-memory | SERVER-ARGUMENT...]
"""

import pathlib
import sys
import tempfile

from server import HERE, Server, must_end, node, skip_without_node


def main():
    name, *arguments = sys.argv[1:]
    skip_without_node()
    with tempfile.TemporaryDirectory(prefix="holdfast-sdk-") as folder:
        if not arguments:
            arguments = ["--db-filename", pathlib.Path(folder) / "server.db"]
        elif arguments == ["--in-memory"]:
            arguments = []
        with Server(*arguments) as server:
            must_end(node(HERE / "scenarios/run.js", name, server.address))
            server.stop()


if __name__ == "__main__":
    main()

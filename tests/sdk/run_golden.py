"""Compares a server with the golden data, or checks the comparison itself.

usage: run_golden.py server|comparison|replay
"""

import sys

from server import HERE, SKIPPED, Server, must_end, node, skip_without_node


def main():
    skip_without_node()
    if sys.argv[1] != "server":
        name = {"comparison": "compare_test.js", "replay": "replay_test.js"}[sys.argv[1]]
        must_end(node(HERE / "golden" / name))
        return
    with Server() as server:
        compared = node(HERE / "golden/run.js", server.address)
        if compared.wait() == SKIPPED:
            print("skipped: expected.txt does not say of any scenario that it must be equal")
            sys.exit(SKIPPED)
        must_end(compared)
        server.stop()


if __name__ == "__main__":
    main()

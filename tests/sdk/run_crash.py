"""Kills the server every second while two workers run chains of activities; nothing may be lost.

usage: run_crash.py [SERVER-ARGUMENT...]

On a file of its own unless told. About 20 seconds, or a minute with HOLDFAST_SOAK=1.
"""

import json
import os
import pathlib
import sys
import tempfile
import time

from server import HERE, Server, must_end, node, skip_without_node

SECONDS = 60 if os.environ.get("HOLDFAST_SOAK") == "1" else 20
WORKERS = 2
QUEUE = "crash"


KILLS_MIN = SECONDS // 4  # A test that kills less than that says little.


def wait_for_workers(ledger, check):
    """Until each has run an activity: a worker that starts needs a server that stays."""
    while check.poll() is None:
        lines = ledger.read_text().split("\n")[:-1]
        if len({entry.get("pid") for entry in map(json.loads, lines)} - {None}) == WORKERS:
            return
        time.sleep(0.1)


def main():
    skip_without_node()
    program = HERE / "scenarios/chains.js"
    with tempfile.TemporaryDirectory(prefix="holdfast-sdk-") as folder:
        ledger = pathlib.Path(folder) / "ledger"
        ledger.touch()
        arguments = sys.argv[1:] or ["--db-filename", pathlib.Path(folder) / "server.db"]
        with Server(*arguments) as server:
            workers = [node(program, "work", server.address, QUEUE, ledger) for _ in range(WORKERS)]
            try:
                check = node(program, "check", server.address, QUEUE, ledger, SECONDS)
                wait_for_workers(ledger, check)
                kills = 0
                end = time.monotonic() + SECONDS
                while time.monotonic() < end and check.poll() is None:
                    time.sleep(1)
                    server.kill()
                    server.start()
                    kills += 1
                must_end(check)
                if kills < KILLS_MIN:
                    sys.exit(f"the server was killed {kills} times; at least {KILLS_MIN}")
                print(f"crash: the server was killed {kills} times")
            finally:
                for worker in workers:
                    worker.kill()
                    worker.wait()
            server.stop()


if __name__ == "__main__":
    main()

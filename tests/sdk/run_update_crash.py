"""Kills the server every second while clients ask for updates; each is carried out once.

About 10 seconds, or a minute with HOLDFAST_SOAK=1.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from server import HERE, Server, must_end, node, skip_without_node

SECONDS = 60 if os.environ.get("HOLDFAST_SOAK") == "1" else 10
KILLS_MIN = SECONDS // 4  # A test that kills less than that says little.


def main():
    skip_without_node()
    program = HERE / "scenarios/updates_crash.js"
    with tempfile.TemporaryDirectory(prefix="holdfast-sdk-") as folder:
        with Server("--db-filename", pathlib.Path(folder) / "server.db") as server:
            check = node(program, server.address, SECONDS, stdout=subprocess.PIPE, text=True)
            try:
                check.stdout.readline()  # A worker that starts needs a server that stays.
                kills = 0
                end = time.monotonic() + SECONDS
                while time.monotonic() < end and check.poll() is None:
                    time.sleep(1)
                    server.kill()
                    server.start()
                    kills += 1
                must_end(check)
                print(check.stdout.read().strip())
                if kills < KILLS_MIN:
                    sys.exit(f"the server was killed {kills} times; at least {KILLS_MIN}")
                print(f"update_crash: the server was killed {kills} times")
            finally:
                check.kill()
                check.wait()
            server.stop()


if __name__ == "__main__":
    main()

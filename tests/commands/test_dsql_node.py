"""node's `pg` driver through the gateway. `./run` fetches it from npm."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import binary
from cluster import Cluster

SKIPPED = 77  # For ctest, which then says so in its summary.
MODULES = pathlib.Path(os.environ["HOLDFAST_NODE_MODULES"])
SCRIPT = pathlib.Path(__file__).parent / "node" / "client.js"


class Node(unittest.TestCase):
    def test_the_driver_finds_a_cluster(self):
        cluster = Cluster()
        self.addCleanup(cluster.reap)
        done = subprocess.run(
            ["node", SCRIPT],
            env=binary.clean_environment(
                NODE_PATH=str(MODULES),
                CLUSTER=json.dumps({**cluster.offer, "token": cluster.token()}),
            ),
            capture_output=True,
            text=True,
            timeout=binary.SECONDS_MAX,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            json.loads(done.stdout),
            {
                "version": "16.15",
                "types": {"n": 7, "t": "é", "b": True, "j": {"a": [1, 2]}, "none": None},
                "named": [1, 2, 3],
                "rolled_back": "10",
                "loser": {
                    "code": "40001",
                    "message": "change conflicts with another transaction (OC000)",
                },
                "left": "11",
                "duplicate": "23505",
                "refused": "0A000",
                "usable": 1,
                "pooled": 64,
                "job": 26,
            },
        )


if __name__ == "__main__":
    if shutil.which("node") is None:
        print("skipped: there is no node on this machine")
        sys.exit(SKIPPED)
    if not (MODULES / "pg").is_dir():
        print(f"skipped: npm has not brought the package pg into {MODULES}; ./run test tries to")
        sys.exit(SKIPPED)
    unittest.main()

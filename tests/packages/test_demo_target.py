"""The demo's program is built from few libraries, so that a first try does not take long.

usage: test_demo_target.py BUILD_FOLDER
"""

import re
import subprocess
import sys
import unittest

BUILD = sys.argv.pop()


class DemoTarget(unittest.TestCase):
    def test_it_needs_no_library_but_those_of_workflows(self):
        done = subprocess.run(
            ["ninja", "-C", BUILD, "-t", "inputs", "holdfast-demo"],
            capture_output=True,
            text=True,
            check=True,
        )
        archives = set(re.findall(r"\blibholdfast_(\w+)\.a\b", done.stdout))
        self.assertEqual(archives, {"base", "pool", "sql", "flow_engine", "flow", "demo_command"})
        self.assertNotRegex(done.stdout, r"grpc|protobuf|pg_query")


if __name__ == "__main__":
    unittest.main()

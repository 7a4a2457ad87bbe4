"""Tokens of AWS's own signers open a session. `./run` fetches the signers' packages.

usage: test_dsql_signers.py go|java|javascript|python
"""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import binary
from cluster import Cluster

SKIPPED = 77  # For ctest, which then says so in its summary.
ARN = "arn:aws:iam::123456789012:user/test"  # Of the keys of `dsql local`.
HERE = pathlib.Path(__file__).parent
FETCHED = pathlib.Path(os.environ["HOLDFAST_SIGNERS"])
MODULES = pathlib.Path(os.environ["HOLDFAST_NODE_MODULES"])

# For each language: the program it needs, what ./run fetches, the command, its environment.
SIGNERS = {
    "go": ("go", FETCHED / "go" / "sign", [FETCHED / "go" / "sign"], {}),
    "java": (
        "java",
        FETCHED / "java" / "Sign.class",
        ["java", "-cp", f"{FETCHED / 'java'}:{FETCHED / 'java'}/*", "Sign"],
        {},
    ),
    "javascript": (
        "node",
        MODULES / "@aws-sdk" / "dsql-signer",
        ["node", HERE / "node" / "sign.js"],
        {"NODE_PATH": str(MODULES)},
    ),
    "python": (
        "python3",
        FETCHED / "python" / "botocore",
        [sys.executable, HERE / "signers" / "python" / "sign.py"],
        {"PYTHONPATH": str(FETCHED / "python")},
    ),
}


class Signer(unittest.TestCase):
    language = ""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.reap)

    def token(self, user, **changes):
        _, _, command, environment = SIGNERS[self.language]
        done = subprocess.run(
            command,
            env=binary.clean_environment(
                **environment,
                **{
                    **self.cluster.offer["environment"],
                    "AWS_REGION": "us-east-1",
                    "DSQL_ENDPOINT": self.cluster.offer["endpoint"],
                    "DSQL_USER": user,
                    **changes,
                },
            ),
            capture_output=True,
            text=True,
            timeout=binary.SECONDS_MAX,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def log_in(self, user, token):
        return subprocess.run(
            ["psql", "-XAtq", "-c", "SELECT current_user"],
            env={**self.cluster.environment(user), "PGPASSWORD": token},
            capture_output=True,
            text=True,
            timeout=binary.SECONDS_MAX,
        )

    def test_admin_logs_in(self):
        token = self.token("admin")
        self.assertIn("Action=DbConnectAdmin&", token)
        done = self.log_in("admin", token)
        self.assertEqual((done.stdout, done.stderr), ("admin\n", ""), token)

    def test_a_role_logs_in(self):
        self.cluster.sql(
            "CREATE ROLE app WITH LOGIN",
            f"AWS IAM GRANT app TO '{ARN}'",
        )
        token = self.token("app")
        done = self.log_in("app", token)
        self.assertEqual((done.stdout, done.stderr), ("app\n", ""), token)
        self.assertIn("Wrong user to action mapping", self.log_in("admin", token).stderr)

    def test_another_secret_is_refused(self):
        token = self.token("admin", AWS_SECRET_ACCESS_KEY="another")
        self.assertIn("does not match", self.log_in("admin", token).stderr)


if __name__ == "__main__":
    Signer.language = sys.argv.pop(1)
    program, fetched, _, _ = SIGNERS[Signer.language]
    if shutil.which(program) is None:
        print(f"skipped: there is no {program} on this machine")
        sys.exit(SKIPPED)
    if not fetched.exists():
        print(f"skipped: {fetched} is not there; ./run test fetches it")
        sys.exit(SKIPPED)
    unittest.main()

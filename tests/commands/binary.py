"""The binary under test, in an empty folder of its own and an environment that knows nothing of us.

HOLDFAST_BINARY names it; HOLDFAST_TEST_POSTGRES is the folder of the PostgreSQL that a run of ctest
shares; HOLDFAST_TEST_TIMEOUT is after how many seconds ctest ends us.
"""

import contextlib
import faulthandler
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import unittest

BINARY = pathlib.Path(os.environ["HOLDFAST_BINARY"])
SECONDS_MAX = 120  # Far more than any command takes, far less than for ever.

DONE, REFUSED, USAGE, UNAVAILABLE, INTERNAL = range(5)

# ctest ends what hangs without a word; a little earlier it says itself where it waits.
faulthandler.dump_traceback_later(int(os.environ["HOLDFAST_TEST_TIMEOUT"]) - 10, exit=True)


def clean_environment(**more):
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST", "PG"))
    }
    return {**kept, "LC_ALL": "C.UTF-8", **more}


class Done:
    """What a finished command left."""

    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-commands-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(
        self, *arguments, env=None, prefix=(), binary=BINARY, stdin=subprocess.DEVNULL, **how
    ):
        process = subprocess.Popen(
            [*prefix, binary, *arguments],
            cwd=self.folder,
            env=clean_environment(**(env or {})),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **how,
        )
        self.addCleanup(self.reap, process)
        return process

    @staticmethod
    def reap(process):
        process.kill()
        process.communicate()

    def run_it(self, *arguments, **how):
        process = self.start(*arguments, **how)
        process.stdout, process.stderr = process.communicate(timeout=SECONDS_MAX)
        process_done = Done(process)
        process.stdout = process.stderr = None
        return process_done

    def assert_fails(self, done, code, *words):
        """One sentence on standard error that holds the words, and nothing else anywhere."""
        self.assertEqual(done.code, code, done)
        self.assertEqual(done.out, "", done)
        self.assertRegex(done.err, r"\Aholdfast: [^\n]+\n\Z", done)
        for word in words:
            self.assertIn(word, done.err)

    def assert_left_behind(self, *names):
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), sorted(names))

    def as_nobody(self):
        """How to run it as somebody without rights, and the copy of it that they can reach."""
        if os.geteuid() != 0:
            return {}
        copy = self.folder.with_suffix(".bin")
        shutil.copy(BINARY, copy)
        self.addCleanup(copy.unlink)
        copy.chmod(0o755)
        self.folder.chmod(0o755)
        who = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
        return {"prefix": who, "binary": copy}

    def postgres(self):
        """The URL of an empty database, which goes with the test."""
        host = os.environ.get("HOLDFAST_TEST_POSTGRES")
        if not host or not pathlib.Path(host).exists():
            self.fail("no PostgreSQL: run through ctest, which starts one")
        name = "commands_" + secrets.token_hex(6)
        self.psql(host, f"CREATE DATABASE {name}")
        self.addCleanup(self.psql, host, f"DROP DATABASE {name} WITH (FORCE)")
        return f"postgres://postgres@/{name}?host={host}"

    @staticmethod
    def psql(host, statement, database="postgres"):
        done = subprocess.run(
            ["psql", "-XAtq", "-h", host, "-U", "postgres", "-d", database, "-c", statement],
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def psql_at(self, url, statement):
        name, host = re.search(r"/(\w+)\?host=(.*)", url).groups()
        return self.psql(host, statement, name)


class PasswordServer(contextlib.ExitStack):
    """A PostgreSQL that asks for a password: `right`."""

    def __init__(self):
        super().__init__()
        self.frozen = []
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory(prefix="hf-pw-")))
        (self.folder / "password").write_text("right\n")
        self.user = ()
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
            shutil.chown(self.folder / "password", "postgres")
            self.user = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")
        newest = max(pathlib.Path("/usr/lib/postgresql").iterdir(), key=lambda path: int(path.name))
        self.binaries = newest / "bin"
        data = self.folder / "data"
        self.call(
            "initdb",
            "-N",
            "-A",
            "scram-sha-256",
            "-U",
            "ann",
            f"--pwfile={self.folder}/password",
            "-D",
            data,
        )
        self.data = data
        self.start()
        self.callback(self.stop)

    def start(self):
        """It may run already."""
        if (self.data / "postmaster.pid").exists():
            return
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c fsync=off"
        log = self.folder / "log"
        self.call("pg_ctl", "-w", "-D", self.data, "-o", options, "-l", log, "start")

    def stop(self):
        """At once, as a crash would; it may be stopped already."""
        if (self.data / "postmaster.pid").exists():
            self.call("pg_ctl", "-w", "-m", "immediate", "-D", self.data, "stop")

    def freeze(self):
        """Nobody answers any more, and nobody hangs up."""
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)  # First, so that it has no more children.
        children = pathlib.Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
        self.frozen = [postmaster, *map(int, children.split())]
        for process in self.frozen:
            os.kill(process, signal.SIGSTOP)

    def thaw(self):
        while self.frozen:
            os.kill(self.frozen.pop(), signal.SIGCONT)

    def call(self, name, *arguments):
        subprocess.run(
            [*self.user, self.binaries / name, *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # pg_ctl's child would hold a pipe open.
            stderr=subprocess.DEVNULL,
            check=True,
        )

    def url(self, password):
        return f"postgres://ann:{password}@/postgres?host={self.folder}"

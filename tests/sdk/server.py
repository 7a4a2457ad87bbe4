"""A server under test: `holdfast server start-dev` at a free port, and node programs that use it.

HOLDFAST_BINARY names the binary, HOLDFAST_SDK_NODE the folder with npm's packages, HOLDFAST_SDK_PYTHON
the one with PyPI's; HOLDFAST_TEST_TIMEOUT is after how many seconds ctest ends us.
"""

import faulthandler
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BINARY = os.environ.get("HOLDFAST_BINARY", "")
NODE_MODULES = pathlib.Path(os.environ.get("HOLDFAST_SDK_NODE", "")) / "node_modules"
PYTHON_PACKAGES = pathlib.Path(os.environ.get("HOLDFAST_SDK_PYTHON", ""))
SKIPPED = 77  # For ctest, which then says so in its summary.
SECONDS_MAX = int(os.environ.get("HOLDFAST_TEST_TIMEOUT", "300")) - 20
STARTING_SECONDS_MAX = 15

# ctest ends what hangs without a word; a little earlier it says itself where it waits.
faulthandler.dump_traceback_later(SECONDS_MAX + 10, exit=True)


def skip_without_node():
    if shutil.which("node") is None:
        print("skipped: there is no node on this machine")
        sys.exit(SKIPPED)
    if not (NODE_MODULES / ".fetched").exists():
        print(f"skipped: npm has not brought the SDK into {NODE_MODULES}; ./run test tries to")
        sys.exit(SKIPPED)


def skip_without_python_packages():
    if not (PYTHON_PACKAGES / ".fetched").exists():
        print(f"skipped: pip has not brought the SDK into {PYTHON_PACKAGES}; ./run test tries to")
        sys.exit(SKIPPED)


def environment(**more):
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HOLDFAST", "PG", "TEMPORAL"))
    }
    return {**kept, "LC_ALL": "C.UTF-8", "NODE_PATH": str(NODE_MODULES), **more}


def node(*arguments, **how):
    return subprocess.Popen(["node", *map(str, arguments)], env=environment(), **how)


def must_end(process, code=0, seconds=SECONDS_MAX):
    """Waits for a process, and fails unless it ends with the code."""
    try:
        got = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        sys.exit(f"{process.args} does not end within {seconds} s")
    if got != code:
        sys.exit(f"{process.args} ended with {got}, not {code}")


class Server:
    """A process that may be killed and started again at the same address."""

    def __init__(self, *arguments):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self.command = [
            BINARY, "server", "start-dev", "--port", str(port), "--headless", *map(str, arguments)
        ]  # fmt: skip
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()

    def start(self):
        """Returns once the port is open. Clients ask with GetSystemInfo until that is answered."""
        self.process = subprocess.Popen(
            self.command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        host, port = self.address.split(":")
        end = time.monotonic() + STARTING_SECONDS_MAX
        while time.monotonic() < end:
            if self.process.poll() is not None:
                sys.exit(f"the server ended with {self.process.returncode} instead of starting")
            with socket.socket() as client:
                if client.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.02)
        self.kill()
        sys.exit(f"the server does not listen within {STARTING_SECONDS_MAX} s")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """By SIGTERM, as a service manager would; it must end by itself."""
        self.process.send_signal(signal.SIGTERM)
        must_end(self.process)

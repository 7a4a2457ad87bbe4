"""holdfast lock run in a terminal: the program has the keyboard, and gives it back."""

import os
import pty
import select
import time
import unittest

import binary
from test_lock import LockTest


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, folder, script, *arguments):
        self.seen = ""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            words = ["sh", "-c", script, "sh", *arguments]
            os.execvpe("sh", words, binary.clean_environment())

    def type(self, text):
        os.write(self.master, text.encode())

    def wait_for(self, text):
        """Until the screen shows it; what came before is forgotten."""
        deadline = time.monotonic() + binary.SECONDS_MAX
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], deadline - time.monotonic())
            try:
                more = os.read(self.master, 4096) if ready else b""
            except OSError:  # Nobody has the other end any more.
                more = b""
            if not more:
                raise AssertionError(f"no {text!r} in {self.seen!r}")
            self.seen += more.decode()
        self.seen = self.seen.split(text, 1)[1]

    def end(self):
        os.close(self.master)  # Whoever is left is hung up on.
        os.waitpid(self.pid, 0)


class InATerminal(LockTest):
    RUN = '"$1" lock run a --db "$2" -- cat; echo "ended $?"; read word; echo "read $word"'

    def setUp(self):
        super().setUp()
        self.apply_schema()

    def begin(self):
        terminal = Terminal(self.folder, self.RUN, binary.BINARY, self.url)
        self.addCleanup(terminal.end)
        terminal.type("hello\n")
        terminal.wait_for("hello\r\n")  # The terminal's echo.
        terminal.wait_for("hello\r\n")  # What the program has read.
        self.assertTrue(self.ok("status", "a")["held"])
        return terminal

    def test_the_program_reads_from_it_until_its_end(self):
        terminal = self.begin()
        terminal.type("\x04")
        terminal.wait_for("ended 0\r\n")
        self.assertFalse(self.ok("status", "a")["held"])

    def test_the_keyboards_interrupt_reaches_the_program_and_nobody_else(self):
        terminal = self.begin()
        terminal.type("\x03")
        terminal.wait_for("ended 130\r\n")
        self.assertFalse(self.ok("status", "a")["held"])
        terminal.type("again\n")
        terminal.wait_for("read again\r\n")  # The shell has its terminal back.

    def test_who_waits_for_long_is_told_for_whom(self):
        self.acquire("a")
        owner = self.ok("status", "a")["owner"]
        script = '"$1" lock acquire a --wait --db "$2"; echo "ended $?"'
        terminal = Terminal(self.folder, script, binary.BINARY, self.url)
        self.addCleanup(terminal.end)
        terminal.wait_for(f"waiting for a, which {owner} holds, 2.00 s")
        self.ok("release", "--id-file", "id")
        terminal.wait_for("holding a for 30.00 s")
        terminal.wait_for("ended 0\r\n")

    def test_a_program_cannot_be_put_to_rest(self):
        """It would not notice that its lock is gone."""
        terminal = self.begin()
        terminal.type("\x1a")
        terminal.type("still here\n")
        terminal.wait_for("still here\r\n")
        terminal.wait_for("still here\r\n")
        terminal.type("\x04")
        terminal.wait_for("ended 0\r\n")


if __name__ == "__main__":
    unittest.main()

"""./run installs what is missing and nothing else, and says what to do when it may not.

A copy of it runs with a PATH of our own, where dpkg-query and apt-get are stand-ins that write down
how they were called.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

VERBS = "build demo test bench soak coverage lint fmt sanitize fuzz package clean".split()

BORROWED = "bash cat dirname env grep mktemp rm tail touch python3".split()

DPKG_QUERY = """#!/bin/sh
for package; do case " $INSTALLED " in *" $package "*) echo "installed $package";; esac; done
"""
# Refuses to install before the package lists were fetched, as on a fresh machine.
APT_GET = """#!/bin/sh
echo "$@" >>"$LOG"
case "$*" in
  *update*) touch "$LOG.fetched";;
  *install*) [ -e "$LOG.fetched" ] || { echo "E: Unable to locate package"; exit 100; };;
esac
"""
SUDO = '#!/bin/sh\nexec "$@"\n'


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-house-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o777)  # Others run in it, too: see run_as_nobody.
        shutil.copy(REPOSITORY / "run", self.folder / "run")
        (self.folder / "tools").mkdir()
        (self.folder / "tools/coverage.py").write_text("print('covered')\n")
        self.path = self.folder / "bin"
        self.path.mkdir()
        for name in BORROWED:
            (self.path / name).symlink_to(shutil.which(name))
        self.stand_in("dpkg-query", DPKG_QUERY)
        self.stand_in("apt-get", APT_GET)
        self.log = self.folder / "log"

    def stand_in(self, name, text):
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)

    def run_it(self, *arguments, installed="", **how):
        environment = {"PATH": str(self.path), "LOG": str(self.log), "INSTALLED": installed}
        done = subprocess.run(
            [self.folder / "run", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            **how,
        )
        return done.returncode, done.stdout, done.stderr

    def apt_calls(self):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [re.sub(r"^-y -qq -o \S+ ", "", line) for line in lines]

    def test_alone_it_lists_its_verbs(self):
        code, out, _ = self.run_it()
        self.assertEqual(code, 0)
        self.assertEqual(re.findall(r"^  (\w+)", out, re.M), VERBS)
        self.assertEqual(self.run_it("help")[1], out)

    def test_a_verb_that_does_not_exist_is_refused(self):
        code, _, err = self.run_it("dance")
        self.assertEqual(code, 2)
        self.assertIn("there is no verb 'dance'", err)

    def test_nothing_is_installed_when_nothing_is_missing(self):
        self.assertEqual(self.run_it("coverage", installed="python3"), (0, "covered\n", ""))
        self.assertEqual(self.apt_calls(), [])

    def test_what_is_missing_is_installed_and_the_lists_are_fetched_only_when_needed(self):
        self.stand_in("sudo", SUDO)
        answer = self.run_it("coverage")
        self.assertEqual(answer, (0, "run: installing python3\ncovered\n", ""))
        install = "install --no-install-recommends python3"
        self.assertEqual(self.apt_calls(), [install, "update", install])

        self.log.unlink()  # The lists are there now.
        self.assertEqual(self.run_it("coverage")[0], 0)
        self.assertEqual(self.apt_calls(), [install])

    def test_when_apt_fails_its_words_and_the_line_to_type_are_shown(self):
        self.stand_in("sudo", SUDO)
        self.stand_in("apt-get", "#!/bin/sh\necho 'E: no network' >&2\nexit 100\n")
        code, _, err = self.run_it("coverage")
        self.assertEqual(code, 3)
        self.assertIn("E: no network", err)
        self.assertIn("\n  apt-get update && apt-get install --no-install-recommends python3\n", err)

    def test_without_root_and_sudo_the_line_to_type_is_shown(self):
        nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
        self.assertEqual(
            self.run_it("coverage", **nobody),
            (
                3,
                "",
                "run: some packages are missing. As root, run:\n"
                "  apt-get install --no-install-recommends python3\n",
            ),
        )


if __name__ == "__main__":
    unittest.main()

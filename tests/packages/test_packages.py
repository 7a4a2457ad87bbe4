"""What we ship works for somebody who has nothing but what was installed.

usage: test_packages.py BUILD_FOLDER        everything in it is built
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv.pop())


def run(*command, **how):
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **how,
    )
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        # As after `./run demo`, which builds no library that the demo does not need.
        (cls.not_for_the_demo,) = BUILD.rglob("libholdfast_flow_testing.a")
        cls.not_for_the_demo.unlink()
        # Installed in one place, then moved: nothing may remember where it was made.
        run("cmake", "--install", BUILD, "--prefix", cls.folder / "made")
        cls.prefix = cls.folder / "moved"
        (cls.folder / "made").rename(cls.prefix)

    def floors(self):
        """Of which an archive is installed."""
        archives = self.prefix.rglob("libholdfast_*.a")
        return sorted(path.stem.removeprefix("libholdfast_") for path in archives)

    def needed(self, program):
        """The libraries that a program is not started without."""
        return run("readelf", "--dynamic", "--wide", program)

    def test_a_program_is_built_with_find_package(self):
        self.assertLess({"sql", "dsql", "lock", "flow", "store"}, set(self.floors()))
        build = self.folder / "consumer"
        run(
            "cmake",
            "-S",
            HERE / "consumer",
            "-B",
            build,
            f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DFLOORS={';'.join(self.floors())}",
        )
        run("cmake", "--build", build)
        self.assertEqual(run(build / "consumer"), "42\n")
        for floor in self.floors():
            run(build / f"whole_{floor}")
        self.assertNotIn("libpq", self.needed(build / "consumer"))
        self.assert_speaks_to_servers(build / "consumer")

    def assert_speaks_to_servers(self, program):
        nobody = "postgres://ann@127.0.0.1:1/orders?connect_timeout=20"
        self.assertIn("Connection refused", run(program, nobody))
        # Where there is no libpq, or none that can be used.
        broken = self.folder / "broken"
        broken.mkdir()
        (broken / "libpq.so.5").touch()
        told = run(program, nobody, env={**os.environ, "LD_LIBRARY_PATH": str(broken)})
        self.assertIn("client library cannot be loaded", told)
        self.assertIn("on Debian the package libpq5", told)

    def test_a_program_is_built_with_pkg_config(self):
        (config,) = self.prefix.rglob("holdfast.pc")
        flags = run(
            "pkg-config", "--cflags", "--libs", "holdfast", env={"PKG_CONFIG_PATH": config.parent}
        ).split()
        build = ("g++", "-std=c++20", HERE / "consumer/main.cpp")
        program = self.folder / "by_pkg_config"
        run(*build, *flags, "-o", program)
        self.assertEqual(run(program), "42\n")
        self.assertNotIn("libpq", self.needed(program), "nobody needs it for a file")
        ours = [flag for flag in flags if flag.startswith("-lholdfast_")]
        self.assertEqual(sorted(flag.removeprefix("-lholdfast_") for flag in ours), self.floors())
        first = flags.index(ours[0])
        flags[first : first + len(ours)] = ["-Wl,--whole-archive", *ours, "-Wl,--no-whole-archive"]
        run(*build, *flags, "-o", program)
        self.assertEqual(run(program), "42\n")

    def test_the_installed_binary_runs_and_brings_its_completions(self):
        self.assertIn("0.1", run(self.prefix / "bin/holdfast", "--version"))
        for completion in ("bash-completion/completions/holdfast", "zsh/vendor-completions/_holdfast"):
            self.assertIn("holdfast", (self.prefix / "share" / completion).read_text())

    def test_what_was_not_built_is_built_before_it_is_installed(self):
        (installed,) = self.prefix.rglob(self.not_for_the_demo.name)
        self.assertEqual(installed.read_bytes(), self.not_for_the_demo.read_bytes())

    def test_only_public_headers_are_installed(self):
        installed = {p.relative_to(self.prefix).as_posix() for p in self.prefix.rglob("*.hpp")}
        self.assertIn("include/holdfast/sql/database.hpp", installed)
        for header in installed:
            self.assertFalse(header.startswith("include/holdfast/testing"), header)

    def test_the_debian_packages_hold_what_belongs_in_them(self):
        out = self.folder / "deb"
        run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", out)
        (binary,) = out.glob("holdfast_*.deb")
        (library,) = out.glob("libholdfast-dev_*.deb")

        self.assertRegex(run("dpkg-deb", "--field", binary, "Depends"), r"libpq5 .*libsqlite3-0 ")
        for needed in "libpq-dev", "libpg-query-dev", "nlohmann-json3-dev":
            self.assertIn(needed, run("dpkg-deb", "--field", library, "Depends"))
        self.assertIn(" ./usr/bin/holdfast\n", run("dpkg-deb", "--contents", binary))
        self.assertIn("/holdfast/sql/database.hpp\n", run("dpkg-deb", "--contents", library))
        self.assertNotIn("/bin/", run("dpkg-deb", "--contents", library))


if __name__ == "__main__":
    unittest.main()

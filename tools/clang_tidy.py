#!/usr/bin/env python3
"""Runs clang-tidy over files, and remembers which were clean.

usage: clang_tidy.py --build DIR [--checks LIST] FILE...

DIR holds compile_commands.json. LIST is added to the checks of .clang-tidy. A file is skipped if the
same tool found the same text of it and of all it includes clean before; comments count only where
clang-tidy reads them. What is remembered lies in $XDG_CACHE_HOME/holdfast/clang-tidy, so that clones
of the repository share it. Prints the findings and exits with 1 if there are any.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

TOOL = os.environ.get("HOLDFAST_CLANG_TIDY", "clang-tidy-19")
CACHE_DAYS = 30

COMMENT_OR_LITERAL = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"',
    re.S,
)


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base, "holdfast", "clang-tidy")


def without_idle_comments(text):
    """Comments that change what clang-tidy says are its own marks and names of arguments."""

    def kept(match):
        found = match[0]
        idle = found.startswith("/") and "NOLINT" not in found and "=*/" not in found
        return " " if idle else found

    return re.sub(r"\s*\n\s*", "\n", COMMENT_OR_LITERAL.sub(kept, text)).strip()


def preprocessed(command):
    words = shlex.split(command["command"]) if "command" in command else list(command["arguments"])
    if "-o" in words:
        at = words.index("-o")
        del words[at : at + 2]
    words = [word for word in words if word != "-c"]
    while words and not re.search(r"clang|g\+\+", pathlib.Path(words[0]).name):
        words.pop(0)  # A launcher such as ccache, and its variables.
    done = subprocess.run(
        [*words, "-E", "-C", "-P", "-w"],
        cwd=command["directory"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return done.stdout if done.returncode == 0 else None


def key_of(command, fixed):
    text = preprocessed(command)
    if text is None:
        return None  # It does not even compile: clang-tidy tells why.
    return hashlib.sha256((fixed + without_idle_comments(text)).encode()).hexdigest()


def tool_identity(checks):
    version = subprocess.run([TOOL, "--version"], capture_output=True, text=True, check=True).stdout
    configuration = pathlib.Path(".clang-tidy")
    return "\n".join([version, checks, configuration.read_text() if configuration.exists() else ""])


def forget_old(folder):
    """Entries that were not used for a while."""
    for entry in folder.iterdir():
        age_days = (pathlib.Path("/proc/self").stat().st_mtime - entry.stat().st_mtime) / 86400
        if age_days > CACHE_DAYS:
            entry.unlink(missing_ok=True)


def look_at(file, command, options, fixed, folder):
    """Whether it was remembered, and what clang-tidy said; empty text if the file is clean."""
    key = key_of(command, fixed)
    entry = folder / key if key else None
    if entry and entry.exists():
        entry.touch()
        return True, ""
    done = subprocess.run(
        [TOOL, "-p", options.build, "--quiet", f"--checks={options.checks}", file],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        if entry:
            entry.touch()
        return False, ""
    return False, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description="clang-tidy over files, clean ones remembered")
    parser.add_argument("--build", required=True)
    parser.add_argument("--checks", default="")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()

    commands = json.loads(pathlib.Path(options.build, "compile_commands.json").read_text())
    by_file = {os.path.realpath(os.path.join(c["directory"], c["file"])): c for c in commands}
    wanted = [(file, by_file.get(os.path.realpath(file))) for file in options.files]
    wanted = [(file, command) for file, command in wanted if command]  # The build compiles it.

    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    forget_old(folder)
    fixed = tool_identity(options.checks)
    remembered, findings = 0, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        looks = [pool.submit(look_at, *one, options, fixed, folder) for one in wanted]
        for look in concurrent.futures.as_completed(looks):
            known, text = look.result()
            remembered += known
            if text:
                findings.append(text)
                print(text, flush=True)
    print(f"clang-tidy: {len(wanted)} files, {remembered} remembered, {len(findings)} with findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

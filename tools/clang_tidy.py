#!/usr/bin/env python3
"""Runs clang-tidy over files, and remembers which were clean.

usage: clang_tidy.py --build DIR [--checks LIST] FILE...
       clang_tidy.py --changed-since COMMIT FILE...

DIR holds compile_commands.json. LIST is added to the checks of .clang-tidy. A file is skipped if the
same tool found the same text of it and of all it includes clean before; comments count only where
clang-tidy reads them. What is remembered lies in $XDG_CACHE_HOME/holdfast/clang-tidy, so that clones
of the repository share it. Prints the findings and exits with 1 if there are any.

Most of its time goes into headers, so files with the same flags are first looked at in batches. A
batch only shows that its files are clean; what is found is told by looking at a file alone.
clang's analyzer looks at main files only: with it there are no batches.

The second form only prints the files whose code differs from that at COMMIT.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

TOOL = os.environ.get("HOLDFAST_CLANG_TIDY", "clang-tidy-19")
CACHE_DAYS = 30
BATCH_MAX = 8

COMMENT_OR_LITERAL = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
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


def compiler_words(command):
    """The compiler and its flags, without the output and without launchers such as ccache."""
    words = shlex.split(command["command"]) if "command" in command else list(command["arguments"])
    if "-o" in words:
        at = words.index("-o")
        del words[at : at + 2]
    words = [word for word in words if word != "-c"]
    while words and not re.search(r"clang|g\+\+", pathlib.Path(words[0]).name):
        words.pop(0)
    return words


def preprocessed(command):
    done = subprocess.run(
        [*compiler_words(command), "-E", "-C", "-P", "-w"],
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


@dataclasses.dataclass
class File:
    """A file to look at."""

    path: str
    command: dict
    entry: pathlib.Path | None  # Exists if the file was found clean; None if it does not compile.

    @property
    def flags(self):
        words = compiler_words(self.command)
        return self.command["directory"], tuple(w for w in words if w != self.command["file"])

    def remember(self):
        if self.entry:
            self.entry.touch()


def run_tool(*arguments):
    return subprocess.run([TOOL, "--quiet", *arguments], capture_output=True, text=True, check=False)


def look_alone(file, options):
    """What clang-tidy says; empty if the file is clean."""
    done = run_tool("-p", options.build, f"--checks={options.checks}", file.path)
    if done.returncode == 0:
        file.remember()
        return ""
    return done.stdout + done.stderr


def batch_is_clean(batch, options):
    directory, flags = batch[0].flags
    with tempfile.TemporaryDirectory(prefix="holdfast-tidy-") as folder:
        source = pathlib.Path(folder, "batch.cpp")
        paths = [os.path.join(file.command["directory"], file.command["file"]) for file in batch]
        source.write_text("".join(f'#include "{path}"\n' for path in paths))
        command = {"directory": directory, "file": str(source), "arguments": [*flags, str(source)]}
        pathlib.Path(folder, "compile_commands.json").write_text(json.dumps([command]))
        configuration = ["--config-file=.clang-tidy"] if pathlib.Path(".clang-tidy").exists() else []
        checks = f"--checks={options.checks},-bugprone-suspicious-include"
        return run_tool("-p", folder, *configuration, checks, str(source)).returncode == 0


def look_at(batch, options):
    """The findings in the files of a batch. Files that do not fit together, or where there is a
    finding, are told apart by halves."""
    if len(batch) == 1:
        return list(filter(None, [look_alone(batch[0], options)]))
    if batch_is_clean(batch, options):
        for file in batch:
            file.remember()
        return []
    half = len(batch) // 2
    return look_at(batch[:half], options) + look_at(batch[half:], options)


def batches(files, checks):
    """Neighbours with the same flags. Fuzzers alone, because each has the same function, and so
    sources that include a source, which a batch does itself."""
    if "-clang-analyzer-*" not in checks:
        return [[file] for file in files]
    groups = {}
    for file in files:
        alone = file.path.endswith("_fuzz.cpp") or re.search(
            r"#include.*\.cpp[\">]", pathlib.Path(file.path).read_text()
        )
        groups.setdefault((file.flags, file.path if alone else ""), []).append(file)
    return [
        group[at : at + BATCH_MAX]
        for group in groups.values()
        for at in range(0, len(group), BATCH_MAX)
    ]


def read_files(options, folder, pool):
    """The named files that the build compiles."""
    commands = json.loads(pathlib.Path(options.build, "compile_commands.json").read_text())
    by_file = {os.path.realpath(os.path.join(c["directory"], c["file"])): c for c in commands}
    wanted = [(path, by_file.get(os.path.realpath(path))) for path in options.files]
    wanted = [(path, command) for path, command in wanted if command]
    fixed = tool_identity(options.checks)
    keys = pool.map(lambda one: key_of(one[1], fixed), wanted)
    return [
        File(path, command, folder / key if key else None) for (path, command), key in zip(wanted, keys)
    ]


def look_at_all(options):
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    forget_old(folder)
    with_findings = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        files = read_files(options, folder, pool)
        unknown = [file for file in files if not (file.entry and file.entry.exists())]
        for file in files:
            if file not in unknown:
                file.remember()
        looks = [pool.submit(look_at, batch, options) for batch in batches(unknown, options.checks)]
        for look in concurrent.futures.as_completed(looks):
            for text in look.result():
                with_findings += 1
                print(text, flush=True)
    remembered = len(files) - len(unknown)
    print(f"clang-tidy: {len(files)} files, {remembered} remembered, {with_findings} with findings")
    return 1 if with_findings else 0


def code_changed(path, commit):
    """Whether more than idle comments and white space differs from the file at the commit."""
    old = subprocess.run(
        ["git", "show", f"{commit}:./{path}"], capture_output=True, text=True, check=False
    )
    now = pathlib.Path(path).read_text()
    return old.returncode != 0 or without_idle_comments(old.stdout) != without_idle_comments(now)


def main():
    parser = argparse.ArgumentParser(description="clang-tidy over files, clean ones remembered")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--build")
    mode.add_argument("--changed-since", metavar="COMMIT")
    parser.add_argument("--checks", default="")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    if options.changed_since:
        for path in options.files:
            if code_changed(path, options.changed_since):
                print(path)
        return 0
    return look_at_all(options)


if __name__ == "__main__":
    sys.exit(main())

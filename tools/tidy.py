#!/usr/bin/env python3
"""House rules that neither the compiler nor clang-tidy can see.

usage: tidy.py [ROOT]      ROOT is this repository unless told.

Prints one line per finding and exits with 1 if there is any.
"""

import collections
import dataclasses
import pathlib
import re
import sys

import english

LINES_MAX = 600
FILES_MAX = 40  # Directly in one folder.
ROOMS_IN = {"src", "apps", "bench"}
NOT_ROOMS = {"include", "schema", "scenarios", "vectors"}
FORBIDDEN_FOLDERS = {"common", "util", "misc", "helpers", "impl"}
NOT_OURS = {".git", ".cache", "build", "third_party", "__pycache__"}

# The one place where a user has to have a library of somebody else's: values that are JSON.
THIRD_PARTY_IN_PUBLIC = {
    ("holdfast/flow/json.hpp", "nlohmann/json.hpp"),
    ("holdfast/testing/local_server.hpp", "httplib.h"),  # For tests only, never installed.
}

UNFINISHED = "TODO" + "(now)"  # Glued, so that this file does not find itself.


@dataclasses.dataclass
class Floor:
    """What a folder's CMakeLists.txt declares."""

    name: str
    folder: pathlib.Path
    uses: set
    test_uses: set
    installed: bool


@dataclasses.dataclass(eq=False)
class Source:
    """A C++ file, with and without what a rule about code must not look at."""

    path: pathlib.Path  # From the root.
    floor: Floor | None
    no_comments: str
    code: str  # Neither comments nor the insides of literals. Lines stay where they are.
    is_test: bool

    @property
    def public_name(self):
        """How a user includes it, "holdfast/sql/tx.hpp"; empty if it is private."""
        _, found, name = self.path.as_posix().partition("/include/")
        return name if found else ""


LITERAL_OR_COMMENT = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.S,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    return LITERAL_OR_COMMENT.sub(lambda m: blank(m[0]) if m["comment"] else m[0], text)


def without_literals(text):
    def hollow(match):
        inside = match[0]
        if match["comment"]:
            return blank(inside)
        return inside[0] + blank(inside[1:-1]) + inside[-1]

    return LITERAL_OR_COMMENT.sub(hollow, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


# ---- The tree ------------------------------------------------------------------------------------


def read_floor(lists):
    """The floor a CMakeLists.txt declares, or None."""
    text = re.sub(r"#[^\n]*", "", lists.read_text())
    call = re.search(r"\bholdfast_floor\s*\(([^)]*)\)", text)
    if not call:
        return None
    arguments = call[1]
    for variable, values in re.findall(r"\bset\s*\(\s*(\w+)([^)]*)\)", text):  # All it may stand for.
        arguments = arguments.replace(f"${{{variable}}}", f"{values} ${{{variable}}}")
    name, *words = arguments.split()
    keyword, given = None, {}
    for word in words:
        if word.isupper():
            keyword = word
            given.setdefault(keyword, set())
        else:
            given[keyword].add(word)
    return Floor(
        name=name,
        folder=lists.parent,
        uses=given.get("USES", set()),
        test_uses=given.get("TEST_USES", set()),
        installed="NOT_INSTALLED" not in given,
    )


def files_under(root):
    for path in sorted(root.rglob("*")):
        inner = path.relative_to(root)
        if path.is_file() and not path.is_symlink() and not NOT_OURS & set(inner.parts):
            yield path


def nearest_floor(path, floors):
    above = [floor for floor in floors if floor.folder in path.parents]
    return max(above, key=lambda floor: len(floor.folder.parts), default=None)


def is_test_file(path):
    """By its name, or because it lies in the folder test/ of a room."""
    return re.search(r"_(test|bench|fuzz)\.cpp$", path.name) is not None or "test" in path.parts[:-1]


def read_source(root, path, floors):
    text = path.read_text()
    return Source(
        path=path.relative_to(root),
        floor=nearest_floor(path, floors),
        no_comments=without_comments(text),
        code=without_literals(text),
        is_test=is_test_file(path.relative_to(root)),
    )


def find_test_headers(sources):
    """A private header that no source of the product reaches belongs to the tests."""
    private = {s for s in sources if s.floor and s.path.suffix == ".hpp" and not s.public_name}
    unreached = set(private)
    reached = [source for source in sources if source not in private and not source.is_test]
    while reached:
        source = reached.pop()
        for quote, target in INCLUDE.findall(source.no_comments):
            for header in [h for h in unreached if quote == '"' and h.floor is source.floor]:
                if ("/" + header.path.as_posix()).endswith("/" + target):
                    unreached.remove(header)
                    reached.append(header)
    for header in unreached:
        header.is_test = True


# ---- Rules for every file ------------------------------------------------------------------------


def check_file(root, path):
    inner = path.relative_to(root)
    for folder in FORBIDDEN_FOLDERS & set(inner.parts[:-1]):
        yield inner, 1, f"a folder is named by a noun of our field, not '{folder}'"
    if inner.suffix not in {".cpp", ".hpp", ".py", ".sh", ".cmake", ".sql"} and inner.name != "run":
        return
    lines = path.read_text().splitlines()
    if len(lines) > LINES_MAX:
        yield inner, LINES_MAX + 1, f"the file has {len(lines)} lines; at most {LINES_MAX}"
    for number, line in enumerate(lines, 1):
        if UNFINISHED in line:
            yield inner, number, f"{UNFINISHED} blocks a merge"


# ---- Folders -------------------------------------------------------------------------------------


def check_folders(root, files):
    """A folder of code is small enough to read its list of files at a glance."""
    counts = collections.Counter()
    for path in files:
        inner = path.relative_to(root)
        if inner.parts[0] in ROOMS_IN and not NOT_ROOMS & set(inner.parts[:-1]):
            counts[inner.parent] += 1
    for folder, count in counts.items():
        if count > FILES_MAX:
            yield folder, 1, f"the folder has {count} files; at most {FILES_MAX}"


# ---- Includes ------------------------------------------------------------------------------------

STANDARD_HEADER = re.compile(r"[a-z_0-9]+")


def check_includes(source, floors):
    names = {floor.name for floor in floors}
    for match in INCLUDE.finditer(source.no_comments):
        quote, target = match.groups()
        line = line_of(source.no_comments, match.start())
        parts = target.split("/")
        if ".." in parts:
            yield source.path, line, f'"{target}" leaves the folder; include <holdfast/...> instead'
        elif quote == '"' and "test" in parts[:-1] and not source.is_test:
            yield source.path, line, f'"{target}" is for tests only'
        elif parts[0] == "holdfast" and len(parts) > 2:
            if parts[1] not in names:
                yield source.path, line, f"there is no floor '{parts[1]}'"
            else:
                yield from check_floor_include(source, line, parts[1])
        elif source.public_name and source.floor and source.floor.installed:
            standard = quote == "<" and STANDARD_HEADER.fullmatch(target)
            if not standard and (source.public_name, target) not in THIRD_PARTY_IN_PUBLIC:
                yield (
                    source.path,
                    line,
                    f"a public header includes '{target}', which is neither holdfast/ nor standard",
                )


def check_floor_include(source, line, other):
    floor = source.floor
    if floor is None:
        # Stories, examples and programs stand above all floors; only tests know the harness.
        if other == "testing" and source.path.parts[0] != "tests" and not source.is_test:
            yield source.path, line, "only tests use 'testing'"
        return
    declared = floor.uses | {floor.name}
    if source.is_test:
        declared |= floor.test_uses
    if other not in declared:
        yield source.path, line, f"floor '{floor.name}' does not declare that it uses '{other}'"


# ---- Twins ---------------------------------------------------------------------------------------
#
# Two different types of one name in one program are undefined behaviour that no compiler sees, unless
# both stand in one translation unit.

OPENING = re.compile(
    r"\bnamespace\s+(?P<namespace>[\w:]*)\s*\{"
    r"|\b(?P<type>class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?P<name>\w+)"
    r"(?:\s+final)?(?:\s*:(?!:)[^;{]*)?\s*\{"
    r"|[{}]"
)


def named_types(code):
    """Qualified names of the types that a file defines outside of unnamed namespaces, with lines."""
    code = re.sub(r"template\s*<[^{};]*?>\s*(?=class|struct)", "", code)
    around = []  # What each open brace belongs to: a namespace's name, or None.
    for match in OPENING.finditer(code):
        if match[0] == "}":
            if around:
                around.pop()
        elif match["namespace"] is not None:
            around.append(match["namespace"] or None)
        else:
            if match["name"] and None not in around:
                yield "::".join([*around, match["name"]]), line_of(code, match.start())
            around.append(None)


def program_of(source):
    """Files whose types meet in one program: those of a floor and its tests, or of a folder."""
    return source.floor.name if source.floor else source.path.parts[:2]


def check_twins(sources):
    seen = {}
    for source in sources:
        if source.path.parts[0] == "examples" or source.path.name.endswith(("_fuzz.cpp", "_main.cpp")):
            continue  # A program of its own.
        for name, line in named_types(source.code):
            first = seen.setdefault((program_of(source), name), source.path)
            if first != source.path:
                yield source.path, line, f"'{name}' is defined in {first} too; rename one"


# ---- Products ------------------------------------------------------------------------------------
#
# Code above sql asks a Dialect for what it needs, never for a product's name. sql compares products;
# dsql is a driver and testing makes the databases: both may say what they are.

NAME_PRODUCTS = {"sql", "dsql", "testing"}
PRODUCT = re.compile(
    r"\bProduct::\w+"
    r"|(?:\.|->)product\b"
    r"|\bscheme\s*[=!]=\s*\""
    r"|\"\s*[=!]=\s*[\w.()>-]*\bscheme\b"
    r"|\bdialect(?:\(\))?(?:\.|->)name\s*[=!]="
)


def check_products(source):
    if source.floor and source.floor.name in NAME_PRODUCTS:
        return
    for match in PRODUCT.finditer(source.code):
        yield (
            source.path,
            line_of(source.code, match.start()),
            "code above sql names a product; add a capability to sql::Dialect and ask for that",
        )


# ---- Statements ----------------------------------------------------------------------------------

STATEMENT = re.compile(r"\bconstexpr\s+(?:\w+::)*(?:Fenced)?Statement\s+(\w+)\s*[{(=]")
ADDRESS = re.compile(r"&\s*(?:\w+::)*(\w+)")


def check_statements(sources):
    """Every statement of a floor is in its catalogue, where the tests of statements find it."""
    product = [
        source
        for source in sources
        if source.floor and source.floor.installed and not source.is_test
    ]
    listed = {}
    for source in product:
        if re.search(r"\bCatalogue\b", source.code):
            listed.setdefault(source.floor.name, set()).update(ADDRESS.findall(source.code))
    for source in product:
        for match in STATEMENT.finditer(source.code):
            if match[1] not in listed.get(source.floor.name, set()):
                yield (
                    source.path,
                    line_of(source.code, match.start()),
                    f"statement '{match[1]}' is not in the catalogue of floor '{source.floor.name}'",
                )


# ---- Coroutines ----------------------------------------------------------------------------------
#
# g++ 12 destroys some temporaries of an awaited expression twice. These are the shapes it gets wrong
# and nothing else: braces that may own memory, lambdas that capture by value, and ?: unless its
# sides are plain names or plain numbers. A retry policy owns nothing, whatever stands in its braces.

OPEN = {"(": ")", "[": "]", "{": "}"}
NUMBER = re.compile(r"-?\d[\w.']*|true|false|nullptr")
NAME = re.compile(r"[A-Za-z_][\w.:]*(?:->\w+|\[\w+\])*")


def matching(code, start):
    """The position of the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(code)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
            if depth == 0:
                return at
    return len(code)


def split_outside(text, separator):
    """Splits at the separators that stand in no bracket; '::' is not a ':'."""
    parts, depth, last = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        doubled = separator == ":" and ":" in text[at - 1 : at] + text[at + 1 : at + 2]
        if char == separator and depth == 0 and not doubled:
            parts.append(text[last:at])
            last = at + 1
    return [*parts, text[last:]]


def awaited(code, start):
    """The expression that begins at `start`, as far as co_await binds it."""
    depth = 0
    for at in range(start, len(code)):
        if depth == 0 and code[at] in ";,?)]}":
            return code[start:at]
        depth += (code[at] in "([{") - (code[at] in ")]}")
    return code[start:]


def owns_nothing(initialisers):
    values = [re.sub(r"^\s*\.\w+\s*=", "", value).strip() for value in split_outside(initialisers, ",")]
    return all(NUMBER.fullmatch(value) for value in values)


def bad_choice(text):
    """Whether a ?: in this text makes a temporary."""
    for part in split_outside(text, ","):
        _, *after = split_outside(part, "?")
        if after:
            sides = [side.strip() for side in split_outside("?".join(after), ":")]
            if not all(NAME.fullmatch(side) or NUMBER.fullmatch(side) for side in sides):
                return True
    return False


def trouble_in(expression):
    """What g++ 12 would get wrong in an awaited expression; None if nothing."""
    at = 0
    while at < len(expression):
        char = expression[at]
        if char == "[" and not re.search(r"[\w)\]]\s*$", expression[:at]):
            end = matching(expression, at)
            captures = [capture.strip() for capture in expression[at + 1 : end].split(",")]
            if any(c and not c.startswith("&") and c != "this" for c in captures):
                return "a lambda that captures by value"
            body = expression.find("{", end)
            at = matching(expression, body) if body >= 0 else end
        elif char == "{":
            end = matching(expression, at)
            policy = re.search(r"\.retry\(\s*(?:[\w:]*RetryPolicy\s*)?$", expression[:at])
            if not policy and not owns_nothing(expression[at + 1 : end]):
                return "a braced temporary"
            at = end
        elif char == "(" and bad_choice(expression[at + 1 : matching(expression, at)]):
            return "a ?: that makes a temporary"
        at += 1
    return None


def check_coroutines(source):
    for match in re.finditer(r"(?<!operator )\bco_await\b", source.code):
        line = line_of(source.code, match.start())
        statement = re.split(r"[;{}]", source.code[: match.start()])[-1]
        while re.search(r"\([^()]*\)", statement):
            statement = re.sub(r"\([^()]*\)", "", statement)
        trouble = trouble_in(awaited(source.code, match.end()))
        if "?" in statement:
            trouble = "a ?: around it"
        if trouble:
            yield source.path, line, f"co_await with {trouble}: g++ 12 destroys it twice, name it first"


# ---- Documents -----------------------------------------------------------------------------------

PATH_IN_TEXT = re.compile(r"`((?:src|apps|bench|cmake|docs|examples|tests|tools)/[\w./-]*\w)`")
TERM = re.compile(r"\*\*([^*]+)\*\*")


def check_architecture(root):
    """The map of the house names only what is there."""
    page = root / "docs" / "ARCHITECTURE.md"
    if not page.exists():
        return
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for name in PATH_IN_TEXT.findall(line):
            if not (root / name).exists():
                yield page.relative_to(root), number, f"there is no {name}"


def check_glossary(root):
    """One entry per term."""
    page = root / "docs" / "glossary.md"
    if not page.exists():
        return
    seen = {}
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if not line.startswith("| **"):
            continue
        for term in TERM.findall(line.split("|")[1]):
            if term in seen:
                yield page.relative_to(root), number, f"'{term}' is explained in line {seen[term]} as well"
            seen.setdefault(term, number)


# --------------------------------------------------------------------------------------------------


def findings(root):
    files = list(files_under(root))
    lists = [path for path in files if path.name == "CMakeLists.txt"]
    floors = [floor for floor in map(read_floor, lists) if floor]
    sources = []
    for path in files:
        yield from check_file(root, path)
        if path.suffix in {".cpp", ".hpp"}:
            sources.append(read_source(root, path, floors))
    yield from check_folders(root, files)
    find_test_headers(sources)
    for source in sources:
        yield from check_includes(source, floors)
        yield from check_coroutines(source)
        yield from check_products(source)
    yield from check_statements(sources)
    yield from check_twins(sources)
    yield from check_architecture(root)
    yield from check_glossary(root)
    yield from english.check_english(root, files, is_test_file)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    if len(sys.argv) < 2:
        root = root.parent.parent
    found = sorted(set(findings(root)))
    for path, line, message in found:
        print(f"{path}:{line}: {message}")
    print(f"tidy: {len(found)} findings" if found else "tidy: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Plain English: phrases that comments, messages and documents do without.

Looks at comments of every C++ source, at strings of those that are not tests (what a test writes is
data; a string without a space is a name), and at the documents, without their blocks of code.
"""

import re

FOLDERS = ("src", "apps", "bench", "examples", "docs")
PHRASES = (
    (re.compile(r"(?<!\bthere )\b(?:is|are) no\b(?! (?:longer|more|less)\b)", re.I), "'is no ...'; say 'is not a ...'"),
    (re.compile(r"\b(?:whoever|nobody|somebody)\b", re.I), "'whoever', 'nobody', 'somebody'; name the code or the data"),
    (re.compile(r"(?:\A|[.!?:;] )Who\b"), "a sentence that begins with 'Who'"),
)
COMMENT_OR_STRING = re.compile(
    r"(?P<line>(?:[ \t]*//[^\n]*\n?)+)"
    r"|(?P<block>/\*.*?\*/)"
    r'|(?P<raw>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")'
    r'|(?P<string>"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*)'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.S,
)


def plain(text):
    """The words of a comment or of adjacent strings, in one line as long as before."""
    text = re.sub(r"(?m)^[ \t]*//+", lambda m: " " * len(m[0]), text)
    text = re.sub(r'"\s*"', lambda m: " " * len(m[0]), text)
    return re.sub(r"\s", " ", text).strip('"')


def phrases_in(text):
    """(offset, what is refused) for every refused phrase, however its words are spaced."""
    words = [(m[0], m.start()) for m in re.finditer(r"\S+", text)]
    starts, joined = [], ""
    for word, start in words:
        starts.append((len(joined), start))
        joined += word + " "
    for phrase, refused in PHRASES:
        for match in phrase.finditer(joined):
            at = max(s for s in starts if s[0] <= match.start() + 1 or s[0] == 0)
            yield at[1], refused


def check_cpp(text, is_test):
    for match in COMMENT_OR_STRING.finditer(text):
        kind = match.lastgroup if match.lastgroup != "mark" else "raw"
        is_string = kind in ("raw", "string")
        if kind is None or (is_string and (is_test or " " not in match[0])):
            continue
        lead = len(match[0]) - len(match[0].lstrip('"')) if kind == "string" else 0
        for offset, refused in phrases_in(plain(match[0])):
            position = match.start() + lead + offset
            yield text.count("\n", 0, position) + 1, refused


def check_markdown(text):
    text = re.sub(r"(?ms)^ *```.*?^ *```", lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    text = re.sub(r"`[^`\n]*`", lambda m: "x" * len(m[0]), text)
    for paragraph in re.finditer(r"(?:[^\n]*\S[^\n]*\n?)+", text):
        for offset, refused in phrases_in(re.sub(r"\s", " ", paragraph[0])):
            yield text.count("\n", 0, paragraph.start() + offset) + 1, refused


def check_english(root, files, is_test):
    for path in files:
        inner = path.relative_to(root)
        if inner.parts[0] not in FOLDERS and inner.suffix != ".md":
            continue
        if inner.suffix in {".cpp", ".hpp"}:
            found = check_cpp(path.read_text(), is_test(inner))
        elif inner.suffix in {".md", ".txt"} and inner.name != "CMakeLists.txt":
            found = check_markdown(path.read_text())
        else:
            continue
        for line, refused in found:
            yield inner, line, f"plain English does without {refused}"

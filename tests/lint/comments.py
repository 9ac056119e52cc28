"""Finds the comments of sources, in each of the project's languages. Consecutive lines are one comment."""

import ast
import io
import re
import tokenize

STRINGS = r'"(?:\\.|[^"\\\n])*"'
BLOCK = r"/\*(?P<block>.*?)\*/"
LINE = r"//(?P<line>[^\n]*)"
# After these characters, a slash of TypeScript begins a pattern.
PATTERN = r"(?:(?<=[(,=:?!])|(?<=[(,=:?!] ))/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\[\\\n])+/"
# A script's text between << END and END.
HERE_DOCUMENT = r"(?<!<)<<-?(['\"]?)(?P<end>\w+)\1[^\n]*\n.*?^\t*(?P=end)$"
DIRECTIVE = r"(?:include|define|undef|ifn?def|if|elif|else|endif|error|pragma)\b"

# Comments of each language, and literals, in which no comment begins.
C = rf"{LINE}|{BLOCK}|R\"(?P<raw>\w*)\(.*?\)(?P=raw)\"|{STRINGS}|'(?:\\.|[^'\\\n])'"
TYPESCRIPT = rf"{LINE}|{BLOCK}|{STRINGS}|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|{PATTERN}"
STYLE = rf"{BLOCK}|{STRINGS}"
PAGE = r"<!--(?P<block>.*?)-->"
ASSEMBLY = rf"{BLOCK}|{STRINGS}|#(?!\s*{DIRECTIVE})(?P<line>[^\n]*)"
SCRIPT = rf"{HERE_DOCUMENT}|'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|(?<![^\s;(])#(?P<line>[^\n]*)"

LANGUAGES = {
    **dict.fromkeys((".cpp", ".hpp", ".c", ".h", ".cu", ".cuh", ".def"), C),
    **dict.fromkeys((".ts", ".mjs", ".cjs"), TYPESCRIPT),
    **dict.fromkeys((".css", ".map"), STYLE),
    ".html": PAGE,
    ".S": ASSEMBLY,
    ".sh": SCRIPT,
    ".py": None,  # read by Python's own tokenizer
}
# Files without an ending that have the comments of scripts.
FILES = ("meson.build", ".clang-tidy", ".clang-format")

# Words for other programs. Text behind them begins a comment of its own.
FOR_PROGRAMS = re.compile(r"!/.*|shellcheck .*|clang-format .*|fmt: .*|noqa.*|[-=]{3,}|NOLINT\w*(?:\([^)]*\))?:?")


def is_source(path):
    """True if the file is in a language whose comments are found."""
    return path.is_file() and (path.suffix in LANGUAGES or path.name in FILES or first_line(path).startswith(b"#!"))


def first_line(path):
    """Returns the first line of a file without an ending, as bytes; empty for other files."""
    if path.suffix:
        return b""
    with path.open("rb") as file:
        return file.readline()


def comments_of(path, text):
    """Yields (line, text) for each comment and each docstring; `path`: a pathlib.Path."""
    if path.suffix == ".py" or re.match(r"#!.*\bpython", text):
        yield from joined(lines_of_python(text))
        yield from docstrings(text)
        return
    language = re.compile(LANGUAGES.get(path.suffix, SCRIPT), re.DOTALL | re.MULTILINE)
    yield from joined(lines_of(text, language))
    for match in language.finditer(text):
        block = match.groupdict().get("block")
        if block:
            yield text.count("\n", 0, match.start()) + 1, " ".join(line.strip(" *") for line in block.split("\n"))


def lines_of(text, language):
    """Yields (line, column, True if nothing stands before it, words) for each comment that ends with its line."""
    for match in language.finditer(text):
        words = match.groupdict().get("line")
        if words is not None:
            begin = text.rfind("\n", 0, match.start()) + 1
            before = text[begin : match.start()]
            words = re.sub(r"^[#/!<]*(?= |$)", "", words).strip()  # `///<` begins some comments of C++
            yield text.count("\n", 0, begin) + 1, len(before), not before.strip(), words


def lines_of_python(text):
    """Yields the same as lines_of()."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            number, column = token.start
            yield number, column, not token.line[:column].strip(), token.string.strip("# ")


def joined(lines):
    """Yields (line, text) for each comment. A comment that stands behind code may go on below itself."""
    block, first, last, last_column = [], 0, -1, -1
    for number, column, is_alone, words in lines:
        begin = FOR_PROGRAMS.match(words)
        is_heading = words.endswith("---")
        words = words[begin.end() if begin else 0 :].strip(" -") if begin or is_heading else words
        goes_on = block and is_alone and number == last + 1 and column == last_column and words and not begin
        if not goes_on:
            if block:
                yield first, " ".join(block)
            block, first = [], number
        if words:
            block.append(words)
        last, last_column = number, -1 if is_heading else column
    if block:
        yield first, " ".join(block)


def docstrings(text):
    """Yields (line, text) for each paragraph of Python's docstrings."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            words = ast.get_docstring(node)
            for paragraph in re.split(r"\n\n|\n(?=\s*(?:usage:|- ))", words) if words else ():
                yield node.body[0].lineno, " ".join(paragraph.split())

"""Checks comments and docstrings against those rules of prose that a program can check.

Finds comments that open without a subject, sentences of more than 35 words, and words for which the
project has another one. A comment that passes must still be understood by its reader.

usage: prose.py SOURCE_ROOT
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

FOLDERS = ("glibc_floor", "include", "shim", "runtime_hooks", "reporters", "tools", "samples", "tests")
C_SUFFIXES = (".cpp", ".hpp", ".c", ".h", ".cu", ".cuh", ".def")

OPENERS = re.compile(
    r"^(What|Whatever|Whether|Who|Whoever|Whose|Where|Which|Of|Else|Those|Nobody|Somebody|That|Then"
    r"|The same|The first)\b(?! (?:page|thread|request|call)s?\b)"
)
# word -> the project's word for it
GLOSSARY = {
    r"famil(?:y|ies)": "hook (or: file of hooks)",
    r"lanes?": "shard",
    r"cells?": "shard",
    r"troubles?": "incident, or what went wrong",
    r"news": "message, notice",
    r"(?<!in )(?<!in its )(?<!in our )(?<!take )(?<!takes )(?<!took )places?(?! (?:where|a |an |the ))":
        "location, offset, slot, current context or pc",
    r"(?:a|the|each|every|one|vain) climb": "ladder, or: the climbing request",
}
LONGEST = 35  # words of a sentence
IGNORED = re.compile(r"^(NOLINT|clang-format|usage:|---|===|#!|shellcheck|noqa|\$ )")


def c_comments(text):
    """Yields (line, text) for each comment; consecutive lines of // are one comment."""
    # Strings may hold two slashes.
    code = re.sub(r'"(?:\\.|[^"\\\n])*"', lambda match: '"' * len(match[0]), text)
    block, first, last, column = [], 0, -1, -1
    for number, line in enumerate(code.split("\n"), 1):
        at = line.find("//")
        if at < 0:
            continue
        words = text.split("\n")[number - 1][at + 2 :].strip()
        alone = line[:at].strip() == ""
        if alone and block and number == last + 1 and at == column and words:
            block.append(words)
        else:
            if block:
                yield first, " ".join(block)
            block, first = [words], number
            column = at if alone else -1
        if not alone:
            column = at  # a trailing comment may go on below itself
        last = number
    if block:
        yield first, " ".join(block)
    for match in re.finditer(r"/\*(.*?)\*/", code, re.DOTALL):
        number = code.count("\n", 0, match.start()) + 1
        inside = text[match.start() + 2 : match.end() - 2]
        yield number, " ".join(line.strip(" *") for line in inside.split("\n"))


def python_comments(text):
    block, first, last = [], 0, -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        number = token.start[0]
        if block and number == last + 1 and token.line.strip().startswith("#"):
            block.append(token.string.lstrip("# "))
        else:
            if block:
                yield first, " ".join(block)
            block, first = [token.string.lstrip("# ")], number
        last = number
    if block:
        yield first, " ".join(block)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            words = ast.get_docstring(node)
            if words:
                yield node.body[0].lineno, " ".join(words.split("\n\n")[0].split())


def sentences(words):
    words = re.sub(r"\([^()]*\)", " ", words)  # an aside is read by itself
    return re.split(r"(?<=[.;:!?])\s+", words)


def complaints_about(name, comments):
    for line, words in comments:
        words = words.strip()
        if not words or IGNORED.match(words):
            continue
        opener = OPENERS.match(words)
        if opener:
            yield f"{name}:{line}: opens with «{opener[0]}», which is no subject: {words[:60]}"
        for sentence in sentences(words):
            count = len(re.findall(r"[A-Za-z0-9_:()~]+(?:['’-][A-Za-z]+)*", sentence))
            if count > LONGEST:
                yield f"{name}:{line}: a sentence of {count} words: {sentence[:60]}"
        for pattern, instead in GLOSSARY.items():
            found = re.search(rf"\b{pattern}\b", words)
            if found:
                yield f"{name}:{line}: «{found[0]}»: say {instead}: {words[:60]}"


def comments_of(path):
    text = path.read_text()
    if path.suffix == ".py":
        return python_comments(text)
    return c_comments(text)


def main():
    root = Path(sys.argv[1])
    complaints, files = [], 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in C_SUFFIXES + (".py",):
                continue
            files += 1
            complaints += complaints_about(name, comments_of(path))
    assert files, f"no sources below {root}"
    print("\n".join(complaints))
    print(f"{len(complaints)} complaints in {files} files")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

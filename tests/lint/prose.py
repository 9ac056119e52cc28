"""Checks comments, docstrings, messages, documents and names of tests against those rules of prose
that a program can check.

Finds comments and messages that open without a subject, sentences of more than 30 words or with an
ellipsis, and words for which the project has another one. Text that passes must still be understood by its reader.

usage: prose.py SOURCE_ROOT
"""

import re
import sys
import tempfile
from pathlib import Path

from comments import comments_of, is_source
from source_files import is_of_sources

C_SUFFIXES = (".cpp", ".hpp", ".c", ".h", ".cu", ".cuh", ".def")
# Folders whose string literals are shown to users.
MESSAGES = ("shim", "runtime_hooks", "reporters", "tools")

# Words that are no subject of a comment. Words in capitals are names of parameters.
OPENERS = re.compile(
    r"^(?!(?-i:[A-Z]{2}))(?:what|whatever|whether|who|whoever|whose|where|wherever|which|how|of|else|those"
    r"|nobody|somebody|that|then|it|its|they|their|them|also|such|the same|the first)\b",
    re.IGNORECASE,
)
# Words that are no subject of any other sentence of a comment.
LATER_OPENERS = re.compile(r"^(What|Whatever|Whether|Who|Whoever|Whose|Which|Else|Those|Nobody|Somebody)\b")
# Words that are no subject in a message, and questions that stand for a noun. A message may be put
# together of several strings, so only words are listed that are wrong wherever they stand. In small
# letters, "which" and its like may go on with a sentence that another string begins.
MESSAGE_SUBJECTS = re.compile(
    r"(?:^\s*|[.:;] )(?:what|whatever|who|whoever|whose|else|nobody|somebody)\b"
    r"|(?:^\s*|[.:;] )(?-i:Which|Whether|Where|How|Of|Those|That|Such)\b"
    r"|\b(?:see|says?|tells?|knows?|known|shows?|finds?) (?:who|whose|what)\b"
    r"|\bwho (?:else|has|had|holds?|held|locks?|uses|asked|asks|calls?|called)\b",
    re.IGNORECASE,
)
# Words that are no subject of a test's name.
NAME_OPENERS = re.compile(r"^(what|whatever|whether|who|whoever|whose|which|of|else|those|that|then|it|its)_")
# Words that are no subject of a message that a test shows when it fails.
EXPECTATION_OPENERS = re.compile(
    r"^(?:what|whatever|whether|who|whoever|whose|where|which|how|of|else|those|nobody|somebody|that|then|its?"
    r"|they|their|such)\b"
)
# word -> the project's word for it
GLOSSARY = {
    r"famil(?:y|ies)": "hook (or: file of hooks)",
    r"(?<![`-])bod(?:y|ies)(?!`)": "hook, or function",
    r"lanes?": "shard",
    r"cells?": "shard",
    r"troubles?": "incident, or what went wrong",
    r"news": "message, notice",
    r"(?<!in )(?<!in its )(?<!in our )(?<!take )(?<!takes )(?<!took )(?<!take the )(?<!takes the )(?<!took the )"
    r"places?(?! (?:where|a |an |the ))": "location, offset, slot, current context or pc",
    r"(?:a|an|the|this|each|every|one|no|another|any|its|last|next|first|same|vain|long) climb"
    r"|(?:two|all|many|of|between|after|before) climbs": "ladder, or rescue",
    r"periods?": "epoch, or interval",
    r"(?:no|some|any|every)body(?:s|'s)?|who(?:so)?ever": "the thread, process or person that is meant",
    r"the (?:former|latter)": "the noun",
    r"for (?:\S+ ){1,2}(?:is|are|was|were|may|might|can|could|must|serves?|needs?|has|have|had|does|do)":
        "because, or: since",
}
# The rule about `for` is about the conjunction, which follows a comma.
WORDS = {
    re.compile(rf", {word}\b" if word.startswith("for ") else rf"\b(?:{word})\b", re.IGNORECASE): instead
    for word, instead in GLOSSARY.items()
}
# Folders whose code knows memory pools (CUmemoryPool) and cuwarden's own pools. A comment that names a pool says
# at least once which of them it means.
BOTH_POOLS = tuple(f"runtime_hooks/{folder}/" for folder in ("driver", "hooks", "rescue", "tracking"))
A_POOL = re.compile(r"\bpools?\b(?!\()", re.IGNORECASE)
A_KNOWN_POOL = re.compile(r"\b(?:memory|cuwarden's(?: own)?) pools?\b", re.IGNORECASE)
ELLIPSIS = re.compile(r"[a-z] ?(?:\.\.\.|…)(?=$| [A-Z])")
LONGEST = 30  # words of a sentence
IGNORED = re.compile(r"^(usage:|\$ )")


def literals(text):
    """Yields (line, text) for each string of a source; strings beside each other are one."""
    code = re.sub(r"^\s*(?://|#(?!define)).*", "", text, flags=re.MULTILINE)
    for match in re.finditer(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*', code):
        words = re.sub(r'"\s*"', "", match[0]).strip('"').replace("\\n", " ")
        is_assembly = words.startswith(".")
        if " " in words.strip() and not is_assembly:
            yield code.count("\n", 0, match.start()) + 1, words


def paragraphs(text):
    """Yields (line, text) for each paragraph, item or column of a document."""
    text = re.sub(r"^```.*?^```", lambda code: "\n" * code[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`\n]*`", "`code`", text)
    for match in re.finditer(r"(?:(?!\n\n|\n *(?:[-#|]|\d+\. )|\|).)+", text, re.DOTALL):
        words = " ".join(match[0].split()).lstrip("-# ")
        if words:
            yield text.count("\n", 0, match.start()) + 1, words


def test_names(text):
    """Yields (line, words) for each test of a source."""
    for match in re.finditer(r"\bTEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)|^def test_(\w+)", text, re.MULTILINE):
        yield text.count("\n", 0, match.start()) + 1, match[1] or match[2]


def expectations(text):
    """Yields (line, words) for each message of a check by GoogleTest."""
    for match in re.finditer(r'\b(?:EXPECT|ASSERT)_\w+\((?:[^;"]|"[^"\n]*")*?\)\s*<< "([^"\n]+)";', text):
        yield text.count("\n", 0, match.end()) + 1, match[1]


def sentences(words):
    words = re.sub(r"\([^()]*\)", " ", words)  # an aside is read by itself
    return re.split(r"(?<=[.;:!?])\s+", words)


def wrong_words(words):
    for pattern, instead in WORDS.items():
        found = pattern.search(words)
        if found:
            yield f"«{found[0].strip(', ')}»: say {instead}"
    if ELLIPSIS.search(words):
        yield "an ellipsis"
    for sentence in sentences(words):
        count = len(re.findall(r"[A-Za-z0-9_:()~]+(?:['’-][A-Za-z]+)*", sentence))
        if count > LONGEST:
            yield f"a sentence of {count} words: {sentence[:60]}"


def wrong_subjects(words):
    opener = OPENERS.match(words)
    if opener:
        yield f"opens with «{opener[0]}», which is no subject"
    for sentence in sentences(words)[1:]:
        opener = LATER_OPENERS.match(sentence)
        if opener:
            yield f"«{opener[0]}» is no subject: {sentence[:60]}"


def wrong_subjects_of_message(words):
    for found in MESSAGE_SUBJECTS.finditer(words):
        yield f"«{found[0].strip(' .:;')}»: name the thing that is meant"


def wrong_openers_of_expectation(words):
    opener = EXPECTATION_OPENERS.match(words)
    if opener:
        yield f"opens with «{opener[0]}», which is no subject"


def complaints_about_comments(comments):
    for line, words in comments:
        words = words.strip()
        if words and not IGNORED.match(words):
            for complaint in (*wrong_subjects(words), *wrong_words(words)):
                yield line, f"{complaint}: {words[:60]}"


def complaints_about_pools(comments):
    for line, words in comments:
        if A_POOL.search(words) and not A_KNOWN_POOL.search(words):
            yield line, f"«pool»: say memory pool (CUmemoryPool) or cuwarden's pool: {words.strip()[:60]}"


def complaints_about_text(texts):
    for line, words in texts:
        for complaint in wrong_words(words):
            yield line, f"{complaint}: {words[:60]}"


def complaints_about_messages(messages):
    yield from complaints_about_text(messages)
    for line, words in messages:
        for complaint in wrong_subjects_of_message(words):
            yield line, f"{complaint}: {words[:60]}"


def complaints_about_names(names):
    for line, name in names:
        opener = NAME_OPENERS.match(name)
        if opener:
            yield line, f"a test's name opens with «{opener[1]}»: {name}"
        for complaint in wrong_words(name.replace("_", " ")):
            if "sentence" not in complaint:
                yield line, f"{complaint}: {name}"


def complaints_about_expectations(messages):
    for line, words in messages:
        for complaint in (*wrong_openers_of_expectation(words), *wrong_words(words)):
            yield line, f"{complaint}: {words}"


def complaints_about(name, text):
    suffix = Path(name).suffix
    if suffix == ".md":
        yield from complaints_about_text(paragraphs(text))
    else:
        comments = list(comments_of(Path(name), text))
        yield from complaints_about_comments(comments)
        if name.startswith(BOTH_POOLS):
            yield from complaints_about_pools(comments)
    if suffix in (".cpp", ".hpp", ".py"):
        yield from complaints_about_names(test_names(text))
    if name.startswith("tests/") and suffix in (".cpp", ".hpp"):
        yield from complaints_about_expectations(expectations(text))
    if suffix in C_SUFFIXES and name.startswith(MESSAGES):
        yield from complaints_about_messages(list(literals(text)))


def sources(root):
    """Yields the files that are checked: documents, and sources in folders of sources, beside them, and in .ci."""
    yield from sorted((root / "docs").glob("*.md"))
    for folder in (root, root / ".ci"):
        yield from sorted(path for path in folder.glob("*") if is_source(path) or path.suffix == ".md")
    for folder in filter(is_of_sources, sorted(root.iterdir())):
        if folder.name != "docs":
            yield from sorted(path for path in folder.rglob("*") if is_source(path) or path.suffix == ".md")


def complaints_in(root):
    """Returns the complaints, a line for each, and the number of files that were read."""
    complaints, files = [], 0
    for path in sources(root):
        name = path.relative_to(root).as_posix()
        files += 1
        complaints += [f"{name}:{line}: {what}" for line, what in complaints_about(name, path.read_text())]
    return complaints, files


# Files by name; each has one comment, in place of @. Literals and words for other programs are no comments.
EXAMPLES = {
    ".ci/run": "#!/usr/bin/env bash\n# @\nset -eu\n",
    ".clang-tidy": "Checks: '#What'\n# @\n",
    "meson.build": "name = '# What'  # @\n",
    "page/part.ts": "const parts = ['// What', `\n// What`, /[/'] What/]; // @\n",
    "page/build.mjs": "const text = \"/* What */\";\n/**\n * @\n */\n",
    "page/style.css": "a { content: '// What'; } /* @ */\n",
    "shim/entry.S": "#define What\n    ret  # @\n",
    "shim/hook.cpp": "// NOLINTNEXTLINE(bugprone-exception-escape): @\nconst char text[] = {'\"', *\"// What\", '\"'};\n",
    "shim/symbols.map": "/* @ */\n{ global: *; };\n",
    "shim/words.def": '// clang-format off\n// @\nWORD("// What")\n',
    "tests/run": '#!/usr/bin/env python3\n"""Runs."""\n# @\ntext = "# What"\n',
    "tests/test_run.py": "# fmt: skip\n# @\n",
    "tools/quickstart": "#!/bin/sh\n# shellcheck disable=SC2034\n# @\necho $# '# What' <<END\n# What\nEND\n",
    "tools/set_up.sh": "# shellcheck shell=bash\n#\n# @\n",
    "tools/test": "#!/usr/bin/env bash\n# Runs the tests:\n#\n# @\n",
}
# Function that finds wrong words -> texts in which it finds some, and texts in which it finds none.
OPENINGS = {
    wrong_subjects: (
        (
            "Who calls this is unknown.",
            "Which request failed.",
            "What page-locked memory is good for.",
            "The first thread's stack may have grown.",
            "That call has ended.",
            "of a size that a pool serves",
            "its name ends with the pid",
            "A page. Those threads have ended.",
        ),
        (
            "Offsets of blocks; of several, the first one.",
            "A request failed. Its thread is unknown.",
            "Threads that have called cuInit().",
            "HOW: text that tells how the thread ends.",
        ),
    ),
    wrong_subjects_of_message: (
        ("Which request failed", " Whether it is live", "not read. Where it lies is unknown", "see who calls it"),
        (" which has ", "the request, which failed", "WHERE", "(default: where the shim keeps them)", "Whole pages"),
    ),
    wrong_openers_of_expectation: (
        ("those of the page", "where it ends", "which of them"),
        ("the first piece opened the page", "also within a tick"),
    ),
}
POOLS = {"runtime_hooks/tracking/file.hpp": 1, "runtime_hooks/pool/file.hpp": 0}


def check_the_check():
    """Fails unless the comment of each example is found, and nothing else."""
    for find, (wrong, right) in OPENINGS.items():
        for words in (*wrong, *right):
            assert bool(list(find(words))) == (words in wrong), words
    for name, count in POOLS.items():
        comments = ("The pool is full.", "A memory pool that is full; the pool has no handle.", "Cuwarden's pool.")
        text = "".join(f"// {words}\n\n" for words in comments)
        assert len(list(complaints_about(name, text))) == count, name
    for comment, expected in (("A comment of the file.", set()), ("What a comment says.", set(EXAMPLES))):
        with tempfile.TemporaryDirectory() as top:
            for name, text in EXAMPLES.items():
                path = Path(top) / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text.replace("@", comment))
            complaints, files = complaints_in(Path(top))
        assert files == len(EXAMPLES), f"{files} of {len(EXAMPLES)} files are read"
        found = [complaint.partition(":")[0] for complaint in complaints]
        assert set(found) == expected, f"unlike what is expected: {sorted(set(found) ^ expected)}"
        assert len(found) == len(expected), complaints


def main():
    check_the_check()
    complaints, files = complaints_in(Path(sys.argv[1]))
    assert files > 100, f"no sources below {sys.argv[1]}"
    print("\n".join(complaints))
    print(f"{len(complaints)} complaints in {files} files")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

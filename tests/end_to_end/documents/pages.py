"""The documents, and the commands that they show."""

import re

import shimmed

DOCUMENTS = sorted(
    path
    for path in [
        *shimmed.SOURCE.glob("*.md"),
        *shimmed.SOURCE.glob("docs/*.md"),
        *(shimmed.SOURCE / folder / "README.md" for folder in ("samples", "tests")),
        shimmed.SOURCE / "tools" / "simulated_gpu" / "README.md",
    ]
)

# Pages whose blocks of `bash` and `console` have tests of their own, and the files of these tests.
BLOCKS_RUN_BY = {
    "docs/exports.md": "test_exports.py",
    "docs/leaking-tests.md": "test_documents.py",
    "docs/leaks-in-ci.md": "test_documents.py",
    "docs/library-leaks.md": "test_library_leaks.py",
    "docs/queries.md": "test_queries.py",
}

# Programs of the commands within sentences, and the project's own scripts and products.
PROGRAMS = (
    r"apt-get|cuwarden [a-z]+|docker|duckdb|export|flamegraph\.pl|gdb|go|jq|ls|meson|ninja|node|npm|podman|promtool"
    r"|python3|rm|srun|strip|systemd-run|(?:build[a-z-]*|samples|tests|tools)/[\w./-]+"
)
# A command within a sentence; a form such as `cuwarden run [options] -- CMD…` only describes commands.
IN_A_SENTENCE = re.compile(rf"`((?:[A-Z_]+=\S+ )*(?:{PROGRAMS}) (?:[^`\[…]|\[(?![\w-]))+)`")


def name_of(path):
    """Returns the path of a document from the root of the sources."""
    return path.relative_to(shimmed.SOURCE).as_posix()


def blocks(language, text):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands_in_sentences(text):
    return IN_A_SENTENCE.findall(" ".join(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split()))


def commands():
    """Yields (name of the document, command) for each line of a block and each command within a sentence. Blocks
    with tests of their own are left out.
    """
    for path in DOCUMENTS:
        text = path.read_text()
        language = "sh" if name_of(path) in BLOCKS_RUN_BY else "(?:sh|bash|console)"
        lines = [line for block in blocks(language, text) for line in block.strip().splitlines()]
        lines += commands_in_sentences(text)
        for command in dict.fromkeys(re.split(r"\s+# ", line)[0].strip() for line in lines):
            if command:
                yield name_of(path), command


def check_shown(shown, said):
    """Fails unless each line of `shown` is in the text `said`, in the same order. Several spaces count as one."""
    said = re.sub(" +", " ", said)
    begin = 0
    for line in shown.splitlines():
        begin = said.find(re.sub(" +", " ", line.strip()), begin)
        assert begin >= 0, f"{line}\nis not in\n{said}"

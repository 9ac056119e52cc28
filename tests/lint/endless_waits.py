"""Checks that tests give their waits an end. A wait for what another thread or process does has an end of its own: a
timeout in Python, comes_about() or wait_until() of tests/comes_about.hpp in C++.

Finds, in Python, calls of wait() and communicate() without a timeout; in C++, waits of std::atomic, and
loops that only look again until a condition holds. Not found are joins of threads, waits for pids, and
loops that sleep. With --self-test, checks that it finds them.

usage: endless_waits.py SOURCE_ROOT|--self-test
"""

import re
import sys
from pathlib import Path

from source_files import source_files

CPP = (".cpp", ".hpp", ".cu", ".cuh", ".c")

# Matches calls of methods without a timeout. os.wait() has no timeout; the process that calls it has one.
PYTHON = re.compile(
    r"(?<!\bos)\.wait\(\s*\)"
    r"|\.communicate\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
)
HAS_TIMEOUT = re.compile(r"\btimeout(?:_s)?\s*=")

# Matches a wait for another value than the given one, as std::atomic has. A wait on a condition variable has
# a lock for its argument, and one on a future or a process has none.
ATOMIC = re.compile(r"(?:\.|->)wait\(\s*(?!lock\w*\b)[^\s(),][^(),]*(?:,\s*std::memory_order\w*\s*)?\)")
# Matches a loop that does nothing in a turn, or only lets other threads run. The end of `do {} while (…);` matches, too.
LOOKS_AGAIN = re.compile(
    r"(?P<end>\}\s*)?\bwhile\s*\((?P<condition>(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)\)\s*"
    r"(?:;|\{\s*;?\s*\}|\{?\s*(?P<yields>std::this_thread::yield|sched_yield|_mm_pause|__builtin_ia32_pause)\(\);)"
)
# Matches what does work in a condition, such as a read or a request: a call with arguments. A load of an
# atomic does none.
WORKS = re.compile(r"\b(?!load\b)\w+\(\s*[^\s)]|\bgetchar\(")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

# Texts and if they must be found.
PYTHON_EXAMPLES = {
    "process.wait()": True,
    "process.wait( )": True,
    "said, _ = process.communicate()": True,
    "process.communicate(text.encode())[0]": True,
    "process.communicate(input=made(lines()))": True,
    "begun.wait()": True,
    "os.wait()": False,
    "process.wait(PATIENCE_S)": False,
    "process.wait(timeout=60)": False,
    "process.communicate(text.encode(), timeout=60)": False,
    "process.communicate(timeout=made(lines()))": False,
    "workspace.wait_for(process)": False,
}
CPP_EXAMPLES = {
    "is_in.wait(false);": True,
    "cache.calls.wait(0);": True,
    "here->stage.wait(stage_before);": True,
    "done.wait(0, std::memory_order_acquire);": True,
    "while (!begun) {\n  }": True,
    "while (!begun.load()) {}": True,
    "while (!is_there());": True,
    "while (!begun.load(std::memory_order_acquire)) {}": True,
    "while (!has_ended(thread)) sched_yield();": True,
    "while (made < wanted) std::this_thread::yield();": True,
    "while (waiting.load() < together) {\n    std::this_thread::yield();\n  }": True,
    "while (!begun)  // soon\n    ;": True,
    "stage_.wait_for(lock, longest_wait);": False,
    "all_done.wait(lock);": False,
    "frames.wait();": False,
    "names.wait();  // is_in.wait(false)": False,
    "do {\n  look();\n} while (!over);": False,
    "while (!over) look();": False,
    "while (read(input, &byte, 1) > 0) {\n  }": False,
    "while (std::getchar() != EOF) {}": False,
    'wait_until("the thread is in", [&] { return is_in.load(); });': False,
}


def without_comments(text):
    return COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


def waits_in_python(text):
    """Returns (offset, call) of each call without a timeout."""
    return [
        (match.start(), match[0].lstrip("."))
        for match in PYTHON.finditer(text)
        if not HAS_TIMEOUT.search(match[0])
    ]


def waits_in_cpp(text):
    """Returns (offset, expression) of each endless wait. `text` has no comments."""
    found = [(match.start(), match[0].lstrip(".->")) for match in ATOMIC.finditer(text)]
    return found + [
        (match.start(), f"while ({match['condition']})")
        for match in LOOKS_AGAIN.finditer(text)
        if not match["end"] and (match["yields"] or not WORKS.search(match["condition"]))
    ]


def complaints_about(name, text):
    is_python = name.endswith(".py")
    for offset, call in waits_in_python(text) if is_python else waits_in_cpp(without_comments(text)):
        line = (text if is_python else without_comments(text)).count("\n", 0, offset) + 1
        remedy = "a timeout" if is_python else "comes_about() or wait_until()"
        yield f"{name}:{line}: {call} may wait for ever: {remedy} gives it an end"


def self_test():
    examples = [("example.py", PYTHON_EXAMPLES), ("example.cpp", CPP_EXAMPLES)]
    wrong = [
        f"{'not ' if is_found else ''}found: {text}"
        for name, texts in examples
        for text, is_found in texts.items()
        if bool(list(complaints_about(name, text))) != is_found
    ]
    print("\n".join(wrong))
    return 1 if wrong else 0


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    root = Path(sys.argv[1])
    own = Path(__file__).resolve()
    sources = [path for path in source_files(root / "tests", (".py", *CPP)) if path.resolve() != own]
    assert sources, f"no tests below {root}"
    complaints = [
        complaint
        for path in sources
        for complaint in complaints_about(path.relative_to(root).as_posix(), path.read_text())
    ]
    print(f"{len(sources)} files")
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

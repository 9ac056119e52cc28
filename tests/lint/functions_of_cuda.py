"""Checks that every function of cuda.h has a row in hooks.def, submissions.def or known_functions.def, and only one.

A function without a row counts as unknown: from its first call on, cuwarden moves no memory.

usage: functions_of_cuda.py SOURCE_ROOT CUDA_INCLUDE_FOLDER
"""

import re
import subprocess
import sys
from pathlib import Path

LISTS = ("hooks.def", "submissions.def", "known_functions.def")
TWINS = re.compile(r"^TWINS\((\w+), (\w+), (\w+, cu[A-Z]\w*),", re.M)
KNOWN_TWINS = re.compile(r"^KNOWN_TWINS\((cu\w+), (\w+)\)", re.M)
ROW = re.compile(r"^(?:HOOK|COUNT|LAUNCH|GRAPH_LAUNCH|QUERY|SUBMIT|WAIT|SHIM|USE|OF_[A-Z_]+)\((?:.*? )?CUresult, (cu[A-Z]\w*),|^KNOWN\((cu\w+)\)", re.M)
DECLARED = re.compile(r"\bCUresult\s+(?:__attribute__\s*\(\([^;]*?\)\)\s*)?(cu[A-Z]\w*)\s*\(")
# Calls of this function show that network cards access the program's memory, so that none may be moved.
UNKNOWN_ON_PURPOSE = {"cuFlushGPUDirectRDMAWrites"}


def declared(include):
    source = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <cudaProfiler.h>\n"
    command = ["cc", "-E", "-P", "-x", "c", "-I", include, "-"]
    text = subprocess.run(command, input=source, text=True, check=True, capture_output=True).stdout
    return {name for name in DECLARED.findall(text) if "typedef" not in name}


def main():
    root, include = Path(sys.argv[1]), sys.argv[2]
    rows = []
    for name in LISTS:
        text = (root / "runtime_hooks/driver" / name).read_text()
        text = TWINS.sub(r"\1(\3,\n\1(\3\2,", text)
        text = KNOWN_TWINS.sub(r"KNOWN(\1)\nKNOWN(\1\2)", text)
        rows += [(match[0] or match[1], name) for match in ROW.findall(text)]
    names = [name for name, _ in rows]
    wrong = [f"{where}: {name} has more than one row" for name, where in rows if names.count(name) > 1]
    functions = declared(include)
    if len(functions) < 400:
        sys.exit(f"only {len(functions)} functions were found in cuda.h of {include}")
    missing = sorted(functions - set(names) - UNKNOWN_ON_PURPOSE)
    wrong += [f"{name} of cuda.h has no row: review it, and add one to {', '.join(LISTS)}" for name in missing]
    print("\n".join(wrong) or f"{len(functions)} functions have a row")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

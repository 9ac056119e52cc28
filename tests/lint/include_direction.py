"""Checks the direction of includes: each folder with sources has a list, and may include only the folders in it.

usage: include_direction.py SOURCE_ROOT
"""

import re
import sys
import tempfile
from graphlib import TopologicalSorter
from pathlib import Path

from source_files import source_files

CORE = ["runtime_hooks/core", "runtime_hooks/core/memory", "runtime_hooks/core/files", "runtime_hooks/core/settings"]
FORMAT = ["runtime_hooks/ledger/format"]
# The ledger's readers and its writer both know the format. Neither side may include the other.
READ = FORMAT + ["runtime_hooks/ledger/read"]
STORE = FORMAT + ["runtime_hooks/ledger/storage"]
WRITE_ROOMS = ["runtime_hooks/ledger/write/stacks", "runtime_hooks/ledger/write/allocation_records"]
WRITE = STORE + WRITE_ROOMS + ["runtime_hooks/ledger/write"]
DRIVER = ["runtime_hooks/driver"]
STACKS = ["runtime_hooks/stacks/python", "runtime_hooks/stacks"]
POOL = ["runtime_hooks/pool/packing", "runtime_hooks/pool", "runtime_hooks/pool/meshing"]
TRACKING_DEVICES = ["runtime_hooks/tracking/devices"]
TRACKING = TRACKING_DEVICES + ["runtime_hooks/tracking"]
SERVING = ["runtime_hooks/serving"]
RUNGS = ["runtime_hooks/rescue/rungs"]
RESCUE = RUNGS + ["runtime_hooks/rescue"]

HOOKS_KNOW = RESCUE + SERVING + TRACKING + POOL + DRIVER + WRITE + STACKS + CORE

# Rooms of the hooks, the lowest first: each may include the rooms before it.
HOOK_ROOMS = ["call", "execution", "graphs", "memory"]

# Rooms of the shim, in the same order.
SHIM_ROOMS = ["support", "interpose", "probes", "python", "policy", "files", "turns", "reachability", "process", "exports"]

# Rooms of the command, in the same order.
COMMAND_ROOMS = ["output", "program", "ledgers", "reports", "verbs", "top", "top/live"]

# Rooms of the reporters, in the same order.
REPORTER_ROOMS = ["words", "files", "model", "owners", "labels", "reachability", "symbols", "verdicts", "tables/groups", "tables", "json", "text/elements", "text/headline", "text", "comparison", "merging", "exports/page", "exports", "formats", "reports"]

SIMULATED_DEVICE = ["tools/simulated_gpu/hardware", "tools/simulated_gpu/device"]

# Folder -> the folders that it may include beside itself. The lists hold folders only: a single header in
# one would hide that its folder has two roles.
ALLOWED = {
    "runtime_hooks/core": [],
    "runtime_hooks/core/memory": ["runtime_hooks/core"],
    "runtime_hooks/core/files": ["runtime_hooks/core"],
    "runtime_hooks/core/settings": ["runtime_hooks/core"],
    # Replacements for functions of newer glibcs. Products link them; only the shim also includes them.
    "glibc_floor": CORE,
    "runtime_hooks/driver": CORE,
    "runtime_hooks/ledger/format": CORE,
    "runtime_hooks/ledger/storage": FORMAT + CORE,
    "runtime_hooks/ledger/write/stacks": STORE + CORE,
    "runtime_hooks/ledger/write/allocation_records": STORE + CORE,
    "runtime_hooks/ledger/write": STORE + WRITE_ROOMS + CORE,
    "runtime_hooks/ledger/read": FORMAT + CORE,
    "runtime_hooks/stacks/python": CORE,
    "runtime_hooks/stacks": ["runtime_hooks/stacks/python"] + CORE,
    "runtime_hooks/pool/packing": CORE,
    "runtime_hooks/pool": ["runtime_hooks/pool/packing"] + DRIVER + CORE,
    "runtime_hooks/pool/meshing": ["runtime_hooks/pool/packing", "runtime_hooks/pool"] + DRIVER + CORE,
    "runtime_hooks/tracking/devices": DRIVER + WRITE + CORE,
    "runtime_hooks/tracking": TRACKING_DEVICES + DRIVER + WRITE + STACKS + CORE,
    "runtime_hooks/serving": POOL + TRACKING + DRIVER + WRITE + CORE,
    "runtime_hooks/rescue/rungs": SERVING + TRACKING + POOL + DRIVER + WRITE + CORE,
    "runtime_hooks/rescue": RUNGS + SERVING + TRACKING + POOL + DRIVER + WRITE + CORE,
    "tools/cuwarden": [f"tools/cuwarden/{room}" for room in COMMAND_ROOMS] + ["reporters"] + READ + CORE,
    # The simulated GPU replaces NVIDIA's libraries and knows nothing about cuwarden.
    "tools/simulated_gpu": SIMULATED_DEVICE,
    "tools/simulated_gpu/hardware": [],
    "tools/simulated_gpu/device": ["tools/simulated_gpu/hardware"],
    "tools/simulated_gpu/driver": SIMULATED_DEVICE,
    # Links nothing of the driver: it finds the driver's functions as any program does.
    "tools/simulated_gpu/runtime": SIMULATED_DEVICE,
    "samples/libraries": [],
    "samples": ["samples/libraries"],
} | {
    f"runtime_hooks/hooks/{room}": [f"runtime_hooks/hooks/{lower}" for lower in HOOK_ROOMS[:position]] + HOOKS_KNOW
    for position, room in enumerate(HOOK_ROOMS)
} | {
    f"shim/{room}": [f"shim/{lower}" for lower in SHIM_ROOMS[:position]]
    + ["glibc_floor", "runtime_hooks", "reporters"]
    for position, room in enumerate(SHIM_ROOMS)
} | {
    f"tools/cuwarden/{room}": [f"tools/cuwarden/{lower}" for lower in COMMAND_ROOMS[:position]]
    + ["reporters"] + READ + CORE
    for position, room in enumerate(COMMAND_ROOMS)
} | {
    f"reporters/{room}": [f"reporters/{lower}" for lower in REPORTER_ROOMS[:position]] + READ + CORE
    for position, room in enumerate(REPORTER_ROOMS)
}

# Tests look into every folder, and the public header includes only the standard library's.
MAY_INCLUDE_ALL = {"tests", "include"}

# Foreign headers that only some folders may include.
OUTSIDE = {
    r"cuda.*\.h|driver_types\.h|vector_types\.h": [
        "runtime_hooks/driver",
        "runtime_hooks/pool",
        "runtime_hooks/tracking",
        "runtime_hooks/serving",
        "runtime_hooks/rescue",
        "runtime_hooks/hooks",
        "shim",
        "tools/simulated_gpu",
        "samples",
    ],
    r"nlohmann/.*": ["reporters/json"],
    r"CLI/.*": ["tools/cuwarden"],
    r"spdlog/.*|fmt/.*": ["shim"],
    r"backtrace\.h": ["reporters"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"(?P<own>[^"]+)"|<(?P<outside>[^>]+)>)', re.MULTILINE)


def lies_in(path, folder):
    return path == folder or path.startswith(folder + "/")


def folder_of(path):
    return path.rpartition("/")[0]


def complaints_about(root, path):
    name = path.relative_to(root).as_posix()
    folder = folder_of(name)
    if folder not in ALLOWED:
        yield f"{name}: the folder {folder} is not listed with the folders that it may include"
        return
    for match in INCLUDE.finditer(path.read_text()):
        line = path.read_text().count("\n", 0, match.start()) + 1
        own, outside = match["own"], match["outside"]
        if own is not None:
            # A header that the build generates is included by its bare name, from its own folder.
            target = own if "/" in own else f"{folder}/{own}"
            if folder_of(target) not in {folder, *ALLOWED[folder]} and not any(
                lies_in(target, allowed) for allowed in ALLOWED[folder] if allowed not in ALLOWED
            ):
                yield f"{name}:{line}: {folder} may not include {own}"
        else:
            for pattern, folders in OUTSIDE.items():
                if re.fullmatch(pattern, outside) and not any(
                    lies_in(folder, allowed) for allowed in folders
                ):
                    yield f"{name}:{line}: {folder} may not know <{outside}>"


def complaints_in(root):
    """Returns the complaints, a line for each, and the number of sources that were read."""
    sources = [
        path
        for path in source_files(root, (".cpp", ".hpp", ".c", ".h", ".def", ".S"))
        if path.relative_to(root).parts[0] not in MAY_INCLUDE_ALL
    ]
    return [line for path in sources for line in complaints_about(root, path)], len(sources)


# Sources, each with the number of complaints about it.
EXAMPLES = {
    "reporters/text/section.cpp": ('#include "reporters/text/headline/title.hpp"\n#include "section.hpp"\n', 0),
    "reporters/text/headline/title.cpp": ('#include "reporters/text/section.hpp"\n', 1),
    "reporters/text/new/word.cpp": ("#include <string>\n", 1),
    "reporters/words/word.cpp": ('#include "reporters/words/new/word.hpp"\n#include <nlohmann/json.hpp>\n', 2),
    "shim/process/start.cpp": ('#include "reporters/words/word.hpp"\n', 0),
    "tests/unit/new/test.cpp": ('#include "reporters/text/section.hpp"\n', 0),
}


def check_the_check():
    """Fails unless each example gets its complaints, or if folders may include each other."""
    TopologicalSorter(ALLOWED).prepare()  # raises an error if there is a cycle
    with tempfile.TemporaryDirectory() as top:
        for name, (text, _) in EXAMPLES.items():
            path = Path(top) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        complaints, _ = complaints_in(Path(top))
    for name, (_, count) in EXAMPLES.items():
        found = [complaint for complaint in complaints if complaint.startswith(f"{name}:")]
        assert len(found) == count, (name, found)


def main():
    check_the_check()
    root = Path(sys.argv[1])
    complaints, files = complaints_in(root)
    assert files, f"no sources below {root}"
    print(f"{files} files")
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

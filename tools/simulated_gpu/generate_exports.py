#!/usr/bin/env python3
"""Writes the export layer of the simulated driver from the toolkit's own headers.

A function of the driver is written once, as `CUresult cuName(...)` in namespace
`cuwarden::simulated_gpu::entry` of one of the given sources. Everything else about it comes from
cuda.h and cudaTypedefs.h: its prototype, its `_ptsz`/`_ptds` twin, the exported symbol with the
check that every call begins with, and its rows in the table of cuGetProcAddress. Functions of
cuda.h that no source defines are exported, too, and answer CUDA_ERROR_NOT_SUPPORTED. If a source
defines the `_v2` form with the same parameters, they call it instead.

An object of driver/entry.hpp may stand before CUDA's parameters: the exported symbol then takes the
simulator's lock (`Locked&`), or the lock and the current context, without which it fails (`InContext&`).
"""
import argparse
import collections
import re
import subprocess
import sys

PROTOTYPE = re.compile(r"(?:^|\s)CUresult\s+(cu[A-Z]\w*)\s*\(([^;{}]*)\)\s*$", re.S)
DEFINITION = re.compile(r"^CUresult (cu[A-Z]\w*)\((?:(Locked|InContext)&)?", re.M)
TYPEDEF = re.compile(r"PFN_(cu[A-Za-z0-9]+)_v(\d+)(_pt[sd][sz])?\b")
PER_THREAD = re.compile(r"_pt[sd][sz]$")


def split_parameters(text):
    """Returns the parameters of a C function, one text each. `text` stands between its parentheses."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += char
    parts.append(current)
    parts = [" ".join(part.split()) for part in parts]
    return [] if parts in ([""], ["void"]) else parts


def parameter_name(parameter):
    """Returns the name of a C parameter, such as "size" for "size_t size"."""
    pointer_to_function = re.search(r"\(\s*\*\s*(\w+)\s*\)", parameter)
    if pointer_to_function:
        return pointer_to_function.group(1)
    return re.search(r"(\w+)\s*(\[\w*\])?$", parameter).group(1)


class Prototype:
    """A function of cuda.h or cuda_runtime_api.h: its name, its parameters, and their names (arguments)."""

    def __init__(self, name, parameters):
        self.name = name
        self.parameters = [p.replace(" restrict ", " ") for p in split_parameters(parameters)]
        self.arguments = [parameter_name(p) for p in self.parameters]

    def declaration(self, name=None, first=()):
        """Returns the declaration of the function, with `name` instead of its own if that is given.

        first  further parameters, which stand before those of the header
        """
        return f"CUresult {name or self.name}({', '.join([*first, *self.parameters])})"

    def types(self):
        """Returns the parameters without their names."""
        return [p.removesuffix(a).rstrip() for p, a in zip(self.parameters, self.arguments)]


def prototypes_of(compiler, include, prototype, source):
    """Returns the functions that headers of the toolkit declare, as a dict of Prototype by name.

    compiler   Words of the compiler's command, which preprocesses the headers.
    include    The toolkit's folder of headers.
    prototype  Pattern of a declaration, with groups for the function's name and its parameters.
    source     C source that includes the headers.
    """
    command = compiler + ["-E", "-P", "-x", "c", "-I", include, "-"]
    source = "#define __CUDA_API_VERSION_INTERNAL\n" + source
    text = subprocess.run(command, input=source, text=True, check=True, capture_output=True).stdout
    found = {}
    for statement in text.split(";"):
        match = prototype.search(statement)
        if match and "typedef" not in statement and match.group(1) not in found:
            found[match.group(1)] = Prototype(match.group(1), match.group(2))
    return found


def entry_of(name, prototypes, implemented):
    """Returns the name of the function in the sources (an entry) that the exported function `name` calls.

    Returns None if the sources have no such function.

    prototypes   The functions of CUDA's headers, as prototypes_of() returns them.
    implemented  Names of the entries in the sources, without _ptsz and _ptds.
    """
    plain = PER_THREAD.sub("", name)
    for target in (plain, plain + "_v2"):
        if target in implemented and prototypes[target].types() == prototypes[name].types():
            return target
    return None


def lookup_rows(include, prototypes):
    """Returns the table of cuGetProcAddress as sorted rows (base, version, symbol, per_thread).

    From CUDA version `version` on, the name `base` (such as cuMemAlloc) means the exported function `symbol`
    (such as cuMemAlloc_v2). `per_thread` is its form for the per-thread default stream; None: it has none.

    include     The toolkit's folder of headers.
    prototypes  The functions of CUDA's headers, as prototypes_of() returns them.
    """
    text = ""
    for header in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
        with open(f"{include}/{header}", encoding="utf-8") as file:
            text += file.read()
    versions = collections.defaultdict(set)
    for base, version, suffix in TYPEDEF.findall(text):
        versions[base, "_pt" if suffix else ""].add((int(version), suffix))
    rows = []
    bases = sorted({base for base, _ in versions})
    for base in bases:
        plain = sorted(version for version, _ in versions[base, ""])
        symbols = [base] + [f"{base}_v{k}" for k in range(2, 9)]
        symbols = [symbol for symbol in symbols if symbol in prototypes]
        if len(symbols) != len(plain):
            sys.exit(f"{base}: {len(plain)} versions but the symbols {symbols}")
        for version, symbol in zip(plain, symbols):
            twin = next((symbol + s for s in ("_ptsz", "_ptds") if symbol + s in prototypes), None)
            rows.append((base, version, symbol, twin))
    covered = {row[2] for row in rows}
    for name in sorted(prototypes):
        if name not in covered and not PER_THREAD.search(name) and not re.search(r"_v\d$", name):
            rows.append((name, 2000, name, None))
    return sorted(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", required=True)
    parser.add_argument("--extra-prototypes", required=True)
    parser.add_argument("--declarations", required=True)
    parser.add_argument("--exports", required=True)
    parser.add_argument("--versions", required=True)
    parser.add_argument("--compiler", required=True, help="the words of the command, joined by |")
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()

    with open(options.extra_prototypes, encoding="utf-8") as file:
        extra = file.read()
    prototypes = prototypes_of(options.compiler.split("|"), options.include, PROTOTYPE,
                               "#include <cuda.h>\n#include <cudaProfiler.h>\n" + extra)
    implemented = {}  # By name: the type of the object before CUDA's parameters; empty: there is none.
    for source in options.sources:
        with open(source, encoding="utf-8") as file:
            implemented.update(DEFINITION.findall(file.read()))
    unknown = sorted(implemented.keys() - prototypes.keys())
    for name in unknown:
        del implemented[name]
    if unknown:
        print("not in these headers, left out: " + ", ".join(unknown), file=sys.stderr)

    with open(options.declarations, "w", encoding="utf-8") as out:
        out.write("// Written by generate_exports.py.\n#pragma once\n")
        out.write('#include "tools/simulated_gpu/hardware/driver_headers.hpp"\n\n')
        out.write('extern "C" {\n' + extra + "}\n\n")
        out.write("namespace cuwarden::simulated_gpu {\nstruct Locked;\nstruct InContext;\n")
        out.write("namespace entry {\n")
        for name in sorted(implemented):
            first = [implemented[name] + "&"] if implemented[name] else []
            out.write(prototypes[name].declaration(first=first) + ";\n")
        out.write("}\n}\n")

    with open(options.exports, "w", encoding="utf-8") as out:
        out.write("// Written by generate_exports.py.\n")
        out.write('#include "tools/simulated_gpu/driver/entry.hpp"\n')
        out.write('#include "tools/simulated_gpu/driver/entry_guard.hpp"\n\n')
        out.write("using namespace cuwarden::simulated_gpu;\n")
        out.write('extern "C" {\n')
        for name, prototype in sorted(prototypes.items()):
            target = entry_of(name, prototypes, implemented)
            if target is None:
                body = "return CUDA_ERROR_NOT_SUPPORTED;"
                ignore = "".join(f"(void){argument}; " for argument in prototype.arguments)
                body = ignore + body
            else:
                needs = implemented[target]
                body = f"{needs} at; " if needs else ""
                body += "SIM_TRY(at.error); " if needs == "InContext" else ""
                body += f"return entry::{target}({', '.join(['at'] * bool(needs) + prototype.arguments)});"
            per_thread = "true" if PER_THREAD.search(name) else "false"
            parameters = ", ".join(prototype.parameters)
            out.write(f'__attribute__((visibility("default"))) CUresult {name}({parameters}) {{\n')
            out.write(f'  static constinit CallSite site{{"{name}"}};\n')
            out.write(f"  EntryGuard guard(site, {per_thread});\n")
            out.write("  if (guard.refusal != CUDA_SUCCESS) return guard.refusal;\n")
            out.write(f"  try {{ {body} }} catch (...) {{ return CUDA_ERROR_UNKNOWN; }}\n}}\n")
        out.write("}\n\nnamespace cuwarden::simulated_gpu {\n")
        rows = lookup_rows(options.include, prototypes)
        out.write("const LookupRow lookup_rows[] = {\n")
        for base, version, symbol, twin in rows:
            cast = "reinterpret_cast<void*>(&::{})"
            second = cast.format(twin) if twin else "nullptr"
            out.write(f'    {{"{base}", {version}, {cast.format(symbol)}, {second}}},\n')
        out.write("};\n")
        out.write(f"const std::size_t lookup_row_count = {len(rows)};\n}}\n")

    # The runtime gets the name and version by which it asks for each symbol.
    with open(options.versions, "w", encoding="utf-8") as out:
        out.write("// Written by generate_exports.py.\n#pragma once\n")
        out.write("namespace cuwarden::simulated_runtime::asked_as {\n")
        for base, version, symbol, _ in rows:
            out.write(f'struct {symbol} {{ static constexpr const char* name = "{base}"; '
                      f"static constexpr int version = {version}; }};\n")
        out.write("}\n")


if __name__ == "__main__":
    main()

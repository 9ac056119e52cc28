#!/usr/bin/env python3
"""Writes the export layer of the simulated runtime from cuda_runtime_api.h.

A function is either written by hand, as `cudaError_t cudaName(...)` in namespace
`cuwarden::simulated_runtime::entry`, or it is one line `cudaName cuName` in the list of forwards.
Forwards need the same parameters in both functions, up to the names of their types. The export, its
`_ptsz`/`_ptds` twin and the record of its error come from here. All other functions are not
exported: a program that needs one fails to load rather than misbehaves.
"""
import argparse
import re
import sys

from generate_exports import PER_THREAD, prototypes_of

PROTOTYPE = re.compile(r"(?:^|\s)cudaError_t\s+(cuda[A-Z]\w*)\s*\(([^;{}]*)\)\s*$", re.S)
DEFINITION = re.compile(r"^cudaError_t (cuda[A-Z]\w*)\(", re.M)
# Functions of one ABI only, or that return the recorded error rather than their own.
UNRECORDED = {"cudaGetLastError", "cudaPeekAtLastError"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--extra-prototypes", required=True)
    parser.add_argument("--forwards", required=True)
    parser.add_argument("--declarations", required=True)
    parser.add_argument("--exports", required=True)
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()

    with open(options.extra_prototypes, encoding="utf-8") as file:
        extra = file.read()
    prototypes = prototypes_of(options.compiler.split("|"), options.include, PROTOTYPE,
                               "#include <cuda_runtime_api.h>\n" + extra)
    written = set()
    for source in options.sources:
        with open(source, encoding="utf-8") as file:
            written.update(DEFINITION.findall(file.read()))
    forwards = {}
    with open(options.forwards, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if words:
                forwards[words[0]] = words[1]
    for name in sorted((written | forwards.keys()) - prototypes.keys()):
        sys.exit(f"{name} is not in cuda_runtime_api.h")

    def returns(name, prototype):
        """Returns the C declaration of the function as `name`, with cudaError_t as its result."""
        return prototype.declaration(name).replace("CUresult", "cudaError_t", 1)

    with open(options.declarations, "w", encoding="utf-8") as out:
        out.write("// Written by generate_runtime_exports.py.\n#pragma once\n")
        out.write('#include "tools/simulated_gpu/runtime/runtime_headers.hpp"\n\n')
        out.write('extern "C" {\n' + extra + "}\n\n")
        out.write("namespace cuwarden::simulated_runtime::entry {\n")
        for name in sorted(written):
            out.write(returns(name, prototypes[name]) + ";\n")
        out.write("}\n")

    with open(options.exports, "w", encoding="utf-8") as out:
        out.write("// Written by generate_runtime_exports.py.\n")
        out.write('#include "runtime_entries.hpp"\n')
        out.write('#include "tools/simulated_gpu/runtime/runtime_driver.hpp"\n')
        out.write('#include "tools/simulated_gpu/runtime/runtime_state.hpp"\n\n')
        out.write('using namespace cuwarden::simulated_runtime;\nextern "C" {\n')
        for name, prototype in sorted(prototypes.items()):
            target = PER_THREAD.sub("", name)
            arguments = ", ".join(prototype.arguments)
            if target in written:
                body = f"entry::{target}({arguments})"
            elif target in forwards:
                body = f"forward(DRIVER({forwards[target]}){', ' if arguments else ''}{arguments})"
            else:
                continue
            if target not in UNRECORDED:
                body = f"record({body})"
            out.write(f'__attribute__((visibility("default"))) {returns(name, prototype)} {{\n')
            out.write(f"  const PerThreadDefault scope({'true' if target != name else 'false'});\n")
            out.write(f"  return {body};\n}}\n")
        out.write("}\n")


if __name__ == "__main__":
    main()

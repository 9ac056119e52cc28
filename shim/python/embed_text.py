"""Writes a C++ source that defines the constant of shim/python/module_text.hpp.

usage: embed_text.py SOURCE MODULE.py...
"""

import sys
from pathlib import Path

source, *modules = map(Path, sys.argv[1:])
with source.open("w") as out:
    out.write('#include "shim/python/module_text.hpp"\n\nnamespace cuwarden::shim {\nnamespace {\n\n')
    for module in modules:
        text = module.read_bytes()
        out.write(f"const char {module.stem}[] = {{\n")
        for at in range(0, len(text), 20):
            out.write("".join(f"{byte}," for byte in text[at : at + 20]) + "\n")
        out.write("0};\n\n")
    rows = ", ".join(f'PythonModule{{"{module.stem}", "_{module.stem}", {module.stem}}}' for module in modules)
    out.write("}  // namespace\n\n")
    out.write(f"const std::array<PythonModule, {len(modules)}> python_modules = {{{rows}}};\n\n")
    out.write("}  // namespace cuwarden::shim\n")

#!/usr/bin/env python3
"""Writes wrappers, in assembly, of every function that a library imports from glibc.

A wrapper saves the arguments, asks `next_definition` (wrapping.cpp) for the function behind it, and
jumps there.

usage: wrappers.py LIBRARY OUTPUT
"""

import re
import subprocess
import sys

# The loader may call this function with an unaligned stack, so it cannot have a wrapper.
NOT_WRAPPED = {"__tls_get_addr"}

WRAPPER = """
    .globl {name}
    .type {name}, @function
{name}:
    pushq ${index}
    jmp ask_for_next
    .size {name}, .-{name}
"""

COMMON = """
    .section .note.GNU-stack, "", @progbits
    .text
    .type ask_for_next, @function
ask_for_next:
    pushq %rax
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    pushq %r10
    subq $128, %rsp
{save}
    movq 192(%rsp), %rdi            # the wrapper's index
    movq 200(%rsp), %rsi            # the caller
    call next_definition
    movq %rax, %r11
{restore}
    addq $128, %rsp
    popq %r10
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    popq %rax
    addq $8, %rsp
    jmpq *%r11
    .size ask_for_next, .-ask_for_next
"""


def imported_functions(library):
    symbols = subprocess.run(
        ["readelf", "-W", "--dyn-syms", library], capture_output=True, text=True, check=True
    ).stdout
    found = set(re.findall(r" FUNC +GLOBAL +DEFAULT +UND +(\w+)@GLIBC_", symbols))
    return sorted(found - NOT_WRAPPED)


def main():
    library, output = sys.argv[1:]
    names = imported_functions(library)
    if "dl_iterate_phdr" not in names or len(names) < 50:
        return f"{library} imports {len(names)} functions of glibc: is this the library?"
    registers = [(f"%xmm{i}", f"{16 * i}(%rsp)") for i in range(8)]
    text = COMMON.format(
        save="\n".join(f"    movups {register}, {slot}" for register, slot in registers),
        restore="\n".join(f"    movups {slot}, {register}" for register, slot in registers),
    )
    text += "".join(WRAPPER.format(name=name, index=index) for index, name in enumerate(names))
    text += "\n    .section .rodata\n    .globl wrapped_names\n    .hidden wrapped_names\n"
    text += "wrapped_names:\n" + "".join(f'    .asciz "{name}"\n' for name in names)
    text += "    .byte 0\n"
    with open(output, "w") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

# Entries for functions of the driver that cuwarden does not know (unknown_functions.hpp). An entry
# asks a C++ function, by the entry's number, for the function to jump to. All registers that may
# hold an argument, and the stack, are as the caller left them.

    .set MOST, 256                  # entries; as in unknown_functions.cpp
    .text

    .globl cuwarden_unknown_entries
    .hidden cuwarden_unknown_entries
    .type cuwarden_unknown_entries, @object
    .p2align 4
cuwarden_unknown_entries:
    .set NUMBER, 0
    .rept MOST
    .p2align 4                      # 16 bytes an entry
    endbr64
    movl $NUMBER, %r11d
    jmp cuwarden_unknown_entry
    .set NUMBER, NUMBER + 1
    .endr
    .p2align 4
    .size cuwarden_unknown_entries, .-cuwarden_unknown_entries

    .type cuwarden_unknown_entry, @function
cuwarden_unknown_entry:
    .cfi_startproc
    # rax: number of vector registers, for a function with `...`
    .irp register, rdi, rsi, rdx, rcx, r8, r9, r10, rax
    pushq %\register
    .cfi_adjust_cfa_offset 8
    .endr
    subq $136, %rsp                 # with the return address, a multiple of 16
    .cfi_adjust_cfa_offset 136
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7
    movaps %xmm\number, 16*\number(%rsp)
    .endr
    movl %r11d, %edi
    call cuwarden_before_unknown
    movq %rax, %r11
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7
    movaps 16*\number(%rsp), %xmm\number
    .endr
    addq $136, %rsp
    .cfi_adjust_cfa_offset -136
    .irp register, rax, r10, r9, r8, rcx, rdx, rsi, rdi
    popq %\register
    .cfi_adjust_cfa_offset -8
    .endr
    jmpq *%r11
    .cfi_endproc
    .size cuwarden_unknown_entry, .-cuwarden_unknown_entry

    .section .note.GNU-stack, "", @progbits

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
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %r9
    .cfi_adjust_cfa_offset 8
    pushq %r10
    .cfi_adjust_cfa_offset 8
    pushq %rax                      # number of vector registers, for a function with `...`
    .cfi_adjust_cfa_offset 8
    subq $136, %rsp                 # with the return address, a multiple of 16
    .cfi_adjust_cfa_offset 136
    movaps %xmm0, (%rsp)
    movaps %xmm1, 16(%rsp)
    movaps %xmm2, 32(%rsp)
    movaps %xmm3, 48(%rsp)
    movaps %xmm4, 64(%rsp)
    movaps %xmm5, 80(%rsp)
    movaps %xmm6, 96(%rsp)
    movaps %xmm7, 112(%rsp)
    movl %r11d, %edi
    call cuwarden_before_unknown
    movq %rax, %r11
    movaps (%rsp), %xmm0
    movaps 16(%rsp), %xmm1
    movaps 32(%rsp), %xmm2
    movaps 48(%rsp), %xmm3
    movaps 64(%rsp), %xmm4
    movaps 80(%rsp), %xmm5
    movaps 96(%rsp), %xmm6
    movaps 112(%rsp), %xmm7
    addq $136, %rsp
    .cfi_adjust_cfa_offset -136
    popq %rax
    .cfi_adjust_cfa_offset -8
    popq %r10
    .cfi_adjust_cfa_offset -8
    popq %r9
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmpq *%r11
    .cfi_endproc
    .size cuwarden_unknown_entry, .-cuwarden_unknown_entry

    .section .note.GNU-stack, "", @progbits

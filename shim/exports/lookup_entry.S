# dlsym, dlvsym, dlopen and dlmopen as the program sees them.
#
# The real functions find the calling library by their return address: RTLD_NEXT, RTLD_DEFAULT, RUNPATH
# and namespaces depend on it. So an entry jumps to the real function, with the caller's return address
# still on the stack. Before, it calls a C++ function of lookup.cpp. That function returns in rax the
# address to jump to, or null. If rax is null, rdx has the result for the caller. Otherwise rdx has the new
# second argument of dlopen, and no meaning for the other functions.

    .text

    .macro ENTRY name
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    .endm

    .macro SAVE_ARGUMENTS
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    .endm

    .macro RESTORE_ARGUMENTS
    popq %rcx                       # the third argument; rdx holds the answer
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    .endm

# void* dlsym(void* handle, const char* name)
ENTRY dlsym
    SAVE_ARGUMENTS
    movq 24(%rsp), %rdx             # return address of the caller
    call cuwarden_before_dlsym
    RESTORE_ARGUMENTS
    testq %rax, %rax
    jz 1f
    jmpq *%rax
1:  movq %rdx, %rax
    ret
    .cfi_endproc
    .size dlsym, .-dlsym

# void* dlvsym(void* handle, const char* name, const char* version)
ENTRY dlvsym
    SAVE_ARGUMENTS
    movq 24(%rsp), %rcx
    call cuwarden_before_dlvsym
    RESTORE_ARGUMENTS
    testq %rax, %rax
    jz 1f
    movq %rcx, %rdx
    jmpq *%rax
1:  movq %rdx, %rax
    ret
    .cfi_endproc
    .size dlvsym, .-dlvsym

# void* dlopen(const char* file, int mode)
ENTRY dlopen
    SAVE_ARGUMENTS
    call cuwarden_before_dlopen
    RESTORE_ARGUMENTS
    movl %edx, %esi
    jmpq *%rax
    .cfi_endproc
    .size dlopen, .-dlopen

# void* dlmopen(Lmid_t namespace, const char* file, int mode)
ENTRY dlmopen
    SAVE_ARGUMENTS
    call cuwarden_before_dlmopen
    RESTORE_ARGUMENTS
    movq %rcx, %rdx
    jmpq *%rax
    .cfi_endproc
    .size dlmopen, .-dlmopen

    .section .note.GNU-stack, "", @progbits

# prctl and syscall as the program sees them, and as the shim itself calls them.
#
# Both take as many arguments as their first one says. A call is therefore passed on by a
# jump, with all registers and the caller's return address as they were. (A system call may even
# return twice: vfork, clone.) Calls that may install a seccomp filter take all their
# arguments to C++ instead.

#include <asm/unistd_64.h>

    .set PR_SET_SECCOMP, 22
    .set LAST_ERROR, -4095

    .text

    .macro ENTRY name
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    .endm

    .macro END name
    .cfi_endproc
    .size \name, .-\name
    .endm

# long syscall(long number, ...)
ENTRY syscall
    cmpq $__NR_seccomp, %rdi
    je cuwarden_syscall_that_may_confine
    cmpq $__NR_prctl, %rdi
    je cuwarden_syscall_that_may_confine
    jmpq *cuwarden_next_syscall(%rip)
END syscall

# int prctl(int option, ...)
ENTRY prctl
    cmpl $PR_SET_SECCOMP, %edi
    je cuwarden_prctl_that_confines
    jmpq *cuwarden_next_prctl(%rip)
END prctl

# Calls by the shim itself, which the linker's --wrap leads here, go straight to the kernel.
    .hidden __wrap_prctl
ENTRY __wrap_prctl
    movq %r8, %r9
    movq %rcx, %r8
    movq %rdx, %rcx
    movq %rsi, %rdx
    movslq %edi, %rsi
    movl $__NR_prctl, %edi
    jmp __wrap_syscall
END __wrap_prctl

    .hidden __wrap_syscall
ENTRY __wrap_syscall
    movq %rdi, %rax
    movq %rsi, %rdi
    movq %rdx, %rsi
    movq %rcx, %rdx
    movq %r8, %r10
    movq %r9, %r8
    movq 8(%rsp), %r9
    syscall
    cmpq $LAST_ERROR, %rax
    jae 1f
    ret
1:  negl %eax
    pushq %rax
    .cfi_adjust_cfa_offset 8
    call __errno_location@PLT
    popq %rcx
    .cfi_adjust_cfa_offset -8
    movl %ecx, (%rax)
    movq $-1, %rax
    ret
END __wrap_syscall

# The next definitions. The loader's own start-up code may call before the shim's constructor.
    .section .data, "aw", @progbits
    .p2align 3
    .hidden cuwarden_next_syscall
    .globl cuwarden_next_syscall
cuwarden_next_syscall:
    .quad __wrap_syscall
    .hidden cuwarden_next_prctl
    .globl cuwarden_next_prctl
cuwarden_next_prctl:
    .quad __wrap_prctl

    .section .note.GNU-stack, "", @progbits

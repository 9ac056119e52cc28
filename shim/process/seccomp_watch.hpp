// Notices the seccomp filters that the program installs on itself, by hooks of prctl and syscall. A
// filter may end the process for a system call that the program never makes, so cuwarden must know
// which threads are confined: have a filter that forbids a system call of cuwarden's.
//
// The hooks look only at a call that installs a filter, and pass all calls on. They read the filter
// before it is installed, while every system call is still allowed. A filter that allows all of
// cuwarden's system calls confines no thread. If another filter comes before the first CUDA call of
// a program that has loaded CUDA, recording begins before the filter is installed.
#pragma once

namespace cuwarden::shim {

// Makes the hooks of prctl and syscall pass calls on to the functions that the program would reach
// without the shim; before, they call the kernel. Marks the calling thread as not confined by a
// seccomp filter. To be called by the shim's constructor, in the process's first thread.
void begin_noticing_filters() noexcept;

// Marks the calling thread as one that may make all system calls of cuwarden's, even if it has a
// seccomp filter already: filters that were installed before recording began, such as a
// container's, do not count. With such a filter, prctl(PR_GET_SECCOMP) cannot show later filters,
// so that question is not asked. Also finds out if such a filter makes is_readable() fail
// (cuwarden::detail::probing_fails). To be called when recording begins.
void confinement_at_start() noexcept;
// Forgets, in a forked child, all seccomp filters of the parent that confined threads;
// is_confined() is false afterwards. To be called by a thread of the child that no filter confines:
// threads that it makes inherit none.
void confinement_in_fork() noexcept;

// True if a seccomp filter of the program may forbid the calling thread a system call of
// cuwarden's. Unlike is_confined() (runtime_hooks/core/confinement.hpp), also finds filters that
// the program installed without libc's prctl or syscall; that takes one system call,
// prctl(PR_GET_SECCOMP). Such filters are not found if another filter was there when recording
// began, or came later and confines no thread. Once one is found, is_confined() asks the kernel,
// too. To be used before longer work, such as writing a report.
bool is_confined_unnoticed() noexcept;

// True if a seccomp filter of the program confines threads, and every such filter allows the system
// calls getpid and kill. False also once is_confined_unnoticed() has found a filter, whose rules
// are not known.
bool may_confined_ask_process() noexcept;

}  // namespace cuwarden::shim

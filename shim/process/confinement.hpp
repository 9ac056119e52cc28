// Notices the seccomp filters that the program installs on itself. prctl and syscall are wrapped
// for that: each call is a jump to the next definition, and only a call that installs a filter is
// looked at. It is the one moment at which everything is still allowed; afterwards even asking the
// kernel for the state of the thread may end the process. The filter is read then: one that allows
// all that cuwarden asks for changes nothing. Where another one comes before the first CUDA call,
// recording begins ahead of it.
#pragma once

namespace cuwarden::shim {

// Begins to watch prctl and syscall for seccomp filters; to be called by the shim's constructor, in
// the process's first thread. From then on the hooks of prctl and syscall call the next
// definitions; before, they call the kernel.
void begin_noticing_filters() noexcept;

// Stores whether the calling thread has a seccomp filter; to be called when recording begins.
// Filters from before that moment do not count.
void confinement_at_start() noexcept;
// To be called in a forked child by a thread that is not confined: its other threads are its own.
void confinement_in_fork() noexcept;

// As is_confined(), but finds filters, too, that the program installed without libc. Makes one
// system call, prctl(PR_GET_SECCOMP); a filter that allows the opening of files hardly refuses it.
// To be used before longer work, such as a report.
bool is_confined_unnoticed() noexcept;

// True if confined threads may ask for the process's number, by all filters that were noticed.
bool may_confined_ask_process() noexcept;

}  // namespace cuwarden::shim

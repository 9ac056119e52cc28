// Notices the seccomp filters that the program installs on itself. prctl and syscall are wrapped
// for that: each call is a jump to the next definition, and only a call that installs a filter is
// looked at. It is the one moment at which everything is still allowed; afterwards even asking the
// kernel for the state of the thread may end the process.
#pragma once

namespace cuwarden::shim {

// To be called by the constructor, in the process's first thread: calls of prctl and syscall go to
// the next definitions from here on. Before, they go to the kernel.
void begin_noticing_filters() noexcept;

// To be called when recording begins: the calling thread's state is the one to compare with.
void confinement_at_start() noexcept;

// As is_confined(), and also true where the calling thread got a filter unnoticed, by an
// instruction of the program's own. Then one system call asks for it: prctl(PR_GET_SECCOMP), which
// a filter that allows the opening of files hardly refuses. For moments at which much else would
// follow.
bool is_confined_unnoticed() noexcept;

}  // namespace cuwarden::shim

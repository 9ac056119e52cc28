// The shim's answers to questions of runtime_hooks about this process, and the reclaimers
// (callbacks that empty a cache) that the program has registered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime_hooks/core/host_process.hpp"
#include "runtime_hooks/rescue/rungs/reclaimers.hpp"

namespace cuwarden::shim {

// Answers questions of other parts of cuwarden about the process that the shim is loaded into, and
// starts threads there. Any thread may call the functions.
class ThisProcess final : public HostProcess {
 public:
  // True if MPI, UCX or NVSHMEM is loaded: such libraries give device memory to other processes.
  bool shares_memory() noexcept override;
  // True if a library is loaded that may reach device memory without a call of the driver: MPI,
  // UCX, NVSHMEM, or a library that drives network cards, disks, video engines or ray tracing.
  bool reaches_memory() noexcept override;
  // True if a loaded object is linked with functions of libcuda that have no row in hooks.def or
  // known_functions.def. Then also notes a call of such a function (driver::note_unknown_call()),
  // so that cuwarden moves no memory any more.
  bool may_call_unknown() noexcept override;
  // True if the calling thread holds the lock of this name. The only known name is "python:gil",
  // the lock of the Python interpreter; for other names, and without Python in the process, returns
  // false.
  bool holds_lock(std::string_view name) noexcept override;
  // Looks for a Python interpreter among the objects that were loaded before the program ran.
  // Stores what it exports in the parameter, and returns true. Returns false if there is none.
  bool find_python(PythonSymbols&) noexcept override;
  // Warns in the log that call stacks have no Python frames, because this build of Python cannot be
  // read. `version`: 0x030e for 3.14; 0: before 3.9.
  void python_not_read(std::uint32_t version) noexcept override;
  // Returns the bytes of host memory that the process could still get: the available RAM, or what
  // the limit of its cgroup leaves, whichever is less. UINT64_MAX if neither can be read.
  std::uint64_t host_memory_left() noexcept override;
  // Starts a detached thread that calls work(argument) with the program's signals blocked, and
  // returns true. Returns false if no thread could be started. `argument` must stay valid as long
  // as `work` uses it. Keeps errno.
  bool start_thread(void* (*work)(void*), void* argument) noexcept override;
};
// The object that answers questions about the process that the shim is loaded into.
extern constinit ThisProcess this_process;

// Returns the names of the loaded libraries that may reach device memory without a call of the
// driver, such as "libmpi.so.40, libcufile.so.0"; cut after 512 characters. Empty if none is
// loaded. May throw std::bad_alloc.
std::string libraries_that_reach_memory();

// The reclaimers that the program has registered by cuwarden.h: callbacks that give back cached
// memory. The program may register them before its first CUDA call, when recording has not begun.
extern constinit rescue::Reclaimers reclaimers;

}  // namespace cuwarden::shim

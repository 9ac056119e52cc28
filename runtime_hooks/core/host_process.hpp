// The process that cuwarden is loaded into, as far as only the shim can ask it or act in it.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/python_symbols.hpp"

namespace cuwarden {

// Questions about the process that cuwarden is loaded into, and actions in it. The shim implements
// the interface. Several threads may call the functions at once.
class HostProcess {
 public:
  // Returns true if a library is loaded that cuwarden knows to share device memory with other
  // processes by the CUDA driver's IPC handles. The driver makes no IPC handles for memory of
  // cuwarden's pool.
  virtual bool shares_memory() noexcept = 0;
  // Returns true if a library is loaded that lets other hardware (network cards, disks, video
  // engines) access device memory without a call of the CUDA driver. Device memory must not be
  // moved then. Only libraries that cuwarden knows count.
  virtual bool reaches_memory() noexcept = 0;
  // Returns true if a loaded object is linked with functions of the CUDA driver that cuwarden does
  // not know. Their calls cannot be noticed, so device memory must not be moved then.
  virtual bool may_call_unknown() noexcept = 0;
  // Returns true if the calling thread holds the program's lock `name`. The only known name is
  // "python:gil" (Python's global interpreter lock); for other names, returns false.
  virtual bool holds_lock(std::string_view name) noexcept = 0;
  // Looks for a Python interpreter among the files that were loaded when the program started, which
  // are never unloaded. Stores the addresses that the interpreter exports in the parameter, and
  // returns true. Returns false if there is no interpreter; the parameter's values then mean
  // nothing.
  virtual bool find_python(PythonSymbols&) noexcept = 0;
  // Tells the user that stacks have no Python frames, because this build of Python cannot be read.
  // `version`: 0x030e for 3.14; 0: before 3.9.
  virtual void python_not_read(std::uint32_t version) noexcept = 0;
  // Returns the bytes of host memory that the process could still get: the available RAM, or what
  // the limit of its cgroup leaves, whichever is less. UINT64_MAX if neither is known.
  virtual std::uint64_t host_memory_left() noexcept = 0;
  // Starts a detached thread that calls work(argument) once and ignores its result. The thread
  // blocks the program's signals. Returns false if the thread cannot be started.
  virtual bool start_thread(void* (*work)(void*), void* argument) noexcept = 0;

 protected:
  ~HostProcess() = default;
};

}  // namespace cuwarden

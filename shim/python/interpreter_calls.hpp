// Has the program's own Python interpreter run cuwarden's Python modules (tools/python, whose texts
// are a part of the shim), in order to ask frameworks for their figures. The program's environment,
// its sys.path and its start-up stay as they are.
#pragma once

#include <atomic>

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::shim {

// Has the program's Python interpreter call cuwarden's Python modules. Each call is queued: the
// interpreter makes it later in its main thread, between two instructions of the program, and so
// never inside a call of CUDA. All threads may call the functions at any time.
class InterpreterCalls {
 public:
  // Makes later calls of ask() queue calls in the interpreter; before, ask() does nothing.
  void turn_on() noexcept { is_on_.store(true, std::memory_order_relaxed); }
  // Queues one call of cuwarden's Python modules, unless one is queued already. The call imports
  // the modules if they are not imported yet, and registers the reclaimers of frameworks. If it is
  // made within a second, it also stores the frameworks' figures with the incident (a refused
  // request) of this number; 0: stores none. A later incident takes the queued call over. Queues
  // nothing if no interpreter runs in the process, if its queue is full, or if a seccomp filter
  // confines the calling thread.
  void ask(IncidentId) noexcept;

 private:
  // True once turn_on() was called; until then, ask() does nothing.
  std::atomic<bool> is_on_{false};
};

// The only object of its class: queues calls in the Python interpreter of the process.
extern constinit InterpreterCalls interpreter_calls;

}  // namespace cuwarden::shim

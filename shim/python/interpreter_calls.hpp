// Has the program's own Python interpreter run cuwarden's Python modules (tools/python, whose texts
// are a part of the shim), in order to ask frameworks for their figures. The program's environment,
// its sys.path and its start-up stay as they are.
#pragma once

#include <atomic>

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::shim {

// Queues calls of the modules in the program's interpreter, which makes them in its main thread and
// between two instructions of the program, never inside a call of CUDA. All threads may call the
// functions at any time.
class InterpreterCalls {
 public:
  // Turns the object on; before, ask() does nothing.
  void turn_on() noexcept { is_on_.store(true, std::memory_order_relaxed); }
  // Queues a call that imports the modules, unless the program has done so, and registers the
  // reclaimers of frameworks. The call also stores the figures of frameworks with the incident, a
  // refused request; with none if the number is 0. Does nothing if there is no interpreter that
  // runs, if its queue is full, or if a seccomp filter confines the process.
  void ask(IncidentId) noexcept;

 private:
  std::atomic<bool> is_on_{false};
};

// The calls in the process's interpreter.
extern constinit InterpreterCalls interpreter_calls;

}  // namespace cuwarden::shim

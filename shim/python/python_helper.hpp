// Brings cuwarden's Python modules (tools/python) into the program's own interpreter,
// and has it ask frameworks for their figures. The program's environment, its sys.path and its
// start-up stay as they are.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::shim {

// Asks the program's Python interpreter to run the module's functions: in the interpreter's main
// thread, between two instructions of the program, never inside a call of CUDA. All threads may
// call the functions at any time.
class PythonHelper {
 public:
  // Turns the object on; before, the other functions do nothing.
  void turn_on() noexcept { is_on_.store(true, std::memory_order_relaxed); }
  // Asks the interpreter, if there is one, to import the module unless the program has done so, and
  // to register the reclaimers of frameworks.
  void bring() noexcept { ask({}); }
  // Asks the interpreter, if there is one, to read the figures of frameworks and store them with
  // the incident, a refused request, or with none for 0.
  void ask(IncidentId) noexcept;

 private:
  std::atomic<bool> is_on_{false};
};

// The process's helper.
extern constinit PythonHelper python_helper;

}  // namespace cuwarden::shim

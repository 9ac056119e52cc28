// Call stacks with the Python frames of the calling thread in them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime_hooks/core/host_process.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/stacks/python/interpreter.hpp"
#include "runtime_hooks/stacks/python/known_chains.hpp"
#include "runtime_hooks/stacks/python/merging.hpp"

namespace cuwarden::tracking {

// Reads the Python frames of the process's interpreter, if it has one, and remembers the groups of
// stacks with such frames. Several threads may call the functions at once.
class PythonStacks {
 public:
  // Looks for an interpreter. `process` finds it, and tells the user if its frames cannot be read;
  // null: no Python frames are read. `ledger` gets the Python functions. Both outlive the object.
  PythonStacks(ledger::Writer& ledger, HostProcess* process) noexcept;
  PythonStacks(const PythonStacks&) = delete;
  PythonStacks& operator=(const PythonStacks&) = delete;

  // Returns the address of the calling thread's state in the interpreter; 0 if it has none, or if
  // there is no interpreter that can be read.
  std::uint64_t state_of_thread() const noexcept {
    return python_ ? python_->state_of_thread() : 0;
  }
  // Fills the chain with the calling thread's Python frames. `state` is the result of
  // state_of_thread(), not 0. Returns false if there are none.
  bool read(std::uint64_t state, stacks::python::FrameChain& chain) noexcept;
  // Merges a native stack with the Python frames that read() has given: see
  // stacks::python::merge(). Stores the functions of the Python frames in the ledger.
  stacks::python::Merged merge(const stacks::python::NativeStack&,
                               const stacks::python::FrameChain&,
                               std::span<std::uint64_t> frames) noexcept;

  stacks::python::KnownChains known;  // groups of stacks that came before

 private:
  ledger::Writer& ledger_;
  HostProcess* const process_;
  std::optional<stacks::python::Interpreter> python_;  // the interpreter; empty: there is none
  // True once the user was told that Python frames cannot be read.
  std::atomic<bool> was_told_{false};
};

}  // namespace cuwarden::tracking

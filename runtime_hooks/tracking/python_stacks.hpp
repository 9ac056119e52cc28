// Call stacks with the Python frames of the calling thread in them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime_hooks/core/host_process.hpp"
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
  // null: there is none. `ledger` gets the Python functions. Both outlive the object.
  // `reads_frames`: false if no Python frames are to be read.
  PythonStacks(ledger::Writer& ledger, HostProcess* process, bool reads_frames) noexcept;
  PythonStacks(const PythonStacks&) = delete;
  PythonStacks& operator=(const PythonStacks&) = delete;

  // Returns the address of the calling thread's state in the interpreter; 0 if it has none, or if
  // there is no interpreter that can be read.
  std::uint64_t state_of_thread() const noexcept {
    return python_ ? python_->state_of_thread() : 0;
  }
  // True if the interpreter ends, and frees the objects that are left, or has ended. An earlier
  // call must have met it running.
  bool interpreter_has_ended() noexcept {
    if (is_initialized_ == nullptr) return false;
    if (is_initialized_() == 0) return was_running_.load(std::memory_order_relaxed);
    was_running_.store(true, std::memory_order_relaxed);
    return false;
  }
  // Makes interpreter_has_ended() false until it meets a running interpreter again.
  void forget_interpreters_end() noexcept { was_running_.store(false, std::memory_order_relaxed); }
  // Tells if the calling thread runs the frames of its state: a thread may have handed the state to
  // another one.
  enum class Runs : std::uint8_t {
    no,       // it does not
    yes,      // it does
    unknown,  // is_inside() tells, once the native stack was walked
  };
  // Tells if the calling thread runs the frames of `state`, the result of state_of_thread(), not 0.
  // `native`: the native stack's name; 0: it is not known. With CFrames, it is not used.
  // `generation`: as in KnownChains.
  Runs runs(std::uint64_t state, std::uint32_t native, std::uint32_t generation) const noexcept;
  // True if the calling thread is inside the interpreter, as far as its native frames tell. Always
  // true with CFrames, since runs() has told already. Only if state_of_thread() is not 0.
  bool is_inside(std::span<const std::uint64_t> native) const noexcept {
    return python_->layout().has_cframes() || python_->has_evaluation(native);
  }
  // Notes for runs() if the native stack with this name, not 0, has Python frames to be read. Does
  // nothing for versions with CFrames.
  void note(std::uint32_t native, std::uint32_t generation, bool is_inside) noexcept;
  // Fills the chain with the calling thread's Python frames. `state` is the result of
  // state_of_thread(), not 0. The thread must run them. Returns false if there are none.
  bool read(std::uint64_t state, stacks::python::FrameChain& chain) noexcept;
  // True if read() would give these frames, which it has given before. `state` is the result of
  // state_of_thread(), not 0. The thread must run its frames. `frames` is not empty.
  bool has_frames(std::uint64_t state,
                  std::span<const stacks::python::PythonFrame> frames) const noexcept {
    return python_->has_frames(state, frames);
  }
  // The result of merge(): the number of frames, if outer frames are missing, and if the functions
  // of all Python frames could be stored. A frame whose function could not be stored has row 0.
  struct Stored {
    std::size_t count = 0;
    bool truncated = false;
    bool is_whole = true;
  };
  // Merges a native stack with the Python frames that read() has given: see
  // stacks::python::merge(). Stores the functions of the Python frames in the ledger.
  Stored merge(const stacks::python::NativeStack&, const stacks::python::FrameChain&,
               std::span<std::uint64_t> frames) noexcept;

  stacks::python::KnownChains known;  // groups of stacks that came before

 private:
  ledger::Writer& ledger_;
  HostProcess* const process_;
  std::optional<stacks::python::Interpreter> python_;  // the interpreter; empty: there is none
  // For versions without CFrames: native stacks, by their names, that is_inside() has told about.
  // An entry has the name, a bit for the answer, and 31 bits of the generation.
  static constexpr std::size_t most_noted = 1024;
  std::atomic<std::uint64_t> noted_[most_noted]{};
  int (*is_initialized_)() = nullptr;  // Py_IsInitialized, also of builds whose frames are not read
  std::atomic<bool> was_running_{false};  // true once interpreter_has_ended() met a running one
  // True once the user was told that Python frames cannot be read.
  std::atomic<bool> was_told_{false};
};

}  // namespace cuwarden::tracking

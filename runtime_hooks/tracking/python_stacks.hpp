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

  // Returns the address of the calling thread's state in the interpreter; 0 if it has none, or if
  // there is no interpreter that can be read.
  std::uint64_t state_of_thread() const noexcept {
    return python_ ? python_->state_of_thread() : 0;
  }
  // True if the interpreter has ended, or has begun to end and frees its remaining objects. False
  // if no call of this function has found the interpreter running before.
  bool interpreter_has_ended() noexcept {
    if (is_initialized_ == nullptr) return false;
    if (is_initialized_() == 0) return was_running_.load(std::memory_order_relaxed);
    was_running_.store(true, std::memory_order_relaxed);
    has_run_.store(true, std::memory_order_relaxed);
    return false;
  }
  // Makes interpreter_has_ended() return false, until a call of it finds the interpreter running
  // and a later one finds that it has ended.
  void forget_interpreters_end() noexcept { was_running_.store(false, std::memory_order_relaxed); }
  // True if an interpreter that ran at an earlier call of this function, of
  // interpreter_has_ended() or of read() does not run now. forget_interpreters_end() does not
  // change this.
  bool interpreter_is_gone() noexcept {
    if (is_initialized_ == nullptr) return false;
    if (is_initialized_() == 0) return has_run_.load(std::memory_order_relaxed);
    has_run_.store(true, std::memory_order_relaxed);
    return false;
  }
  // Result of runs(): tells if the calling thread runs the Python frames of its state in the
  // interpreter. The thread may have handed the state to another thread.
  enum class Runs : std::uint8_t {
    no,   // The thread does not run the Python frames of its state.
    yes,  // The thread runs the Python frames of its state.
    // The thread may or may not run the Python frames of its state. To find out, the caller walks
    // the native stack and passes it to is_inside().
    unknown,
  };
  // Returns whether the calling thread runs the frames of `state`, the result of state_of_thread(),
  // not 0. `native`: the native stack's name; 0: it is not known. Python 3.10 to 3.12 has CFrames,
  // by which the answer is found without `native`. `generation`: as in KnownChains.
  Runs runs(std::uint64_t state, std::uint32_t native, std::uint32_t generation) const noexcept;
  // True if the calling thread is inside the interpreter, as its native frames show. `native`: for
  // each native frame, an address inside its call instruction. With Python 3.10 to 3.12 the result
  // is true and says nothing; runs() gives the answer there. To be called only if state_of_thread()
  // is not 0.
  bool is_inside(std::span<const std::uint64_t> native) const noexcept {
    return python_->layout().has_cframes() || python_->has_evaluation(native);
  }
  // Stores the result of is_inside() for the native stack with this name, not 0, so that runs()
  // finds it later. Does nothing for Python 3.10 to 3.12, which has CFrames. `generation`: as in
  // KnownChains.
  void note(std::uint32_t native, std::uint32_t generation, bool is_inside) noexcept;
  // Fills the chain with the calling thread's Python frames. `state` is the result of
  // state_of_thread(), not 0. The thread must run the frames of this state (runs()). Returns false
  // if there are none, or if they cannot be read. In the second case, the user is told once.
  bool read(std::uint64_t state, stacks::python::FrameChain& chain) noexcept;
  // True if the calling thread has exactly the Python frames in `frames`, which read() has given
  // before and which are not empty. `state` is the result of state_of_thread(), not 0. The thread
  // must run the frames of this state (runs()).
  bool has_frames(std::uint64_t state,
                  std::span<const stacks::python::PythonFrame> frames) const noexcept {
    return python_->has_frames(state, frames);
  }
  // The result of merge(). `count`: number of frames. `truncated`: true if outer frames are
  // missing. `is_whole`: false if the function of a Python frame could not be stored in the ledger;
  // such a frame has row 0.
  struct Stored {
    std::size_t count = 0;
    bool truncated = false;
    bool is_whole = true;
  };
  // Merges a native stack with the Python frames that read() has given, and writes the result to
  // `frames`: see stacks::python::merge(). Stores the functions of the Python frames in the ledger.
  Stored merge(const stacks::python::NativeStack&, const stacks::python::FrameChain&,
               std::span<std::uint64_t> frames) noexcept;

  stacks::python::KnownChains known;  // groups of stacks with Python frames, by their frames

 private:
  ledger::Writer& ledger_;
  HostProcess* const process_;
  // The process's Python interpreter. Empty: there is none, or its frames are not read.
  std::optional<stacks::python::Interpreter> python_;
  // `noted_` has the results that note() has stored, for versions of Python without CFrames. An
  // entry has the native stack's name, a bit for the result, and 31 bits of the generation; 0:
  // unused. The name chooses the entry. `most_noted`: number of entries.
  static constexpr std::size_t most_noted = 1024;
  std::atomic<std::uint64_t> noted_[most_noted]{};
  // Py_IsInitialized of the process's interpreter, also if its frames are not read. Null: there is
  // no interpreter.
  int (*is_initialized_)() = nullptr;
  // True once interpreter_has_ended() has found the interpreter running. False again after
  // forget_interpreters_end().
  std::atomic<bool> was_running_{false};
  // True once interpreter_has_ended(), interpreter_is_gone() or read() has found the interpreter
  // running.
  std::atomic<bool> has_run_{false};
  // True once the user was told that Python frames cannot be read.
  std::atomic<bool> was_told_{false};
};

}  // namespace cuwarden::tracking

// Reads the Python frames of the calling thread, without the interpreter's lock and without a call
// of Python code. The frames that a thread runs change only by the thread itself, so that they stay
// as they are while it is inside a call of CUDA. A thread may also have handed its state to another
// one, which runs frames on it. So the caller makes sure that the thread is inside the interpreter.
//
// When an interpreter's frames are read for the first time, each address is checked to be readable,
// and each field to be plausible. If one check fails, the interpreter's structures are not those of
// its version, and no Python frames are read any more. Later frames are read directly.
//
// An interpreter that ends frees the frames of threads that still run. It says so before, some
// microseconds or more, and is asked right before each reading, which takes a hundredth of that
// time. A thread that loses its processor between the question and the reading is in danger.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime_hooks/core/python_symbols.hpp"
#include "runtime_hooks/stacks/python/code_object.hpp"
#include "runtime_hooks/stacks/python/frame_chain.hpp"
#include "runtime_hooks/stacks/python/layout.hpp"

namespace cuwarden::stacks::python {

// Reads Python frames and code objects of one interpreter (libpython, or a program that contains
// it). All functions may be called by several threads at once, and take no lock.
class Interpreter {
 public:
  // `symbols` are those of a loaded file that stays loaded; `layout` is layout_of(symbols).
  Interpreter(const PythonSymbols& symbols, const Layout& layout) noexcept;

  // Returns the address of the calling thread's state in the interpreter. Returns 0 if the thread
  // has none or another thread's, the interpreter is being initialised or has begun to end, or
  // is_implausible() is true. Returns 0, too, if a seccomp filter forbids to check the state.
  std::uint64_t state_of_thread() const noexcept {
    if (is_implausible() || symbols_.is_initialized() == 0) return 0;
    const auto state = reinterpret_cast<std::uint64_t>(symbols_.thread_state());
    return state != 0 && (state == own_state_ || is_of_this_thread(state)) ? state : 0;
  }
  // True if the thread state's innermost CFrame lies at an address from `low` (inclusive) to `high`
  // (exclusive). Python keeps a CFrame on the C stack of the function that runs the innermost
  // Python frames. So if `low` and `high` bound the calling thread's stack, true means that the
  // calling thread runs these frames. Must be called only if layout().has_cframes() is true.
  // `state`: the result of state_of_thread(), not 0.
  bool is_run_between(std::uint64_t state, std::uint64_t low, std::uint64_t high) const noexcept;
  // True if one of the addresses lies in _PyEval_EvalFrameDefault, the function that runs Python
  // code. `frames`: for each native frame, an address inside its call instruction.
  bool has_evaluation(std::span<const std::uint64_t> frames) const noexcept;
  // Fills the chain with the calling thread's Python frames, innermost first. The thread must be
  // inside the interpreter: is_run_between() or has_evaluation() is true. `state` is the result of
  // state_of_thread(), not 0. Returns false, with the chain empty, if the thread has no Python
  // frame or the interpreter has begun to end. Returns false with an empty chain, too, if
  // is_implausible() is true after the call, or if a seccomp filter forbids the check of the first
  // frames.
  bool read(std::uint64_t state, FrameChain&) noexcept;
  // True if the calling thread has exactly the Python frames `known`; faster than read(). `known`:
  // the frames of a chain that read() gave earlier, innermost first, not empty. Groups of frames
  // are not compared. The thread must be inside the interpreter, as for read(). `state`: a result
  // that state_of_thread() has returned right before, not 0. False until a read() has found the
  // interpreter plausible.
  bool has_frames(std::uint64_t state, std::span<const PythonFrame> known) const noexcept {
    return trust_.load(std::memory_order_relaxed) == Trust::full &&
           symbols_.is_initialized() != 0 && walks_.equals(state, known);
  }
  // Returns the number of the instruction in the bytecode that a frame has reached. Instructions
  // and the entries of their caches have two bytes each, and all count. 0 also for a frame that has
  // not begun.
  std::uint64_t instruction_of(const PythonFrame&) const noexcept;
  // Reads the code object at the address `code`, a PythonFrame::code. read() has given that frame
  // for the calling thread, and the frame still runs. Returns false, with `contents` unchanged, if
  // a part of the object cannot be read or is implausible.
  bool read_code(std::uint64_t code, CodeContents& contents) const noexcept {
    return read_contents(code, symbols_, layout_, contents);
  }

  // True once read() has found that the interpreter's structures are not those of its version. No
  // frames are read from then on.
  bool is_implausible() const noexcept {
    return trust_.load(std::memory_order_relaxed) == Trust::none;
  }
  // Returns the symbols, and the positions of fields, that were given to the constructor.
  const PythonSymbols& symbols() const noexcept { return symbols_; }
  const Layout& layout() const noexcept { return layout_; }

  // Functions that walk the Python frames of the thread whose state is at the address `state`, for
  // one layout. `fill` adds the frames to an empty chain. `equals` returns true if they are the
  // frames in `known`.
  struct Walks {
    void (*fill)(std::uint64_t state, FrameChain&) noexcept;
    bool (*equals)(std::uint64_t state, std::span<const PythonFrame> known) noexcept;
  };

 private:
  // Result of the check if the interpreter's fields are where the layout says.
  enum class Trust : std::uint8_t {
    unknown,  // No frame of the interpreter was checked yet.
    full,     // All fields are where the layout says. Frames are read without checks.
    none,     // Some field is elsewhere. No frames are read any more.
  };

  bool is_of_this_thread(std::uint64_t state) const noexcept;
  std::optional<std::uint64_t> checked_frame(std::uint64_t state) const noexcept;
  bool is_plausible(std::uint64_t state, std::uint64_t frame) const noexcept;

  const PythonSymbols symbols_;
  const Layout& layout_;
  const Walks walks_;
  std::atomic<Trust> trust_{Trust::unknown};

  // Address of the state that is_of_this_thread() last found to be the calling thread's; 0: none.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local std::uint64_t own_state_;
};

}  // namespace cuwarden::stacks::python

// Steps of the program that no ledger knows yet.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/ledger/format/step_layout.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

// Counts the steps that the program marks before its first CUDA call, and keeps the name of the
// last step with a name. A forked child goes on in the parent's named step (such as a test), which
// is its first step. All threads may call the functions at any time. No function waits for long: a
// thread that finds another one at work for some milliseconds does nothing. `self`: id of the
// process.
class StepsUnderWay {
 public:
  // Notes a step that begins now. `name`: its name; empty: none, and that of an earlier step stays.
  // `is_recorded`: true if a ledger counts the step.
  void begin(pid_t self, std::string_view name, bool is_recorded) noexcept;
  // Notes that the last named step has ended.
  void end_name(pid_t self) noexcept;
  // Adds the steps that no ledger counts to this one.
  void hand_over(pid_t self, ledger::Writer&) noexcept;

 private:
  class Held;
  // Begins anew in a forked child.
  void adopt(pid_t self) noexcept;

  // Id of the process whose thread reads or writes the members below; 0: none. The id of a parent
  // means none, too.
  std::atomic<pid_t> holder_{0};
  pid_t owner_ = 0;              // process that the members below belong to
  std::uint64_t count_ = 0;      // number of steps that no ledger counts
  std::uint64_t last_ns_ = 0;    // start of the last of them (tick_ns()); 0: start of the process
  std::size_t name_length_ = 0;  // length of the name in bytes; 0: none
  char name_[ledger::longest_step_name] = {};  // name of the step, without a terminating zero
};
// The object of the process.
extern constinit StepsUnderWay steps_under_way;

}  // namespace cuwarden::shim

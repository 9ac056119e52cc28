// Steps that the program marks before recording has begun.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/ledger/format/step_layout.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

// Counts the steps that the program marks before recording begins at its first CUDA call, and
// stores the latest name of a step. A forked child goes on in the parent's named step (such as a
// test), which counts as the child's first step. All threads may call the functions at any time. A
// function waits some milliseconds at most for another thread. If it waits in vain, a step that is
// not recorded is not counted.
//
// Parameters of the functions: `self` is the pid of the calling process. `ledger` returns the
// ledger if the process records, else null. It is called while no other thread is in a function of
// the object, so that each step is counted either here or in the ledger.
class StepsUnderWay {
 public:
  using FindLedger = FunctionRef<ledger::Writer*()>;  // type of the parameters `ledger`

  // Stores the name of a step that begins now, and has the ledger record the step. Without a
  // ledger, counts the step here. `name`: the step's name; empty: it has none, and the stored name
  // stays.
  void begin(pid_t self, std::string_view name, FindLedger ledger) noexcept;
  // Forgets the latest name of a step, because that step has ended, and has the ledger record its
  // end.
  void end_name(pid_t self, FindLedger ledger) noexcept;
  // Adds the steps that were counted here to the ledger, with the latest name. The count is then 0
  // until begin() counts another step, as in a forked child. Then calls `publish`, from which on
  // the parameters `ledger` of the other functions return the ledger.
  void hand_over(pid_t self, ledger::Writer&, FunctionRef<void()> publish) noexcept;

 private:
  class Held;
  // Forgets the parent's steps in a forked child, except a named step that is under way: it stays
  // counted. `self`: pid of the calling process. The caller has the lock `holder_`.
  void adopt(pid_t self) noexcept;

  // Lock that guards all other members: pid of the process whose thread has the lock; 0: the lock
  // is free. In a forked child, the parent's pid means free, too.
  std::atomic<pid_t> holder_{0};
  pid_t owner_ = 0;          // pid of the process whose steps are counted here; 0: none yet
  std::uint64_t count_ = 0;  // number of steps that were counted here and are in no ledger yet
  // Start of the step that was counted last, as a time of tick_ns(); 0: it began with the process.
  std::uint64_t last_ns_ = 0;
  std::size_t name_length_ = 0;  // length of the stored name in bytes; 0: none
  // The latest name of a step, without a zero byte at its end.
  char name_[ledger::longest_step_name] = {};
};
// The process's steps from before recording has begun.
extern constinit StepsUnderWay steps_under_way;

}  // namespace cuwarden::shim

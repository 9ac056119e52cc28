// A scope in which cuwarden moves no memory behind unchanged addresses, for hooked calls that are
// recorded. It passes the submission gate (submission_gate.hpp).
#pragma once

#include "runtime_hooks/driver/calling_threads.hpp"
#include "runtime_hooks/driver/submission_gate.hpp"

namespace cuwarden::driver {

// Passes the submission gate, which cuwarden closes while it moves memory, for the length of a
// scope. The constructor waits while another thread has the gate closed. A thread that wants to
// close the gate waits for the scope's end. A scope inside another scope or submission of the
// thread does not wait. Does nothing before SubmissionGate::arm() was called, or if the thread has
// no counters. For hooks in which a DriverCall already counts the thread as inside the driver; the
// class Submission passes the gate and counts the thread as well.
class GateScope {
 public:
  // Passes the submission gate: waits while another thread has it closed to move memory.
  GateScope() : thread_(submission_gate.is_armed() ? calling_threads.own() : nullptr) {
    if (thread_ != nullptr) submission_gate.enter(*thread_);
  }
  ~GateScope() {
    if (thread_ != nullptr) SubmissionGate::leave(*thread_);
  }
  GateScope(const GateScope&) = delete;
  GateScope& operator=(const GateScope&) = delete;

 private:
  // The calling thread's counters; null if this scope does nothing at the gate.
  CallingThreads::Thread* const thread_;
};

}  // namespace cuwarden::driver

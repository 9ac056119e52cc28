// A scope in which cuwarden moves no memory behind unchanged addresses, for hooked calls that are
// recorded. It passes the submission gate (submission_gate.hpp).
#pragma once

#include "runtime_hooks/driver/calling_threads.hpp"
#include "runtime_hooks/driver/submission_gate.hpp"

namespace cuwarden::driver {

// Passes the submission gate for the length of a scope: waits while another thread has closed the
// gate to move memory. While the scope lasts, a thread that closes the gate waits for the scope's
// end. Does not wait inside another scope or submission of the thread. Does nothing before
// SubmissionGate::arm() was called, or if the thread has no counters. For hooks in which a
// DriverCall already counts the thread as inside the driver. The class Submission both passes the
// gate and counts the thread.
class GateScope {
 public:
  // Passes the gate: waits while another thread has closed it to move memory.
  GateScope() noexcept : thread_(submission_gate.is_armed() ? calling_threads.own() : nullptr) {
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

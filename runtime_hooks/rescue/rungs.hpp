// What is tried, in this order, before a request that the driver refused is refused to the program.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/ledger/layout.hpp"
#include "runtime_hooks/rescue/pending_frees.hpp"

namespace cuwarden::rescue {

using ledger::Rung;
using ledger::RungOutcome;

// A request that the driver refused, and what may be done about it. Lives on the caller's stack.
// Its functions call the driver: a thread that is cancelled there leaves through them.
struct Attempt {
  const driver::RealDriver& real;
  PendingFrees& pending;
  ContextId context;                // current
  bool on_device = true;            // else host memory: nothing on the device is in its way
  FunctionRef<CUresult()> request;  // the program's own, once more
  FunctionRef<bool()> trim;         // pools give back what they keep; false: they keep nothing
};

// Each asks again where it changed something; `served` says that it was then granted. With any
// other answer than that memory lacks it is over: the program gets the first one, and meets the
// other in its next call.
RungOutcome retry(const Attempt&);
// Waits until the device has come to frees that pend, at most until `deadline_ns`.
RungOutcome synchronise(const Attempt&, std::uint64_t deadline_ns);
RungOutcome trim(const Attempt&);
// Asks now and then, for others may leave.
RungOutcome wait(const Attempt&, std::uint64_t deadline_ns);

// CLOCK_MONOTONIC. And a sleep that is no cancellation point and leaves errno alone; a signal ends
// it early.
std::uint64_t now_ns() noexcept;
void sleep_ns(std::uint64_t) noexcept;

}  // namespace cuwarden::rescue

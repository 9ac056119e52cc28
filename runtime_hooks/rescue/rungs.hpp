// What is tried, in this order, before a request that the driver refused is refused to the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/ledger/layout.hpp"
#include "runtime_hooks/rescue/pending_frees.hpp"
#include "runtime_hooks/rescue/reclaimers.hpp"

namespace cuwarden::rescue {

using ledger::Rung;
using ledger::RungOutcome;

// A request that the driver refused, and what may be done about it. Lives on the caller's stack.
// Its functions call the driver: a thread that is cancelled there leaves through them.
struct Attempt {
  const driver::RealDriver& real;
  PendingFrees& pending;
  ContextId context;  // current
  int device = -1;    // its ordinal; -1: host memory, nothing on a device is in its way
  std::uint64_t bytes = 0;
  FunctionRef<CUresult()> request;  // the program's own, once more
  // Whether a context that is not current is alive, and what was freed there may be what lacks.
  FunctionRef<bool(ContextId)> may_enter;
  FunctionRef<bool()> trim;  // pools give back what they keep; false: they keep nothing
  // The pool gives back what it keeps; false: it keeps nothing; none: it must not now. Asked only
  // where there is one.
  FunctionRef<std::optional<bool>()> empty_pool;
  bool has_pool = false;
  // What the pool's blocks lie in comes to lie in fewer pages; served: some went back to the
  // device. Asked only where that is allowed.
  FunctionRef<RungOutcome()> mesh;
  bool can_mesh = false;
  // Whether whoever has one of these modules (a comma-separated list) on its stack asks: it may
  // hold a lock that the reclaimer of those wants. Or memory must not be given back at all.
  FunctionRef<bool(std::string_view modules)> is_unsafe_to_reclaim;
  // Whether the device could serve it, were it not for other processes.
  FunctionRef<bool()> may_others_help;
  // Serves the request with the host's memory, instead of the driver.
  FunctionRef<RungOutcome()> spill;
  // Whether a stream is being captured: the request itself might end that.
  FunctionRef<bool()> is_captured;
};

// Each asks again where it changed something; `served` says that it was then granted. With any
// other answer than that memory lacks it is over: the program gets the first one, and meets the
// other in its next call.
RungOutcome retry(const Attempt&);
// Waits until the device has come to frees that pend, at most until `deadline_ns`.
RungOutcome synchronise(const Attempt&, std::uint64_t deadline_ns);
RungOutcome trim(const Attempt&);
RungOutcome empty_pool(const Attempt&);
RungOutcome mesh(const Attempt&);
// Has the reclaimer at this place give back what it keeps, unless it takes longer than that.
RungOutcome reclaim(const Attempt&, Reclaimers&, std::size_t place, const Reclaimers::Entry& entry,
                    std::uint64_t deadline_ns, std::optional<Reclaimers::Trouble>& trouble);
// Asks now and then, for others may leave, and says each time that it goes on.
RungOutcome wait(const Attempt&, std::uint64_t deadline_ns, FunctionRef<void()> goes_on);

// What was waited for in vain is not waited for again for so many times as long.
inline constexpr std::uint64_t vain_times = 10;

}  // namespace cuwarden::rescue

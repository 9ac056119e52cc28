// Requests of live processes that were refused for lack of memory and still wait to be served, for
// `cuwarden top`.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/cuwarden/top/top_answer.hpp"

namespace cuwarden {

// A request for which a rung (one of cuwarden's attempts to serve it) is under way.
struct WaitingRequest {
  // Row in the ledger of the request's group (call stack, function, kind of memory and device).
  std::uint32_t group = 0;
  WaitingRow row;  // numbers of the request; `api` and `where` are null, and the caller sets them
};

// Returns the refused requests of the process that cuwarden still tries to serve, as the process's
// ledger has them. Empty if the process has ended. `now_ns`: present time of CLOCK_MONOTONIC, in
// nanoseconds.
std::vector<WaitingRequest> waiting_requests(const WatchedProcess&, std::uint64_t now_ns);

}  // namespace cuwarden

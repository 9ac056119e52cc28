// Requests of live processes that were refused for lack of memory and still wait to be served, for
// `cuwarden top`.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/cuwarden/top/top_answer.hpp"

namespace cuwarden {

// A request for which a rung (one of cuwarden's attempts to serve it) is under way.
struct WaitingRequest {
  // Row in the ledger of the group (call stack, function, kind and device) of the request.
  std::uint32_t group = 0;
  WaitingRow row;  // numbers of the request; `api` and `where` are null, and the caller sets them
};

// Reads from the process's ledger the refused requests for which a rung (an attempt of cuwarden's
// to serve them) is under way, by thread. None if the process has ended. `now_ns`: present time of
// CLOCK_MONOTONIC, in nanoseconds.
std::vector<WaitingRequest> waiting_requests(const WatchedProcess&, std::uint64_t now_ns);

}  // namespace cuwarden

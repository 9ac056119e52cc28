// Requests of live processes that were refused for lack of memory and still wait to be served, for
// `cuwarden top`.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/cuwarden/top/top_answer.hpp"

namespace cuwarden {

// A request for which a rung (one of cuwarden's attempts to serve it) is under way.
struct WaitingRequest {
  std::uint32_t group = 0;  // row of the request's group in the ledger: its call site
  WaitingRow row;           // `api` and `where` are null; the caller sets them
};

// Reads from the process's ledger the requests for which a rung is under way, by thread. None if
// the process has ended. `now_ns`: present time of CLOCK_MONOTONIC, in nanoseconds.
std::vector<WaitingRequest> waiting_requests(const WatchedProcess&, std::uint64_t now_ns);

}  // namespace cuwarden

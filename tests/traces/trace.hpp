// Recorded requests of programs for device memory: traces. tests/gpu/traces says how they are
// recorded, and describes the format.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace cuwarden::traces {

// The programs of which a trace (a file with recorded requests for memory) is kept: names of the
// files, without ".txt".
inline constexpr std::array programs{"adaptive_mesh", "cupy_ensemble", "cusparse_multigrid",
                                     "renderer", "torch_sequences"};

// A call that a program has made: a request for memory, or the free of an earlier one.
struct Call {
  // True for a request for memory, false for the free of an earlier one.
  bool is_request = false;
  std::uint64_t bytes = 0;  // size of the request; 0 for a free
  // Number of the request's call site, which is unique in the trace; 0 for a free.
  std::uint64_t site = 0;
  // Number of the request, or of the request whose memory is freed. The requests of a trace are
  // numbered from 0.
  std::size_t request = 0;
};

// Reads the trace in the file `name` (a path). Returns the program's requests and frees in their
// order. Returns no calls if the file cannot be read, or has a line that is not in the format.
inline std::vector<Call> read(const std::string& name) {
  std::ifstream file(name);
  std::vector<Call> calls;
  std::size_t requests = 0;
  for (std::string line; std::getline(file, line);) {
    char* end = nullptr;
    const bool is_request = line.starts_with('+');
    if (!is_request && !line.starts_with('-')) return {};
    const std::uint64_t number = std::strtoull(line.c_str() + 1, &end, 10);
    if (is_request)
      calls.push_back({true, number, std::strtoull(end, nullptr, 10), requests++});
    else if (number != 0 && number <= requests)
      calls.push_back({.request = requests - number});
    else
      return {};
  }
  return calls;
}

}  // namespace cuwarden::traces

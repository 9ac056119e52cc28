// A test program's own account of its allocations and frees, by kind, with which its report is
// compared. It is printed as one JSON object, the last line of the program's output. Not
// thread-safe.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace expected {

struct Totals {
  std::size_t allocations = 0, frees = 0, live_count = 0, live_bytes = 0;
  std::size_t peak_count = 0, peak_bytes = 0;
};

struct Leak {
  std::string api, kind, function;
  int line = 0;
  std::size_t count = 0, bytes = 0;
};

class Account {
 public:
  void allocated(const std::string& kind, std::size_t bytes) {
    Totals& totals = totals_[kind];
    ++totals.allocations;
    ++totals.live_count;
    totals.live_bytes += bytes;
    if (totals.live_bytes <= totals.peak_bytes) return;
    totals.peak_count = totals.live_count;  // number of allocations at the peak of the bytes
    totals.peak_bytes = totals.live_bytes;
  }
  void freed(const std::string& kind, std::size_t bytes) {
    Totals& totals = totals_[kind];
    ++totals.frees;
    --totals.live_count;
    totals.live_bytes -= bytes;
  }
  // Notes memory that ended with its context: it is no longer live, though it was never freed.
  void released(const std::string& kind, std::size_t bytes) {
    Totals& totals = totals_[kind];
    --totals.live_count;
    totals.live_bytes -= bytes;
  }
  void leaked(Leak leak) { leaks_.push_back(std::move(leak)); }

  void print() const {
    std::printf("{\"totals\":{");
    const char* separator = "";
    for (const auto& [kind, t] : totals_) {
      std::printf(
          "%s\"%s\":{\"allocations\":%zu,\"frees\":%zu,\"live_count\":%zu,\"live_bytes\":%zu,"
          "\"peak_count\":%zu,\"peak_bytes\":%zu}",
          separator, kind.c_str(), t.allocations, t.frees, t.live_count, t.live_bytes, t.peak_count,
          t.peak_bytes);
      separator = ",";
    }
    std::printf("},\"leaked\":[");
    separator = "";
    for (const Leak& leak : leaks_) {
      std::printf(
          "%s{\"api\":\"%s\",\"kind\":\"%s\",\"function\":\"%s\",\"line\":%d,\"count\":%zu,"
          "\"bytes\":%zu}",
          separator, leak.api.c_str(), leak.kind.c_str(), leak.function.c_str(), leak.line,
          leak.count, leak.bytes);
      separator = ",";
    }
    std::printf("]}\n");
  }

 private:
  std::map<std::string, Totals> totals_;
  std::vector<Leak> leaks_;
};

inline void require(cudaError_t result, const char* what, int line) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s: %s\n", line, what, cudaGetErrorName(result));
  std::exit(3);
}
inline void require(CUresult result, const char* what, int line) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "line %d: %s: driver error %d\n", line, what, static_cast<int>(result));
  std::exit(3);
}

}  // namespace expected

// Ends the program with status 3 if a call fails that the test needs to succeed.
#define REQUIRE(call) ::expected::require((call), #call, __LINE__)

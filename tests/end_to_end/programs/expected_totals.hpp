// A test program's own account of its allocations and frees, by kind, with which its report is
// compared. It is printed as one JSON object, the last line of the program's output. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace expected {

// A program's own count of its allocations of one kind.
struct Totals {
  // Numbers of allocations and of frees so far; number and bytes of the allocations that are live.
  std::size_t allocations = 0, frees = 0, live_count = 0, live_bytes = 0;
  // peak_bytes: highest bytes that were live at once. peak_count: number of live allocations at
  // that moment.
  std::size_t peak_count = 0, peak_bytes = 0;
};

// A leak that the report must show: allocations of one line that the program does not free.
struct Leak {
  // CUDA function that allocated, kind of the memory as the report names it, and function of the
  // program that called the CUDA function.
  std::string api, kind, function;
  // Line of the call in the source; 0: not known to the test.
  int line = 0;
  // Number of the allocations, and their bytes.
  std::size_t count = 0, bytes = 0;
};

// A test program's own account of its allocations and frees, by kind, with which its report is
// compared. Not thread-safe.
class Account {
 public:
  // Counts an allocation of `bytes`. `kind`: the kind of memory as the report names it, such as
  // "device".
  void allocated(const std::string& kind, std::size_t bytes) {
    Totals& totals = totals_[kind];
    ++totals.allocations;
    ++totals.live_count;
    totals.live_bytes += bytes;
    if (totals.live_bytes <= totals.peak_bytes) return;
    totals.peak_count = totals.live_count;  // number of allocations at the peak of the bytes
    totals.peak_bytes = totals.live_bytes;
  }
  // Counts that the program has freed an allocation of `bytes`. `kind`: the kind of memory as the
  // report names it, such as "device".
  void freed(const std::string& kind, std::size_t bytes) {
    Totals& totals = totals_[kind];
    ++totals.frees;
    --totals.live_count;
    totals.live_bytes -= bytes;
  }
  // Counts that an allocation of `bytes` has ended with its context: it is no longer live, though
  // it was never freed. `kind`: the kind of memory as the report names it.
  void released(const std::string& kind, std::size_t bytes) {
    Totals& totals = totals_[kind];
    --totals.live_count;
    totals.live_bytes -= bytes;
  }
  // Notes a leak that the report must show.
  void leaked(Leak leak) { leaks_.push_back(std::move(leak)); }

  // Prints the account to standard output, as one line with a JSON object.
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
  // The counts by kind of memory, as the report names it.
  std::map<std::string, Totals> totals_;
  // The leaks that the report must show.
  std::vector<Leak> leaks_;
};

}  // namespace expected

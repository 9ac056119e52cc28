// Lines to the user about requests that failed for lack of memory, when they fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/rescue/incident.hpp"

namespace cuwarden::shim {

// Words of a line about a failed request, beside the request itself.
struct FailureWords {
  std::uint32_t verdict = 0;  // the cause, a value of the enum Verdict below 32
  std::string_view api;       // CUDA function that the program called
  std::string_view cause;     // cause in words, with the name of the verdict
  std::string_view report;    // path of the report on disk; empty: there is none
};

// Writes a line about a failed request, once for each verdict (cause). If the program's caching
// allocator repeats a refused request before the program sees an error, the words are kept until
// the request fails again, or until the process ends. Safe for all threads, also in signal handlers
// that interrupt a call.
class FailureLines {
 public:
  // Forgets all words and verdicts. To be called before all other functions, and in a forked child.
  void reset() noexcept;
  // True if a line about the verdict was written.
  bool has_told(std::uint32_t verdict) const noexcept {
    return (told_.load(std::memory_order_relaxed) & 1u << verdict) != 0;
  }
  // Writes a line about the request of the incident, which the program sees fail.
  void tell(const rescue::Incident&, const FailureWords&);
  // Keeps the words about the incident, whose request the program's allocator repeats. Forgets the
  // words about the oldest such incident if there are more than four. `now_ns`: time
  // in ns since the process's start.
  void keep(const rescue::Incident&, const FailureWords&, std::uint64_t now_ns) noexcept;
  // Forgets the words about requests that equal that of the incident, by which the allocator has
  // repeated them.
  void forget(const rescue::Incident&) noexcept;
  // Writes a line about the request `failed` if words about `counted`, the incident that counts it,
  // are kept. Words that are older than ten seconds are said to be of the first refusal. Forgets
  // the words.
  void failed_again(const rescue::Incident& failed, IncidentId counted,
                    std::uint64_t now_ns) noexcept;
  // Writes the lines whose words are still kept, of incidents whose request was never served. To be
  // called when the process ends. Writes nothing if memory is lacking.
  void end(const ledger::Reader&) noexcept;

 private:
  // The words about an incident whose request the program's allocator repeats. Texts are cut to
  // their length, and end with a zero byte.
  struct Kept {
    std::atomic_flag is_in_use{};  // set while a thread reads or writes the other members
    // Row of the incident in the ledger; 0: no words are kept. Read without is_in_use, too.
    std::atomic<std::uint32_t> incident{0};
    std::uint32_t verdict = 0;  // the cause, a value of the enum Verdict below 32
    rescue::Request request;    // the refused request
    std::uint64_t time_ns = 0;  // time of the refusal, in ns since the process's start
    char api[64]{}, cause[320]{}, report[256]{};
  };
  // Writes the line unless one about the verdict was written.
  void write_once(std::uint32_t verdict, std::string_view line) noexcept;

  std::atomic<std::uint32_t> told_{0};  // verdicts about which a line was written: a bit each
  std::atomic<std::uint32_t> next_{0};  // number of times that words were kept
  Kept kept_[4];                        // words that wait for the next request
};

}  // namespace cuwarden::shim

// Lines to the user about requests that failed for lack of memory, when they fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/rescue/incident.hpp"

namespace cuwarden::shim {

// Texts for a line to the user about a failed request. The request itself gives the rest of the
// line: its size and its device.
struct FailureWords {
  // The request's cause of failure, a value of the enum Verdict below 32. 0 is a cause, too:
  // Verdict::size_overflow.
  std::uint32_t verdict = 0;
  std::string_view api;     // CUDA function that the program called; empty: unknown
  std::string_view cause;   // cause in words, with the name of the verdict
  std::string_view report;  // path of the report on disk; empty: there is none
};

// Writes lines to the user about requests that failed for lack of memory, one line for each verdict
// (cause). The program's caching allocator may repeat a refused request before the program sees an
// error. Then the words of the line are kept, until the request fails again or the process ends.
// Safe for all threads, also in signal handlers that interrupt a call.
class FailureLines {
 public:
  // Forgets all words that are kept for lines to the user, and for which verdicts lines were
  // written. To be called before all other functions, and in a forked child.
  void reset() noexcept;
  // True if a line about the verdict (a value of the enum Verdict below 32) was written.
  bool has_told(std::uint32_t verdict) const noexcept {
    return (told_.load(std::memory_order_relaxed) & 1u << verdict) != 0;
  }
  // Writes a line about the request of the incident, for which the program gets an error now. Does
  // nothing if a line about the verdict was written. May throw std::bad_alloc; then nothing is
  // written.
  void tell(const rescue::Incident&, const FailureWords&);
  // Keeps the words about an incident whose request the program's allocator will repeat. Does
  // nothing if a line about the verdict was written. Words of at most four incidents are kept, the
  // latest ones. `now_ns`: time in ns since the process's start.
  void keep(const rescue::Incident&, const FailureWords&, std::uint64_t now_ns) noexcept;
  // Forgets kept words about earlier incidents whose request equals that of `Incident`. To be
  // called if the request of `Incident` has failed. That request is the allocator's repetition of
  // the earlier ones, and gets a line of its own.
  void forget(const rescue::Incident&) noexcept;
  // Writes the line about the request of `failed`, which the allocator has repeated in vain, and
  // forgets its words. Does nothing if no words are kept. `counted`: the incident in the ledger
  // that counts the request, with which the words were kept. `now_ns`: time in ns since the
  // process's start. If the words are older than ten seconds, the line says that they tell of the
  // first refusal.
  void failed_again(const rescue::Incident& failed, IncidentId counted,
                    std::uint64_t now_ns) noexcept;
  // Writes the lines whose words are still kept, if not all requests of their incident were served
  // in the end. `Reader` reads this process's ledger. To be called when the process ends. Writes
  // nothing if memory is lacking.
  void end(const ledger::Reader&) noexcept;

 private:
  // Words (FailureWords) about an incident whose request the program's allocator repeats. Texts end
  // with a zero byte. Texts longer than their arrays are cut, but a longer path of a report is
  // dropped.
  struct Kept {
    std::atomic_flag is_in_use{};  // set while a thread reads or writes the other members
    // Row of the incident in the ledger, from 1; 0: no words are kept. May be read without
    // is_in_use being set.
    std::atomic<std::uint32_t> incident{0};
    // The cause, a value of the enum Verdict below 32; 0 is a cause, too. Without a meaning while
    // `incident` is 0.
    std::uint32_t verdict = 0;
    rescue::Request request;    // the refused request
    std::uint64_t time_ns = 0;  // time of the refusal, in ns since the process's start
    char api[64]{}, cause[320]{}, report[256]{};
  };
  // Writes the line to the log, unless a line about the verdict was written before.
  void write_once(std::uint32_t verdict, std::string_view line) noexcept;

  std::atomic<std::uint32_t> told_{0};  // verdicts about which a line was written: a bit each
  // Number of calls of keep() so far; modulo 4, the index in kept_ that the next call uses.
  std::atomic<std::uint32_t> next_{0};
  // Words about the latest incidents whose requests the program's allocator may repeat.
  Kept kept_[4];
};

}  // namespace cuwarden::shim

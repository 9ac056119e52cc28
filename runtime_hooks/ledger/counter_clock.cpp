#include "runtime_hooks/ledger/counter_clock.hpp"

#include <ctime>

namespace cuwarden::ledger {
namespace {

constexpr std::uint64_t window_ns = 1'000'000;
// From spans like these the rate is measured: long enough to be exact, short enough to be of now.
constexpr std::uint64_t shortest_span_ns = 1'000'000, longest_span_ns = 1'000'000'000;
// Between 100 MHz and 10 GHz.
constexpr std::uint64_t lowest_rate = (std::uint64_t{1} << 32) / 10;
constexpr std::uint64_t highest_rate = (std::uint64_t{1} << 32) * 10;
// Was the thread interrupted between the two readings, they are of different moments.
constexpr std::uint64_t longest_reading = 10'000;

}  // namespace

std::uint64_t CounterClock::read_kernel_clock() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

[[gnu::noinline]] std::uint64_t CounterClock::synchronise() noexcept {
  const std::uint64_t before = __rdtsc();
  const std::uint64_t ns = read_kernel_clock();
  const std::uint64_t count = __rdtsc();
  // A signal handler may be here while the code that it interrupted is.
  if (count - before > longest_reading || synchronising_.load(relaxed)) return ns;

  const std::uint64_t span_ns = ns - ns_.load(relaxed), span = count - count_.load(relaxed);
  std::uint64_t rate = rate_.load(relaxed);
  if (span_ns < shortest_span_ns && rate == 0) return ns;  // a longer span will come
  if (span_ns >= shortest_span_ns && span_ns <= longest_span_ns && span != 0) {
    rate = (span_ns << 32) / span;
    if (rate < lowest_rate || rate > highest_rate) rate = 0;
  }
  synchronising_.store(true, relaxed);
  window_.store(0, relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  count_.store(count, relaxed);
  ns_.store(ns, relaxed);
  rate_.store(rate, relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  window_.store(rate == 0 ? 0 : (window_ns << 32) / rate, relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  synchronising_.store(false, relaxed);
  return ns;
}

}  // namespace cuwarden::ledger

// Matches exported names with the rules of CUWARDEN_SIM_FAIL.
#include "tools/simulated_gpu/device/faults.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <mutex>
#include <string_view>
#include <vector>

#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {
namespace {

// Returns the name without _ptsz, _ptds or _vN: programs call cuMemAllocAsync_ptsz and
// cuMemAlloc_v2 by the short name, too, which cuda.h's macros expand.
std::string_view short_name(std::string_view name) {
  for (const std::string_view suffix : {"_ptsz", "_ptds"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  if (name.size() > 3 && name[name.size() - 3] == '_' && name[name.size() - 2] == 'v') {
    name.remove_suffix(3);
  }
  return name;
}

struct Counters {
  std::mutex mutex;
  std::vector<unsigned long long> calls;
};

Counters& counters() {
  static auto* const made = new Counters;
  return *made;
}

// The error that every call answers once the device is lost; 0 while it is there.
constinit std::atomic<int> lost_code{0};
// True if calls of a lost device do not return.
constinit std::atomic<bool> lost_hangs{false};

[[noreturn]] void hang() {
  const std::lock_guard held(simulator().mutex);
  for (;;) pause();
}

// A signal handler may find itself inside the call, with the driver's lock held.
void send_signal() {
  const std::lock_guard held(simulator().mutex);
  raise(SIGUSR1);
}

// The program's function may wait for other threads, whose calls of the driver go on meanwhile.
void tell_program(const char* function) {
  using Tells = void (*)(const char* function);
  if (const auto tells = reinterpret_cast<Tells>(dlsym(RTLD_DEFAULT, "simulated_gpu_tells")))
    tells(function);
}

// True if the rule makes this call fail; `call` counts from 1.
bool fails_at(const FaultRule& rule, unsigned long long call) {
  if (rule.n == 0) return true;
  switch (rule.calls) {
    case FaultRule::Calls::every_nth:
      return call % rule.n == 0;
    case FaultRule::Calls::from_nth:
      return call >= rule.n;
    case FaultRule::Calls::nth:
    case FaultRule::Calls::lost:
      return call == rule.n;
  }
  return false;
}

bool matches(const FaultRule& rule, std::string_view name) {
  return rule.function == name || rule.function == short_name(name);
}

}  // namespace

CUresult requested_failure(CallSite& site, bool needs_device) {
  if (const int lost = lost_code.load(std::memory_order_relaxed); lost != 0 && needs_device) {
    if (lost_hangs.load(std::memory_order_relaxed)) hang();
    return static_cast<CUresult>(lost);
  }
  const std::vector<FaultRule>& rules = simulator().settings.faults;
  if (site.inspected.load(std::memory_order_acquire) == 0) {
    bool any = false;
    for (const FaultRule& rule : rules) any = any || matches(rule, site.name);
    site.inspected.store(any ? 2 : 1, std::memory_order_release);
  }
  if (site.inspected.load(std::memory_order_relaxed) == 1) return CUDA_SUCCESS;
  int code = 0;
  FaultRule::Instead instead = FaultRule::Instead::nothing;
  {
    Counters& count = counters();
    const std::lock_guard lock(count.mutex);
    count.calls.resize(rules.size());
    for (std::size_t i = 0; i < rules.size(); ++i) {
      if (!matches(rules[i], site.name)) continue;
      const FaultRule& rule = rules[i];
      if (!fails_at(rule, ++count.calls[i]) || code != 0) continue;
      if (rule.calls == FaultRule::Calls::lost) {
        lost_hangs.store(rule.instead == FaultRule::Instead::hang);
        lost_code.store(rule.code);
      } else if (rule.instead != FaultRule::Instead::nothing) {
        instead = rule.instead;
        continue;
      }
      code = rule.code;
    }
  }
  if (instead == FaultRule::Instead::signal) send_signal();
  if (instead == FaultRule::Instead::hang) hang();
  if (instead == FaultRule::Instead::tell) tell_program(site.name);
  return static_cast<CUresult>(code);
}

}  // namespace cuwarden::simulated_gpu

// What the recorder does with a request that the driver refused for lack of memory.
#include <algorithm>
#include <optional>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/families/asking_modules.hpp"
#include "runtime_hooks/families/recorder.hpp"

namespace cuwarden::families {
namespace {

constinit std::atomic<std::uint32_t> last_serial{0};

// What the thread asked for last and was refused, since it was served; allocators ask again from
// another line, and more than once. Initial-exec, as all of the shim's.
class LastRefused {
 public:
  void add(std::uint32_t recorder, const RefusedRequest& request, IncidentId incident,
           std::uint64_t now_ns) noexcept {
    const bool smaller = recorder_ == recorder && request_.device == request.device &&
                         request.bytes < request_.bytes && !was_served_other_ && !is_over(now_ns);
    if (recorder_ != recorder || request_ != request || was_served_other_ || is_over(now_ns))
      *this = {};
    had_larger_ = had_larger_ || smaller;
    recorder_ = recorder;
    request_ = request;
    time_ns_ = now_ns;
    count(incident);
  }
  // Whether the thread was refused before this time, and has got nothing since: less may be asked
  // for.
  bool was_refused_before(std::uint32_t recorder, const RefusedRequest& request,
                          IncidentId now) const noexcept {
    if (recorder_ != recorder || request_.device != request.device || was_served_other_)
      return false;
    for (const Count& count : counts_)
      if (count.times > (count.incident == now ? 1u : 0u)) return true;
    return had_larger_;
  }
  // The ladder served what was refused last. What came before the program did help: visits
  // (incident, times) of that.
  template <class Visit>
  void rescued(std::uint32_t recorder, IncidentId now, const Visit& visit) noexcept {
    for (const Count& count : counts_) {
      const std::uint32_t times = count.times - (count.incident == now && count.times > 0 ? 1 : 0);
      if (recorder_ == recorder && count.incident.value != 0 && times > 0)
        visit(count.incident, times);
    }
    *this = {};
  }
  // It is counted with another incident.
  void moved(IncidentId from, IncidentId to) noexcept {
    for (Count& count : counts_) {
      if (count.incident != from) continue;
      if (--count.times == 0) count = {};
      break;
    }
    count(to);
  }
  // When the program heard of it.
  void refused_at(std::uint64_t now_ns) noexcept { time_ns_ = now_ns; }
  // Visits (incident, times) where this request is what was refused.
  template <class Visit>
  void served(std::uint32_t recorder, const RefusedRequest& request, std::uint64_t now_ns,
              const Visit& visit) noexcept {
    if (counts_[0].incident.value == 0 || recorder_ != recorder) return;
    // The program has gone on: what is refused from now on is another attempt.
    was_served_other_ = was_served_other_ || request_ != request;
    if (request_ != request) return;
    if (!is_over(now_ns))
      for (const Count& count : counts_)
        if (count.incident.value != 0) visit(count.incident, count.times);
    *this = {};
  }

 private:
  // What comes later is another attempt, and may have other reasons to succeed.
  static constexpr std::uint64_t soon_ns = 10'000'000'000;
  bool is_over(std::uint64_t now_ns) const noexcept { return now_ns > time_ns_ + soon_ns; }

  struct Count {
    IncidentId incident;  // 0: none
    std::uint32_t times = 0;
  };
  void count(IncidentId incident) noexcept {
    for (Count& count : counts_) {
      if (count.incident.value != 0 && count.incident != incident) continue;
      count.incident = incident;
      ++count.times;
      return;
    }
  }
  RefusedRequest request_;
  std::uint32_t recorder_ = 0;  // a forked child has another one, and this memory
  bool was_served_other_ = false;
  bool had_larger_ = false;  // refused right before: allocators ask for less and less
  std::uint64_t time_ns_ = 0;
  Count counts_[3];
};
[[gnu::tls_model("initial-exec")]] constinit thread_local LastRefused last_refused{};

// What was tried for one request, in its order.
class ClimbedRungs {
 public:
  void add(const rescue::Climbed& climbed) noexcept {
    const bool goes_on =
        count_ != 0 && rows_[count_ - 1].climbed.outcome == rescue::RungOutcome::under_way;
    if (!goes_on && count_ == most) return;
    Row& row = rows_[goes_on ? count_ - 1 : count_++];
    row.climbed = climbed;
    row.climbed.reclaimer = {row.name, climbed.reclaimer.copy(row.name, sizeof row.name)};
  }
  void write_last(ledger::Writer& ledger, IncidentId incident) const noexcept {
    if (count_ != 0) write(ledger, incident, count_ - 1);
  }
  void write(ledger::Writer& ledger, IncidentId incident) const noexcept {
    for (std::size_t i = 0; i < count_; ++i) write(ledger, incident, i);
  }

 private:
  void write(ledger::Writer& ledger, IncidentId incident, std::size_t at) const noexcept {
    const rescue::Climbed& climbed = rows_[at].climbed;
    ledger.add_rung(incident, {static_cast<std::uint32_t>(at + 1), climbed.rung, climbed.outcome,
                               climbed.duration_ns, climbed.reclaimer});
  }
  static constexpr std::size_t most = ledger::rung_count + rescue::Reclaimers::limit;
  struct Row {
    rescue::Climbed climbed;
    char name[sizeof rescue::Reclaimers::Entry::name];
  };
  Row rows_[most];
  std::size_t count_ = 0;
};

}  // namespace

std::uint32_t Recorder::next_serial() noexcept { return ++last_serial; }

// A context that is not current is not entered: another thread may be ending it.
void Recorder::note_device(IncidentId incident, DeviceOrdinal device) noexcept {
  if (device == no_device) return;
  // How large it is can be asked at any time.
  std::size_t total = 0;
  if (real_.cuDeviceTotalMem_v2 != nullptr &&
      real_.cuDeviceTotalMem_v2(&total, device.value) == CUDA_SUCCESS)
    ledger_.set_fact(incident, ledger::Fact::total_bytes, total);
  if (place_unguarded().device != device) return;
  const auto reading = driver::read_current_device(real_);
  if (!reading) return;
  ledger_.set_fact(incident, ledger::Fact::total_bytes, reading->total_bytes);
  ledger_.set_fact(incident, ledger::Fact::free_bytes, reading->free_bytes);
  if (const std::uint64_t spilled = ledger_.spilled_bytes_on(device); spilled != 0) {
    ledger_.set_fact(incident, ledger::Fact::spilled_bytes, spilled);
    ledger_.set_fact(incident, ledger::Fact::spilled_in_stream_order_bytes,
                     ledger_.spilled_in_stream_order_on(device));
  }
  if (pool_.any()) {
    const pool::ArenaCounts counts = pool_.counts(device);
    ledger_.set_fact(incident, ledger::Fact::arena_unused_bytes,
                     counts.held_bytes - counts.live_bytes);
  }
  const auto idle = idle_in_pools(device);
  if (!idle) return;
  ledger_.set_fact(incident, ledger::Fact::pool_idle_bytes, idle->unused);
  ledger_.set_fact(incident, ledger::Fact::graph_rest_bytes,
                   idle->unallocated - std::min(idle->unallocated, idle->unused));
}

// CU_COMPUTEMODE_DEFAULT where the driver does not say.
int Recorder::compute_mode(DeviceOrdinal device) const noexcept {
  int mode = CU_COMPUTEMODE_DEFAULT;
  if (device == no_device || real_.cuDeviceGetAttribute == nullptr ||
      real_.cuDeviceGetAttribute(&mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, device.value) !=
          CUDA_SUCCESS)
    return CU_COMPUTEMODE_DEFAULT;
  return mode;
}

// CUDA_ERROR_UNKNOWN is what cuda.h promises for a prohibited device; CUDA_ERROR_DEVICE_UNAVAILABLE
// is for both modes. A device that is lost answers the same, and to the question for its mode too.
bool Recorder::compute_mode_refuses(CUresult result, DeviceOrdinal device) const noexcept {
  if (result != CUDA_ERROR_DEVICE_UNAVAILABLE && result != CUDA_ERROR_UNKNOWN) return false;
  const int mode = compute_mode(device);
  return mode == CU_COMPUTEMODE_PROHIBITED ||
         (mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS && result == CUDA_ERROR_DEVICE_UNAVAILABLE);
}

void Recorder::note_compute_mode(IncidentId incident, DeviceOrdinal device) noexcept {
  const int mode = compute_mode(device);
  if (mode != CU_COMPUTEMODE_DEFAULT)
    ledger_.set_fact(incident, ledger::Fact::compute_mode, static_cast<std::uint64_t>(mode));
}

ledger::Writer::Refused Recorder::note_refusal(const RefusedRequest& request,
                                               const ledger::Refusal& refusal) noexcept {
  const ledger::Writer::Refused refused = ledger_.refused(refusal);
  last_refused.add(serial_, request, refused.incident, ledger_.recently_ns());
  was_refused_.store(true, std::memory_order_relaxed);
  if (refused.first) describe(refused.incident, request, refusal.asked);
  tell(refused, Stage::refused);
  return refused;
}

ledger::Writer::Refused Recorder::note_failure(const ledger::Writer::Refused& known,
                                               const RefusedRequest& request,
                                               const ledger::Refusal& refusal) noexcept {
  const ledger::Writer::Refused now = ledger_.failed(known, refusal);
  last_refused.refused_at(ledger_.recently_ns());
  if (now.incident == known.incident) return known;
  last_refused.moved(known.incident, now.incident);
  if (now.first) describe(now.incident, request, refusal.asked);
  return now;
}

// As things are now. It is published first: the driver's answers may take a while, or not come.
void Recorder::describe(IncidentId incident, const RefusedRequest& request,
                        ledger::Asked asked) noexcept {
  ledger_.publish_incident(incident);
  note_device(incident, request.device);
  if (request.given_back_bytes != 0)
    ledger_.set_fact(incident, ledger::Fact::given_back_bytes, request.given_back_bytes);
  if (asked == ledger::Asked::context) note_compute_mode(incident, request.device);
}

void Recorder::tell_of_failure(const ledger::Writer::Refused& known,
                               const ledger::Writer::Refused& failed) noexcept {
  if (!known.first) tell(failed, Stage::refused);
  tell(failed, Stage::settled);
}

void Recorder::refused(const RefusedRequest& request, GroupId group, CUresult result,
                       ledger::Asked asked) noexcept {
  const ledger::Refusal refusal{group, asked, result, ByteCount{request.bytes}};
  const ledger::Writer::Refused known = note_refusal(request, refusal);
  tell_of_failure(known, note_failure(known, request, refusal));
  // Whoever asks again may be served then.
  if (pool_use_ != PoolUse::never) empty_pool(request.device);
}

rescue::Situation Recorder::situation(const RefusedRequest& asked, GroupId group,
                                      IncidentId incident) noexcept {
  const bool on_device = asked.device != no_device;
  rescue::Situation now{.device = static_cast<std::uint32_t>(asked.device.value + 1),
                        .live_bytes = on_device ? ledger_.live_bytes_on(asked.device)
                                                : ledger_.live_bytes_on(no_device, Kind::pinned),
                        .noted = pending_.noted(),
                        .bytes = asked.bytes,
                        .is_last_resort_due = ladder_.has_last_resorts()};
  if (!now.is_last_resort_due) return now;
  now.is_last_resort_due = last_refused.was_refused_before(serial_, asked, incident) ||
                           !asked_by_caching_allocator(ledger_, group);
  // Nobody who gives something up makes room for what is larger than the device.
  std::size_t total = 0;
  if (on_device && real_.cuDeviceTotalMem_v2 != nullptr &&
      real_.cuDeviceTotalMem_v2(&total, asked.device.value) == CUDA_SUCCESS)
    now.fits_device = asked.bytes <= total;
  return now;
}

// A wait is no reason to end a thread in a call that ends none without us: what is cancelled is so
// afterwards. The incident's facts are of the moment of the refusal, before the climb: that may
// take long, and be what the program dies in. Only what fails where all was served before is
// described after it.
bool Recorder::rescue(const Caller& caller, const Allocation& asked_for,
                      FunctionRef<CUresult()> request, const PlaceElsewhere* place) {
  const ErrnoGuard keep;
  const Uncancelled whole;
  const Place here = place_unguarded();
  DeviceOrdinal device = no_device;
  if (!asked_for.host) device = asked_for.device != no_device ? asked_for.device : here.device;
  meet(device);
  const RefusedRequest asked{asked_for.bytes, device, caller.api, asked_for.kind};
  const GroupId group = group_unguarded(caller, asked.kind, device);
  const ledger::Refusal refusal{group, ledger::Asked::memory, CUDA_ERROR_OUT_OF_MEMORY,
                                ByteCount{asked.bytes}};
  const ledger::Writer::Refused refused = note_refusal(asked, refusal);
  ClimbedRungs climbed_rungs;
  rescue::Situation now = situation(asked, group, refused.incident);
  now.can_spill = place != nullptr && spill_.enabled() && device == here.device &&
                  asked.bytes > pool::Spill::largest_shared_bytes &&
                  spillable(asked_for, here, device);
  bool served = false;
  if (ladder_.is_worth_climbing(now)) {
    rescue::Rung last{};
    const auto may_enter = [&](ContextId context) {
      return contexts_.device_of(context) == device;
    };
    const auto trim = [&] { return pools_.trim(real_, device); };
    const auto empty_pool = [&] { return this->empty_pool(device); };
    const auto mesh = [&] { return mesh_pool(here, asked.bytes); };
    const bool can_mesh = device != no_device && device == here.device && may_mesh();
    std::optional<StackId> stack;
    const auto is_captured = [&] { return captures_.any(); };
    const auto is_unsafe_to_reclaim = [&](std::string_view modules) {
      if (captures_.any() || ladder_.holds_lock_among(modules)) return true;
      if (!stack) stack = whole_stack(caller);
      return !has_none_of(ledger_, *stack, modules);
    };
    // By what is live now: something may have been given back. What contexts and code take is not
    // counted: nobody knows how much of it is a neighbour's, who may leave.
    const auto may_others_help = [&] {
      std::size_t total = 0;
      if (device == no_device || real_.cuDeviceTotalMem_v2 == nullptr ||
          real_.cuDeviceTotalMem_v2(&total, device.value) != CUDA_SUCCESS)
        return true;
      const std::uint64_t live = ledger_.live_bytes_on(device);
      const std::uint64_t there = live - std::min(live, ledger_.spilled_bytes_on(device));
      return asked.bytes <= total && there <= total - asked.bytes;
    };
    const auto spill = [&] { return spill_to_host(asked_for, here, device, request, *place); };
    bool waited_in_vain = false;
    const auto note = [&](const rescue::Climbed& climbed) {
      last = climbed.rung;
      if (climbed.rung == rescue::Rung::wait && climbed.outcome == rescue::RungOutcome::under_way)
        tell_once(RescueNews::waits, device, asked.bytes, 0);
      waited_in_vain = waited_in_vain || (climbed.rung == rescue::Rung::wait &&
                                          climbed.outcome == rescue::RungOutcome::timed_out);
      climbed_rungs.add(climbed);
      if (refused.first) climbed_rungs.write_last(ledger_, refused.incident);
    };
    served = ladder_.climb({real_, pending_, here.context, device.value, asked.bytes, request,
                            may_enter, trim, empty_pool, has_pool_for(device), mesh, can_mesh,
                            is_unsafe_to_reclaim, may_others_help, spill, is_captured},
                           now, note);
    if (waited_in_vain && !served) tell_once(RescueNews::waited_in_vain, device, asked.bytes, 0);
    if (served && refused.incident.value != 0)
      ledger_.rescued(refused.incident, last, ByteCount{asked.bytes});
  }
  if (served) {
    last_refused.rescued(serial_, refused.incident,
                         [&](IncidentId id, std::uint32_t times) { ledger_.recovered(id, times); });
    tell(refused, Stage::settled);
  } else {
    const ledger::Writer::Refused failed = note_failure(refused, asked, refusal);
    if (failed.first && !refused.first) climbed_rungs.write(ledger_, failed.incident);
    tell_of_failure(refused, failed);
  }
  give_notice();
  return served;
}

void Recorder::refused(const Caller& caller, CUresult result, ledger::Asked asked,
                       DeviceOrdinal device) noexcept {
  if (result == CUDA_SUCCESS) return;
  const ErrnoGuard keep;
  if (result != CUDA_ERROR_OUT_OF_MEMORY &&
      !(asked == ledger::Asked::context && compute_mode_refuses(result, device)))
    return;
  if (device == no_device) device = place_unguarded().device;
  const Kind kind = asked == ledger::Asked::graph ? Kind::graph : Kind::device;
  refused(caller, {0, device, caller.api, kind}, result, asked);
}

void Recorder::refused_for_itself(const Caller& caller, CUresult result, ledger::Asked asked,
                                  DeviceOrdinal device, const Needed& needed) noexcept {
  if (result == CUDA_SUCCESS || (needed.bytes == 0 && result != CUDA_ERROR_OUT_OF_MEMORY)) return;
  const ErrnoGuard keep;
  refused(caller, {needed.bytes, device, caller.api, Kind::device, needed.given_back}, result,
          asked);
}

void Recorder::refused(const Caller& caller, const RefusedRequest& request, CUresult result,
                       ledger::Asked asked) noexcept {
  meet(request.device);
  refused(request, group_unguarded(caller, request.kind, request.device), result, asked);
  give_notice();
}

[[gnu::noinline, gnu::cold]] void Recorder::served(const RefusedRequest& request) noexcept {
  last_refused.served(
      serial_, request, ledger_.recently_ns(),
      [&](IncidentId incident, std::uint32_t times) { ledger_.recovered(incident, times); });
}

}  // namespace cuwarden::families

#include "runtime_hooks/rescue/refusals.hpp"

#include <algorithm>
#include <iterator>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/rescue/device_facts.hpp"
#include "runtime_hooks/rescue/last_refused.hpp"
#include "runtime_hooks/rescue/rungs/asking_modules.hpp"

namespace cuwarden::rescue {
namespace {

constinit std::atomic<std::uint32_t> last_serial{0};
// Initial-exec, as all thread-local memory of the shim.
[[gnu::tls_model("initial-exec")]] constinit thread_local LastRefused last_refused{};

}  // namespace

std::uint32_t Refusals::next_serial() noexcept { return ++last_serial; }

// True if the device's compute mode explains the error. cuda.h promises CUDA_ERROR_UNKNOWN for a
// prohibited device; CUDA_ERROR_DEVICE_UNAVAILABLE stands for both modes. A lost device answers
// with the same errors, also to the question for its mode.
bool Refusals::compute_mode_refuses(CUresult result, DeviceOrdinal device) const noexcept {
  if (result != CUDA_ERROR_DEVICE_UNAVAILABLE && result != CUDA_ERROR_UNKNOWN) return false;
  const int mode = parts_.queries.compute_mode_of(device);
  return mode == CU_COMPUTEMODE_PROHIBITED ||
         (mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS && result == CUDA_ERROR_DEVICE_UNAVAILABLE);
}

Incident Refusals::refusal_of(const tracking::Caller& caller, const Request& request,
                              CUresult result, std::uint64_t given_back_bytes) noexcept {
  Incident incident{.group = parts_.sites.group_unguarded(caller, request.kind, request.device),
                    .request = request,
                    .facts = {.asked = request.asked, .result = result, .bytes = request.bytes}};
  if (given_back_bytes != 0) incident.facts.set(ledger::Fact::given_back_bytes, given_back_bytes);
  return incident;
}

Refusals::Refused Refusals::note_refusal(Incident& incident) noexcept {
  const Refused refused = parts_.ledger.incidents.refused(
      incident.group, incident.facts, parts_.ledger.threads.mine(), parts_.ledger.time.now_ns());
  last_refused.add(serial_, incident.request, refused.incident, clock_.now_ns());
  was_refused_.store(true, std::memory_order_relaxed);
  if (refused.first) describe(refused.incident, incident);
  return refused;
}

// Notes a refusal that the program gets to see.
Refusals::Refused Refusals::note_failure(const Refused& known, Incident& incident) noexcept {
  const Refused now =
      parts_.ledger.incidents.failed(known, incident.group, incident.facts,
                                     parts_.ledger.threads.mine(), parts_.ledger.time.now_ns());
  last_refused.refused_at(clock_.now_ns());
  if (now.incident == known.incident) return known;
  last_refused.moved(known.incident, now.incident);
  if (now.first) describe(now.incident, incident);
  return now;
}

// The ledger gets the facts known so far before each question to the driver or the kernel: an
// answer may take a while, or never come.
void Refusals::describe(IncidentId id, Incident& incident) noexcept {
  ledger::Incidents& rows = parts_.ledger.incidents;
  incident.id = id;
  rows.measure(incident.request.device, incident.facts, incident.holdings);
  rows.write(id, incident.facts, incident.holdings);
  add_device_facts(parts_, incident);
  rows.write(id, incident.facts, incident.holdings);
  probes_.explain(incident);
  rows.write(id, incident.facts, incident.holdings);
}

// If a device has more in use after its first context than a context takes, the rest is other
// processes' memory. NVML's list tells how much they hold; it is read when an incident begins.
std::uint64_t Refusals::implicit_bytes(DeviceOrdinal device,
                                       const ledger::IncidentFacts& facts) noexcept {
  if (device == no_device) return 0;
  const ledger::ImplicitBytes taken = parts_.ledger.devices.implicit_bytes(device);
  std::atomic<std::uint64_t>& known =
      first_context_[static_cast<std::size_t>(device.value) % std::size(first_context_)];
  if (const auto others = facts.fact(ledger::Fact::other_processes_bytes)) {
    const std::uint64_t used = taken.used_after_first_context;
    const std::uint64_t first =
        used <= ledger::ImplicitBytes::largest_context ? used : used - std::min(used, *others);
    known.store(first <= ledger::ImplicitBytes::largest_context ? first : 0,
                std::memory_order_relaxed);
  }
  // Once all contexts of the device have ended, nothing is taken.
  const std::uint64_t first_context =
      std::min(known.load(std::memory_order_relaxed), taken.used_after_first_context);
  return first_context + taken.beside_first_context();
}

bool Refusals::is_to_be_repeated(const Incident& refusal, IncidentId incident) noexcept {
  return refusal.request.asked == ledger::Asked::memory &&
         !last_refused.was_refused_before(serial_, refusal.request, incident) &&
         asked_by_caching_allocator(parts_.ledger.stacks,
                                    parts_.ledger.groups.stack_of(refusal.group));
}

void Refusals::settle(const Incident& incident, IncidentId counted, Outcome outcome) noexcept {
  if (incident)
    probes_.settled(incident, outcome);
  else if (outcome == Outcome::failed && counted.value != 0)
    probes_.failed_again(incident, counted);
}

RescueConditions Refusals::conditions_of(const Request& asked, const Incident& begun,
                                         IncidentId incident) noexcept {
  const bool on_device = asked.device != no_device;
  RescueConditions now{
      .live_bytes = on_device ? parts_.ledger.totals.live_bytes_on(asked.device)
                              : parts_.ledger.totals.live_bytes_on(no_device, Kind::pinned),
      .noted = pending_.noted(),
      .is_last_resort_due = ladder_.has_last_resorts()};
  if (!now.is_last_resort_due) return now;
  now.implicit_bytes = implicit_bytes(asked.device, begun.facts);
  now.is_last_resort_due = !is_to_be_repeated(begun, incident);
  // Reclaimers cannot make room for a request that the empty device could not serve.
  if (const std::uint64_t total = parts_.queries.total_bytes_of(asked.device); total != 0)
    now.fits_device = asked.bytes <= total;
  return now;
}

LeftOut Refusals::obstacle() const noexcept {
  if (!ladder_.enabled()) return LeftOut::rescues_off;
  return is_reclaiming() ? LeftOut::in_reclaimer : LeftOut::none;
}

Rescued Refusals::rescue(const tracking::Caller& caller, const tracking::Allocation& asked_for,
                         FunctionRef<CUresult()> request, Accepts accepts) {
  const ErrnoGuard keep;
  const Uncancelled whole;
  const tracking::CurrentContext here = parts_.queries.current_unguarded();
  const DeviceOrdinal device = asked_for.device_in(here);
  const LeftOut spill_obstacle = device == no_device ? LeftOut::host_memory
                                 : accepts == Accepts::any_memory
                                     ? parts_.pools.spill_obstacle(asked_for, here, device)
                                     : LeftOut::drivers_memory;
  return rescue({.parts = parts_,
                 .pending = pending_,
                 .caller = caller,
                 .asked_for = asked_for,
                 .here = here,
                 .request = {asked_for.bytes, device, caller.api, asked_for.kind},
                 .ask_driver = request},
                spill_obstacle);
}

CUresult Refusals::rescue(const tracking::Caller& caller, CUresult result, const Need& need,
                          FunctionRef<CUresult()> call) {
  if (result == CUDA_SUCCESS) return result;
  const ErrnoGuard keep;
  const Uncancelled whole;
  const bool lacks_memory = result == CUDA_ERROR_OUT_OF_MEMORY || need.bytes != 0;
  if (!lacks_memory &&
      !(need.asked == ledger::Asked::context && compute_mode_refuses(result, need.device)))
    return result;
  const tracking::CurrentContext here = parts_.queries.current_unguarded();
  const Kind kind = need.asked == ledger::Asked::graph ? Kind::graph : Kind::device;
  const Request asked{.bytes = need.bytes,
                      .device = need.device == no_device ? here.device : need.device,
                      .api = caller.api,
                      .kind = kind,
                      .asked = need.asked};
  const LeftOut obstacle = lacks_memory ? this->obstacle() : LeftOut::compute_mode;
  if (obstacle != LeftOut::none) {
    refused(caller, asked, result, obstacle, need.given_back_bytes);
    return result;
  }
  const tracking::Allocation no_allocation{.kind = kind, .bytes = need.bytes};
  const Rescued rescued = rescue({.parts = parts_,
                                  .pending = pending_,
                                  .caller = caller,
                                  .asked_for = no_allocation,
                                  .here = here,
                                  .request = asked,
                                  .refusal = result,
                                  .given_back_bytes = need.given_back_bytes,
                                  .ask_driver = call},
                                 LeftOut::no_allocation);
  return rescued.served ? CUDA_SUCCESS : result;
}

// Serves a refused request by the rungs. The thread is not cancelled meanwhile, because without
// cuwarden the call is no cancellation point. The incident gets the facts of the refusal before any
// rung runs, and each rung gets its row before it runs: a rung may take long, and the program may
// die in it. The failure is described after the rungs only if all earlier requests of the call
// stack were served.
Rescued Refusals::rescue(const RefusedCall& call, LeftOut spill_obstacle) {
  const Request& asked = call.request;
  parts_.readings.meet(asked.device);
  Incident incident = refusal_of(call.caller, asked, call.refusal, call.given_back_bytes);
  const Refused refused = note_refusal(incident);
  RescueConditions now = conditions_of(asked, incident, refused.incident);
  now.spill_obstacle = spill_obstacle;
  TriedRungs tried(parts_.ledger, refused);
  Rescued rescued;
  if (ladder_.is_worth_climbing(asked, now))
    rescued = ladder_.climb(call, now, tried);
  else
    tried.leave_out_all(LeftOut::in_vain_before);
  if (rescued.served) {
    if (refused.incident.value != 0)
      parts_.ledger.incidents.rescued(refused.incident, tried.last(), asked.bytes);
    last_refused.rescued(serial_, refused.incident, [&](IncidentId id, std::uint32_t times) {
      parts_.ledger.incidents.recovered(id, times);
    });
    settle(incident, refused.incident, Outcome::served);
  } else {
    // The failure may be counted with another incident, and would then seem to be a second one.
    const bool is_repeated = is_to_be_repeated(incident, refused.incident);
    if (tried.has_waited_in_vain())
      parts_.notices.tell_once(serving::Notice::waited_in_vain, asked.device, asked.bytes);
    const Refused failed = note_failure(refused, incident);
    if (failed.first && !refused.first) tried.write(failed.incident);
    settle(incident, failed.incident, is_repeated ? Outcome::to_be_repeated : Outcome::failed);
  }
  recorder_.give_notice();
  return rescued;
}

void Refusals::refused(const tracking::Caller& caller,
                       const tracking::Allocation& asked_for) noexcept {
  const ErrnoGuard keep;
  const tracking::CurrentContext here = parts_.queries.current_unguarded();
  const LeftOut obstacle = this->obstacle();
  refused(caller, {asked_for.bytes, asked_for.device_in(here), caller.api, asked_for.kind},
          CUDA_ERROR_OUT_OF_MEMORY, obstacle == LeftOut::none ? LeftOut::not_repeated : obstacle);
}

void Refusals::refused(const tracking::Caller& caller, const Request& request, CUresult result,
                       LeftOut obstacle, std::uint64_t given_back_bytes) noexcept {
  parts_.readings.meet(request.device);
  Incident incident = refusal_of(caller, request, result, given_back_bytes);
  const Refused known = note_refusal(incident);
  const bool is_repeated = is_to_be_repeated(incident, known.incident);
  const Refused failed = note_failure(known, incident);
  TriedRungs(parts_.ledger, {.incident = incident.id, .first = static_cast<bool>(incident)})
      .leave_out_all(obstacle);
  settle(incident, failed.incident, is_repeated ? Outcome::to_be_repeated : Outcome::failed);
  // The program may repeat the request, which may then be served.
  if (parts_.pools.uses_pool()) parts_.pools.give_back_unused(request.device);
  recorder_.give_notice();
}

[[gnu::noinline, gnu::cold]] void Refusals::note_served(const Request& request) noexcept {
  const ErrnoGuard keep;
  last_refused.served(serial_, request, clock_, [&](IncidentId incident, std::uint32_t times) {
    parts_.ledger.incidents.recovered(incident, times);
  });
}

}  // namespace cuwarden::rescue

// Streams and the limits of a context. Both make the driver take device memory for itself.
#include <algorithm>

#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/hooks/execution/implicit_span.hpp"
#include "runtime_hooks/hooks/execution/object_span.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/tracking/handle_set.hpp"

namespace cuwarden::hooks {
namespace {

tracking::ImplicitObject object_of(CUstream stream) {
  return {Kind::stream, Space::stream, reinterpret_cast<std::uint64_t>(stream)};
}

template <class Create>
CUresult created(HookedCall& call, const CUstream* stream, Create create) {
  const auto attempt = [&] {
    ObjectSpan span(call);
    const CUresult result = create();
    if (call.recording() && result == CUDA_SUCCESS) span.made(object_of(*stream));
    return result;
  };
  return call.rescued(attempt(), {ledger::Asked::stream}, attempt);
}

template <class Destroy>
CUresult destroyed(HookedCall& call, CUstream stream, Destroy destroy) {
  if (call.recording()) call.execution().stream_ends(stream);
  ObjectEnd end(call, object_of(stream), ObjectSpan::When::within_budget);
  const CUresult result = destroy();
  end.done(result);
  return result;
}

// Returns true for the limit of the stack, which lies in local memory. The other limits concern
// memory for calls that kernels make: malloc, printf, launches.
bool is_of_local_memory(CUlimit limit) { return limit == CU_LIMIT_STACK_SIZE; }

void limit_set(const ExecutionParts& parts, const CurrentContext& here, CUlimit limit,
               std::size_t bytes) {
  ImplicitMemory::Launches* const launches = parts.implicit.launches_of(here.device, here.context);
  if (launches == nullptr) return;
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
    launches->heap_bytes.store(bytes, std::memory_order_relaxed);
    launches->heap_readings.store(0, std::memory_order_relaxed);
  }
  if (is_of_local_memory(limit))
    launches->local_bytes.store(std::max(bytes, ImplicitMemory::initial_local_bytes),
                                std::memory_order_relaxed);
  // Later launches take memory for the heap, or take again what a smaller stack gave back. So every
  // kernel's next launch is measured like its first.
  launched_kernels.forget_all();
}

}  // namespace

#define OF_STREAM CUWARDEN_HOOK_BY
#include "runtime_hooks/driver/hooks.def"

CUresult cuCtxSetLimit(HookedCall& call, CUlimit limit, size_t value) {
  if (!call.recording()) return call.real().cuCtxSetLimit(limit, value);
  const CurrentContext here = call.execution().queries.current();
  rescue::Need need{ledger::Asked::limit, here.device};
  const auto attempt = [&] {
    ImplicitSpan span(call);
    span.begin(here.device);
    const CUresult result = call.real().cuCtxSetLimit(limit, value);
    const auto taken = span.taken();
    const bool gave_back =
        taken && *taken < 0 && result == CUDA_ERROR_OUT_OF_MEMORY && is_of_local_memory(limit);
    need.given_back_bytes = gave_back ? static_cast<std::uint64_t>(-*taken) : 0;
    if (gave_back)
      span.book_given_back(need.given_back_bytes, here.context);
    else if (taken && *taken != 0 && result == CUDA_SUCCESS)
      span.book(is_of_local_memory(limit) ? ledger::ImplicitChange{.local_memory_bytes = *taken}
                                          : ledger::ImplicitChange{.heap_bytes = *taken},
                here.context);
    if (result == CUDA_SUCCESS) limit_set(call.execution(), here, limit, value);
    return result;
  };
  const CUresult result = attempt();
  return call.rescued(result, need, attempt);
}

}  // namespace cuwarden::hooks

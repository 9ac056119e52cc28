// Streams and the limits of a context: each takes device memory of its own.
#include "runtime_hooks/families/bodies.hpp"
#include "runtime_hooks/families/launched_kernels.hpp"

namespace cuwarden::families {
namespace {

template <class Call>
CUresult with_stream(HookedCall& call, Call real_call) {
  ImplicitSpan span(call);
  if (call.recording() &&
      call.recorder().implicit().may_read(call.recorder().ledger().recently_ns()))
    span.begin(call.recorder().place().device);
  const CUresult result = real_call();
  const auto taken = span.taken();
  if (taken && *taken != 0) span.book({.stream_bytes = *taken});
  note_refusal(call, result, ledger::Asked::stream);
  return result;
}

// The stack is local memory; all else that takes memory serves calls from kernels: malloc, printf,
// launches.
bool is_of_local_memory(CUlimit limit) { return limit == CU_LIMIT_STACK_SIZE; }

void stack_size_set(Recorder& recorder, std::size_t bytes) {
  const Place here = recorder.place();
  ImplicitMemory::Launches* const launches =
      recorder.implicit().launches_of(here.device, here.context);
  if (launches == nullptr) return;
  launches->local_bytes.store(
      bytes > ImplicitMemory::initial_local_bytes ? bytes : ImplicitMemory::initial_local_bytes,
      std::memory_order_relaxed);
  // A smaller stack may give back what the next launch takes again.
  launched_kernels.forget_all();
}

}  // namespace

CUresult cuStreamCreate(HookedCall& call, CUstream* phStream, unsigned int Flags) {
  return with_stream(call, [&] { return call.real().cuStreamCreate(phStream, Flags); });
}

CUresult cuStreamCreateWithPriority(HookedCall& call, CUstream* phStream, unsigned int flags,
                                    int priority) {
  return with_stream(
      call, [&] { return call.real().cuStreamCreateWithPriority(phStream, flags, priority); });
}

CUresult cuStreamDestroy(HookedCall& call, CUstream hStream) {
  return with_stream(call, [&] { return call.real().cuStreamDestroy(hStream); });
}

CUresult cuStreamDestroy_v2(HookedCall& call, CUstream hStream) {
  return with_stream(call, [&] { return call.real().cuStreamDestroy_v2(hStream); });
}

CUresult cuCtxSetLimit(HookedCall& call, CUlimit limit, size_t value) {
  ImplicitSpan span(call);
  if (call.recording()) span.begin(call.recorder().place().device);
  const CUresult result = call.real().cuCtxSetLimit(limit, value);
  const bool local = is_of_local_memory(limit);
  const auto taken = span.taken();
  if (taken && *taken != 0)
    span.book(local ? ledger::ImplicitChange{.local_memory_bytes = *taken}
                    : ledger::ImplicitChange{.heap_bytes = *taken});
  if (call.recording() && result == CUDA_SUCCESS && local) stack_size_set(call.recorder(), value);
  note_refusal(call, result, ledger::Asked::limit);
  return result;
}

}  // namespace cuwarden::families

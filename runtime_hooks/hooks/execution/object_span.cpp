#include "runtime_hooks/hooks/execution/object_span.hpp"

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden::hooks {
namespace {

// Most bytes that an object is believed to have taken without a look at the processes on the
// device. A context, which every other process has, takes about as much.
constexpr std::int64_t plausible_bytes = std::int64_t{256} << 20;

bool may_measure(const ExecutionParts& parts, ObjectSpan::When when) {
  return (when == ObjectSpan::When::always && !parts.implicit.are_readings_slow()) ||
         (!parts.captures.any() && parts.implicit.may_read(parts.time.recently_ns()));
}

}  // namespace

ObjectSpan::ObjectSpan(HookedCall& call, When when) noexcept : call_(call), span_(call) {
  if (!call.recording()) return;
  const ErrnoGuard keep;
  const ExecutionParts parts = call.execution();
  here_ = parts.queries.current();
  if (may_measure(parts, when)) span_.begin(here_.device);
  // Code may have gigabytes of variables, too many to be shared among objects that wait.
  if (when == When::always && !span_.has_begun()) parts.implicit.bases.memory_may_change();
  base_ = parts.implicit.bases.of(here_.device);
}

tracking::Taken ObjectSpan::taken() noexcept {
  const tracking::Taken bytes = span_.taken(plausible_bytes);
  call_.keeps_bases();
  return bytes;
}

void ObjectSpan::made(const tracking::ImplicitObject& object) noexcept {
  const tracking::Taken bytes = taken();
  call_.execution().objects.made({.caller = call_.caller(),
                                  .here = here_,
                                  .base = base_,
                                  .taken = bytes,
                                  .is_doubtful = span_.is_doubtful()},
                                 object);
  if (bytes && *bytes != 0) span_.note_reading();
}

void ObjectSpan::used(const tracking::ImplicitObject& object) noexcept {
  const tracking::Taken bytes = taken();
  call_.execution().objects.took_more({.caller = call_.caller(),
                                       .here = here_,
                                       .base = base_,
                                       .taken = bytes,
                                       .is_doubtful = span_.is_doubtful()},
                                      object);
  if (bytes && *bytes != 0) span_.note_reading();
}

ObjectEnd::ObjectEnd(HookedCall& call, const tracking::ImplicitObject& object,
                     ObjectSpan::When when) noexcept
    : call_(call), span_(call), object_(object) {
  if (!call.recording()) return;
  const ErrnoGuard keep;
  const ExecutionParts parts = call.execution();
  const DeviceOrdinal here = parts.queries.current().device;
  // The reading gives the object what it waits for, so it comes first. Only the current device can
  // be read.
  if (may_measure(parts, when)) span_.begin(here);
  ending_ = parts.objects.begin_end(object, here);
  is_here_ = ending_.device == here;
}

void ObjectEnd::done(CUresult result) noexcept {
  if (!call_.recording()) return;
  const ErrnoGuard keep;
  const tracking::Taken taken = is_here_ ? span_.taken() : std::nullopt;
  tracking::ImplicitObjects& objects = call_.execution().objects;
  // The process is ending, and the driver has ended the object by itself.
  if (result == CUDA_ERROR_DEINITIALIZED) return;
  if (result != CUDA_SUCCESS) return objects.not_ended(ending_);
  objects.ended(object_.kind, ending_, taken);
  call_.keeps_bases();
  if (taken && *taken != 0) span_.note_reading();
}

}  // namespace cuwarden::hooks

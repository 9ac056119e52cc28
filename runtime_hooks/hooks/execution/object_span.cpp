#include "runtime_hooks/hooks/execution/object_span.hpp"

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden::hooks {
namespace {

// A device is not read while a stream is captured.
bool may_measure(const ExecutionParts& parts, ObjectSpan::When when) {
  return !parts.captures.any() &&
         (when == ObjectSpan::When::always || parts.implicit.may_read(parts.time.recently_ns()));
}

}  // namespace

ObjectSpan::ObjectSpan(HookedCall& call, When when) noexcept : call_(call), span_(call) {
  if (!call.recording()) return;
  const ErrnoGuard keep;
  const ExecutionParts parts = call.execution();
  here_ = parts.queries.current();
  if (may_measure(parts, when)) span_.begin(here_.device);
}

tracking::Taken ObjectSpan::taken() noexcept {
  constexpr std::int64_t most = std::int64_t{2} << 30;
  const tracking::Taken bytes = span_.taken();
  if (bytes && *bytes != 0) span_.note_reading();
  return bytes && *bytes <= most ? bytes : std::nullopt;
}

void ObjectSpan::made(const tracking::ImplicitObject& object) noexcept {
  call_.execution().objects.made(call_.caller(), object, here_, taken());
}

void ObjectSpan::used(const tracking::ImplicitObject& object) noexcept {
  call_.execution().objects.took_more(call_.caller(), object, here_, taken());
}

ObjectEnd::ObjectEnd(HookedCall& call, const tracking::ImplicitObject& object,
                     ObjectSpan::When when) noexcept
    : call_(call), span_(call), object_(object) {
  if (!call.recording()) return;
  const ErrnoGuard keep;
  const ExecutionParts parts = call.execution();
  record_ = parts.objects.take(object);
  const DeviceOrdinal here = parts.queries.current().device;
  device_ = record_ ? parts.objects.device_of(record_) : here;
  // Only the current device can be read.
  if (device_ == here && may_measure(parts, when)) span_.begin(here);
}

void ObjectEnd::done(CUresult result) noexcept {
  if (!call_.recording()) return;
  const ErrnoGuard keep;
  const tracking::Taken taken = span_.taken();
  tracking::ImplicitObjects& objects = call_.execution().objects;
  if (result != CUDA_SUCCESS) return objects.not_ended(record_);
  objects.ended(object_, record_, device_, taken);
  if (taken && *taken != 0) span_.note_reading();
}

}  // namespace cuwarden::hooks

#include "runtime_hooks/hooks/call/session_parts.hpp"

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"

namespace cuwarden::hooks {

bool GraphParts::capture_begins(CUstream stream, bool per_thread,
                                CUstreamCaptureMode mode) const noexcept {
  if (!session_.refusals.rescues()) return false;
  const bool is_new = captures.begins(stream, per_thread, session_.queries.current().context, mode);
  session_.refusals.pending().capture_begins();
  return is_new;
}

std::uint64_t ExecutionParts::context_ended(ContextId context) const noexcept {
  const ErrnoGuard keep;
  const DeviceOrdinal device = contexts.device_of(context);
  contexts.records_end(context);
  const auto live = [&](Kind kind) {
    return static_cast<std::int64_t>(totals.live_bytes_on(device, kind));
  };
  ledger::ImplicitChange change{.module_bytes = -live(Kind::module),
                                .stream_bytes = -live(Kind::stream),
                                .graph_bytes = -live(Kind::graph_exec)};
  const std::uint64_t ended_bytes = context_memory.context_ended(context, device);
  session_.ledger.allocations.release_context(context);
  change.module_bytes += live(Kind::module);
  change.stream_bytes += live(Kind::stream);
  change.graph_bytes += live(Kind::graph_exec);
  implicit.book(device, change);
  if (session_.refusals.rescues()) session_.captures.context_ends(context);
  pools.context_ended(context);
  contexts.ended(context);
  implicit.context_ended();
  objects.context_ended(context);
  return ended_bytes;
}

void ExecutionParts::stream_ends(CUstream stream) const noexcept {
  if (!session_.refusals.rescues()) return;
  session_.refusals.pending().stream_ends(stream);
  session_.captures.stream_ends(stream);
  if (pools.free_deferred_if_idle()) implicit.bases.memory_may_change();
}

}  // namespace cuwarden::hooks

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
  const std::uint64_t ended_bytes = context_memory.context_ended(context, device);
  ledger::ImplicitChange change;
  const ledger::GroupTable& groups = session_.ledger.groups;
  session_.ledger.allocations.release_context(context, [&](GroupId group, std::uint64_t bytes) {
    const auto less = static_cast<std::int64_t>(bytes);
    const Kind kind = groups.kind_of(group);
    if (kind == Kind::module) change.module_bytes -= less;
    if (kind == Kind::stream) change.stream_bytes -= less;
    if (kind == Kind::graph_exec) change.graph_bytes -= less;
  });
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

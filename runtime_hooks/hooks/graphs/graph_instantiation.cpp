#include "runtime_hooks/hooks/graphs/graph_instantiation.hpp"

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/hooks/execution/kernel_memory.hpp"

namespace cuwarden::hooks {

GraphInstantiation::GraphInstantiation(HookedCall& call) noexcept : call_(call), span_(call) {
  if (!call.recording()) return;
  const ErrnoGuard keep;
  const ExecutionParts parts = call.execution();
  here_ = parts.queries.current();
  auto* const launches = parts.implicit.launches_of(here_.device, here_.context);
  may_take_gigabytes_ =
      launches != nullptr && (launches->captured_local_bytes.load(std::memory_order_relaxed) >
                                  launches->local_bytes.load(std::memory_order_relaxed) ||
                              launches->may_read_for_heap());
  if (may_take_gigabytes_ ||
      (!parts.captures.any() && parts.implicit.may_read(parts.time.recently_ns())))
    span_.begin(here_.device);
  base_ = parts.implicit.bases.of(here_.device);
}

void GraphInstantiation::done(CUgraphExec made) noexcept {
  if (!call_.recording()) return;
  const ErrnoGuard keep;
  tracking::Taken taken = span_.taken();
  call_.keeps_bases();
  // Memory that was not measured may be far more than the executable graph.
  if (!taken && may_take_gigabytes_) call_.execution().implicit.bases.memory_may_change();
  bool is_changed = false;
  if (taken && *taken > 0) {
    const ledger::ImplicitChange for_kernels = kernels_part(*taken);
    const std::int64_t bytes = for_kernels.local_memory_bytes + for_kernels.heap_bytes;
    if (bytes != 0) call_.execution().context_memory.book(call_.caller(), here_, for_kernels);
    *taken -= bytes;
    is_changed = true;
  }
  call_.execution().objects.made({.caller = call_.caller(),
                                  .here = here_,
                                  .base = base_,
                                  .taken = taken,
                                  .is_doubtful = span_.is_doubtful()},
                                 object_of_graph(made));
  if (is_changed) span_.note_reading();
}

// cuwarden does not know which graph the captured kernels belong to. A graph without them takes
// less memory than they need; then all belongs to the executable graph.
ledger::ImplicitChange GraphInstantiation::kernels_part(std::int64_t taken) noexcept {
  auto* const launches = call_.execution().implicit.launches_of(here_.device, here_.context);
  if (launches == nullptr) return {};
  const std::uint64_t before = launches->local_bytes.load(std::memory_order_relaxed);
  const std::uint64_t needed = launches->captured_local_bytes.load(std::memory_order_relaxed);
  if (needed <= before) {
    const std::int64_t heap =
        heap_among(taken, launches->heap_bytes.load(std::memory_order_relaxed));
    if (heap != 0) launches->heap_bytes.store(0, std::memory_order_relaxed);
    return {.heap_bytes = heap};
  }
  const auto local =
      static_cast<std::int64_t>(resident_threads(call_.real(), here_.device) * (needed - before));
  if (taken < local / 2) return {};
  raise_to(launches->local_bytes, needed);
  launches->captured_local_bytes.store(0, std::memory_order_relaxed);
  return {.local_memory_bytes = std::min(taken, local)};
}

}  // namespace cuwarden::hooks

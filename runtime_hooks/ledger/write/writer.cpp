#include "runtime_hooks/ledger/write/writer.hpp"

#include <new>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/ledger_name.hpp"
#include "runtime_hooks/ledger/write/process_facts.hpp"
#include "runtime_hooks/ledger/write/writer_state.hpp"

namespace cuwarden::ledger {
namespace {

constinit std::atomic<std::uint32_t> next_serial{1};

}  // namespace

Writer::Writer(State& state) noexcept
    : file(state.storage),
      time(state.time),
      allocations(state.allocations),
      virtual_memory(state.virtual_memory),
      stacks(state.stacks),
      python(state.python),
      groups(state.groups),
      totals(state.totals),
      devices(state.devices),
      incidents(state.incidents),
      threads(state.threads),
      thread_shards(state.thread_shards),
      names(state.names),
      steps(state.steps),
      frameworks(state.frameworks) {}

Writer* Writer::create(const Creation& creation) noexcept {
  const ErrnoGuard guard;
  Mapping memory = Mapping::anonymous(sizeof(State));
  if (!memory) return nullptr;
  auto* const state = new (memory.data()) State;
  Storage& storage = state->storage;
  const LedgerName name = ledger_name(creation.pid);
  if (!storage.create({.folders = creation.folders,
                       .name = name.text,
                       .largest_bytes = creation.largest_file_bytes,
                       .hooks = creation.hook_names.size(),
                       .without_populate = creation.without_populate})) {
    return nullptr;
  }
  record_process(storage, creation.pid);
  Header& header = storage.header();
  header.process.report_path = storage.store(creation.report_path);
  const bool made =
      state->thread_shards.create(next_serial.fetch_add(1, relaxed), header.process.pid) &&
      state->totals.create() && state->slabs.create() &&
      state->modules.create(header.process.program) && state->stacks.create() &&
      state->python.create() && state->groups.create() &&
      storage.allocate_hooks(creation.hook_names.size());
  if (!made) {
    storage.remove();
    return nullptr;
  }
  Hook* const hooks = storage.rows<Hook>(RegionId::hooks);
  for (std::size_t i = 0; i < creation.hook_names.size(); ++i) {
    hooks[i].name = storage.store(creation.hook_names[i]);
  }
  state->time.set_start(header.process.start_monotonic_ns);
  header.checksum = header_checksum(header);
  header.published.store(1, std::memory_order_release);
  memory.release();
  return &state->self;
}

void Writer::set_versions(int driver, int runtime) noexcept {
  if (driver > 0) file.header().driver_version.store(static_cast<std::uint32_t>(driver), relaxed);
  if (runtime > 0)
    file.header().runtime_version.store(static_cast<std::uint32_t>(runtime), relaxed);
}

void Writer::set_end(EndReason reason, int exit_status, bool status_known) noexcept {
  file.header().exit_status.store(static_cast<std::uint32_t>(exit_status), relaxed);
  file.header().exit_status_known.store(status_known ? 1 : 0, relaxed);
  file.header().end_reason.store(static_cast<std::uint32_t>(reason), std::memory_order_release);
}

}  // namespace cuwarden::ledger

#include "runtime_hooks/hooks/frameworks/pytorch.hpp"

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/frameworks.hpp"

namespace cuwarden::hooks {

void pytorch_reports(Session& session, const void* frame, const PyTorchBlock& block) noexcept {
  if (session.sites.interpreter_has_ended()) {
    if (block.bytes < 0) return;
    // A program that embeds the interpreter goes on.
    session.sites.forget_interpreters_end();
  }
  session.ledger.frameworks.pytorch(block.device, block.reserved_bytes, block.allocated_bytes);
  if (!session.records_blocks || block.bytes == 0 || block.address == 0) return;
  const ErrnoGuard keep;
  const OwnWork work(frame);
  const DeviceAddress address{block.address};
  if (block.bytes < 0) {
    session.ledger.allocations.take(Space::framework_block, address);
    return;
  }
  ledger::NewRecord record;
  record.space = Space::framework_block;
  record.address = address;
  record.bytes.value = static_cast<std::uint64_t>(block.bytes);
  record.group = session.sites.group_unguarded({ledger::no_function, frame}, Kind::framework_block,
                                               block.device);
  record.time_ns = session.ledger.time.recently_ns();
  session.ledger.allocations.add(record);
  session.allocations.give_notice();
}

}  // namespace cuwarden::hooks

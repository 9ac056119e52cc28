#include "runtime_hooks/ledger/write/devices.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::ledger {
namespace {

// Longest name of a kernel that is stored; templates make long names.
constexpr std::size_t longest_kernel_name = 1024;

// Marks a device's numbers as changing for the length of a scope: the version is odd meanwhile.
class Changing {
 public:
  explicit Changing(Device& device) : version_(device.version) {
    version_.fetch_add(1, std::memory_order_acq_rel);
  }
  ~Changing() { version_.fetch_add(1, std::memory_order_release); }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;

 private:
  std::atomic<std::uint32_t>& version_;
};

void change(std::atomic<std::uint64_t>& number, std::int64_t difference) {
  const std::uint64_t before = number.load(relaxed);
  const std::uint64_t less = difference < 0 ? 0 - static_cast<std::uint64_t>(difference) : 0;
  const std::uint64_t more = difference > 0 ? static_cast<std::uint64_t>(difference) : 0;
  number.store(before + more - std::min(before, less), std::memory_order_release);
}

// A number of a device. `lent`: bytes of it that the driver gave back and may take again; null if
// it takes none again.
struct Returned {
  std::atomic<std::uint64_t>* number;
  std::atomic<std::uint64_t>* lent = nullptr;
};

// Takes the bytes from one number after the other, until nothing is left to take.
void give_back(std::uint64_t bytes, std::initializer_list<Returned> all) noexcept {
  for (const Returned& each : all) {
    const std::uint64_t part = std::min(bytes, each.number->load(relaxed));
    each.number->store(each.number->load(relaxed) - part, std::memory_order_release);
    if (each.lent != nullptr) each.lent->fetch_add(part, relaxed);
    bytes -= part;
  }
}
void take_again(std::uint64_t bytes, std::initializer_list<Returned> all) noexcept {
  for (const Returned& each : all) {
    const std::uint64_t part = std::min(bytes, each.lent->load(relaxed));
    change(*each.number, static_cast<std::int64_t>(part));
    each.lent->fetch_sub(part, relaxed);
    bytes -= part;
  }
}

// Returns the changes from the first numbers to the second ones.
ImplicitEffect effect_between(const ImplicitBytes& before, const ImplicitBytes& after) noexcept {
  return {static_cast<std::int64_t>(after.further_contexts - before.further_contexts),
          static_cast<std::int64_t>(after.local_memory - before.local_memory),
          static_cast<std::int64_t>(after.heap - before.heap)};
}

}  // namespace

Device* Devices::row(DeviceOrdinal ordinal) noexcept {
  Device* const rows = storage_.rows<Device>(RegionId::devices);
  const std::uint64_t used = storage_.used(RegionId::devices);
  for (std::uint64_t i = 1; i < used; ++i) {
    if (rows[i].ordinal == ordinal.value) return rows + i;
  }
  const std::uint64_t made = storage_.allocate(RegionId::devices, 1);
  if (made == 0) {
    storage_.add_reason(reason_names_missing);
    return nullptr;
  }
  rows[made].ordinal = ordinal.value;
  return rows + made;
}

void Devices::identify(DeviceOrdinal ordinal, std::string_view name,
                       const std::uint8_t (&uuid)[16]) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  Device* const device = row(ordinal);
  if (device == nullptr || device->state.load(relaxed) != 0) return;
  std::memcpy(device->uuid, uuid, sizeof uuid);
  std::memcpy(device->name, name.data(), std::min(name.size(), sizeof device->name - 1));
  device->state.store(1, std::memory_order_release);
}

void Devices::note_reading(DeviceOrdinal ordinal, const Reading& reading) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  Device* const device = row(ordinal);
  if (device == nullptr) return;
  const Changing changing(*device);
  device->at.store(static_cast<std::uint32_t>(reading.at), std::memory_order_release);
  device->time_ns.store(time_.now_ns(), std::memory_order_release);
  device->total_bytes.store(reading.total_bytes, std::memory_order_release);
  device->free_bytes.store(reading.free_bytes, std::memory_order_release);
  device->memory_pool_idle_bytes.store(reading.memory_pool_idle_bytes.value_or(unknown_value),
                                       std::memory_order_release);
  const auto less = [](std::uint64_t bytes, std::uint64_t part) {
    return bytes - std::min(bytes, part);
  };
  const std::uint64_t spilled = less(device->spilled_bytes.load(relaxed),
                                     device->spilled_in_stream_order_bytes.load(relaxed));
  device->allocated_when_read_bytes.store(
      less(reading.allocated_bytes, spilled) +
          less(device->arena_held_bytes.load(relaxed), device->arena_live_bytes.load(relaxed)),
      std::memory_order_release);
  device->implicit_when_read_bytes.store(implicit_bytes_of(*device).all(),
                                         std::memory_order_release);
}

void Devices::set_other_processes(DeviceOrdinal ordinal, ByteCount bytes) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  Device* const device = row(ordinal);
  if (device == nullptr) return;
  const Changing changing(*device);
  device->other_processes_bytes.store(bytes.value, std::memory_order_release);
}

void Devices::spilled(DeviceOrdinal ordinal, Kind kind, ByteCount in_host) noexcept {
  const LedgerLocked locked(lock_, storage_);
  Device* const device = locked ? row(ordinal) : nullptr;
  if (device == nullptr) return;
  const std::uint64_t now = device->spilled_bytes.load(relaxed) + in_host.value;
  device->spilled_bytes.store(now, relaxed);
  device->spilled_peak_bytes.store(std::max(now, device->spilled_peak_bytes.load(relaxed)),
                                   relaxed);
  device->spilled_count.fetch_add(1, relaxed);
  if (kind == Kind::stream_ordered)
    change(device->spilled_in_stream_order_bytes, static_cast<std::int64_t>(in_host.value));
}

void Devices::unspilled(DeviceOrdinal ordinal, Kind kind, ByteCount in_host) noexcept {
  const LedgerLocked locked(lock_, storage_);
  Device* const device = locked ? row(ordinal) : nullptr;
  if (device == nullptr) return;
  const std::int64_t less = -static_cast<std::int64_t>(in_host.value);
  change(device->spilled_bytes, less);
  if (kind == Kind::stream_ordered) change(device->spilled_in_stream_order_bytes, less);
}

std::uint64_t Devices::spilled_bytes_on(DeviceOrdinal ordinal) noexcept {
  const LedgerLocked locked(lock_, storage_);
  const Device* const device = locked ? row(ordinal) : nullptr;
  return device == nullptr ? 0 : device->spilled_bytes.load(relaxed);
}

std::uint64_t Devices::spilled_in_stream_order_on(DeviceOrdinal ordinal) noexcept {
  const LedgerLocked locked(lock_, storage_);
  const Device* const device = locked ? row(ordinal) : nullptr;
  return device == nullptr ? 0 : device->spilled_in_stream_order_bytes.load(relaxed);
}

void Devices::set_arena(DeviceOrdinal ordinal, const ArenaUse& use) noexcept {
  const LedgerLocked locked(lock_, storage_);
  Device* const device = locked ? row(ordinal) : nullptr;
  if (device == nullptr) return;
  device->arena_held_bytes.store(use.held_bytes, relaxed);
  device->arena_live_bytes.store(use.live_bytes, relaxed);
  device->arena_served_count.store(use.served_count, relaxed);
  device->arena_served_bytes.store(use.served_bytes, relaxed);
  device->arena_returned_bytes.store(use.returned_bytes, relaxed);
  device->arena_meshed_pages.store(use.meshed_pages, relaxed);
  device->arena_meshed_bytes.store(use.meshed_bytes, relaxed);
  device->arena_pause_ns.store(use.pause_ns, relaxed);
  device->arena_pauses.store(use.pauses, relaxed);
  device->arena_plan_ns.store(use.plan_ns, relaxed);
  device->arena_prepare_ns.store(use.prepare_ns, relaxed);
  device->arena_release_ns.store(use.release_ns, relaxed);
}

ImplicitEffect Devices::change_implicit(DeviceOrdinal ordinal,
                                        const ImplicitChange& given) noexcept {
  const LedgerLocked locked(lock_, storage_);
  Device* const device = locked ? row(ordinal) : nullptr;
  if (device == nullptr) return {};
  const ImplicitBytes before = implicit_bytes_of(*device);
  const bool is_largest = given.largest_local_bytes >
                          (given.contexts_ended ? 0 : device->largest_local_bytes.load(relaxed));
  // A kernel may be the largest in several contexts, one after the other; its name is stored once.
  StringRef name = device->largest_local_kernel;
  if (is_largest) {
    const std::string_view known(storage_.rows<char>(RegionId::strings) + name.offset, name.length);
    const std::string_view found = given.largest_local_kernel.substr(0, longest_kernel_name);
    if (found != known) name = storage_.store(found);
  }

  const Changing changing(*device);
  if (given.contexts_ended) {
    for (std::atomic<std::uint64_t>* number :
         {&device->used_after_first_context_bytes, &device->context_bytes, &device->module_bytes,
          &device->local_memory_bytes, &device->heap_bytes, &device->stream_bytes,
          &device->graph_bytes, &device->largest_local_bytes, &device->lent_first_context_bytes,
          &device->lent_context_bytes})
      number->store(0, std::memory_order_release);
  }
  if (given.first_ended) {
    device->used_after_first_context_bytes.store(0, std::memory_order_release);
    device->lent_first_context_bytes.store(0, std::memory_order_release);
  }
  if (given.used_after_first_context_bytes != 0) {
    // The memory was there at the last reading, too: only its owner becomes known.
    const std::uint64_t earlier = implicit_bytes_of(*device).contexts();
    device->used_after_first_context_bytes.store(given.used_after_first_context_bytes,
                                                 std::memory_order_release);
    const std::uint64_t later = implicit_bytes_of(*device).contexts();
    change(device->implicit_when_read_bytes,
           static_cast<std::int64_t>(later) - static_cast<std::int64_t>(earlier));
  }
  change(device->context_bytes, given.context_bytes);
  change(device->module_bytes, given.module_bytes);
  change(device->local_memory_bytes, given.local_memory_bytes);
  change(device->heap_bytes, given.heap_bytes);
  change(device->stream_bytes, given.stream_bytes);
  change(device->graph_bytes, given.graph_bytes);
  const Returned first_context{&device->used_after_first_context_bytes,
                               &device->lent_first_context_bytes};
  const Returned contexts{&device->context_bytes, &device->lent_context_bytes};
  give_back(given.given_back_bytes,
            {{&device->local_memory_bytes}, {&device->module_bytes}, contexts, first_context});
  take_again(given.taken_again_bytes, {first_context, contexts});
  give_back(given.one_ended_bytes, {{&device->context_bytes},
                                    {&device->local_memory_bytes},
                                    {&device->module_bytes},
                                    {&device->heap_bytes},
                                    {&device->stream_bytes},
                                    {&device->graph_bytes}});
  if (is_largest) {
    device->largest_local_bytes.store(given.largest_local_bytes, std::memory_order_release);
    store_field(device->largest_local_kernel.offset, name.offset);
    store_field(device->largest_local_kernel.length, name.length);
  }
  return effect_between(before, implicit_bytes_of(*device));
}

ImplicitBytes Devices::implicit_bytes(DeviceOrdinal ordinal) noexcept {
  const LedgerLocked locked(lock_, storage_);
  const Device* const device = locked ? row(ordinal) : nullptr;
  return device == nullptr ? ImplicitBytes{} : implicit_bytes_of(*device);
}

std::uint64_t Devices::lent_context_bytes(DeviceOrdinal ordinal) noexcept {
  const LedgerLocked locked(lock_, storage_);
  const Device* const device = locked ? row(ordinal) : nullptr;
  return device == nullptr ? 0
                           : device->lent_first_context_bytes.load(relaxed) +
                                 device->lent_context_bytes.load(relaxed);
}

}  // namespace cuwarden::ledger

#include "shim/runtime_tables.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shim/driver_table.hpp"
#include "shim/loaded_objects.hpp"

namespace cuwarden::shim {
namespace {

constexpr std::size_t table_limit = 8;  // distinct libcudarts in one process

struct Table {
  std::atomic<std::uintptr_t> base{0};  // load address of the cudart; 0: free
  std::atomic<bool> filled{false};
  driver::RealRuntime functions{};
  int (*get_version)(int*) = nullptr;
};
constinit Table tables[table_limit]{};
constinit std::atomic<std::uint32_t> generation{1};

// The last caller of this thread. Initial-exec TLS: no allocation, no lock.
struct LastCaller {
  std::uintptr_t start, end;
  const Table* table;
  std::uint32_t generation;
};
constinit thread_local LastCaller last_caller __attribute__((tls_model("initial-exec"))){};

// A cudart, or a library of the program's own that stands in front of one.
bool provides_runtime(const LoadedObject& object) {
  void* found = object.find("cudaMalloc");
  return found != nullptr && found != hook_named("cudaMalloc");
}

LoadedObject object_named(std::string_view name) {
  LoadedObject found;
  any_loaded_object([&](const LoadedObject& object) {
    if (object.soname() != name && !object.path().ends_with(name)) return false;
    found = object;
    return true;
  });
  return found;
}

// The first provider among what `object` needs, breadth first, as the loader searches. `object`
// itself does not count: a wrapper that asked for the next one would come back to itself.
LoadedObject provider_needed_by(const LoadedObject& object) {
  constexpr std::size_t reach = 64;
  LoadedObject queue[reach];
  std::size_t queued = 0;
  queue[queued++] = object;
  LoadedObject provider;
  for (std::size_t i = 0; i < queued && !provider; ++i)
    queue[i].any_needed([&](std::string_view needed) {
      const LoadedObject next = object_named(needed);
      if (!next) return false;
      if (provides_runtime(next)) {
        provider = next;
        return true;
      }
      for (std::size_t j = 0; j < queued; ++j)
        if (queue[j].base() == next.base()) return false;
      if (queued < reach) queue[queued++] = next;
      return false;
    });
  return provider;
}

LoadedObject first_provider() {
  LoadedObject provider;
  any_loaded_object([&](const LoadedObject& object) {
    if (!provides_runtime(object)) return false;
    provider = object;
    return true;
  });
  return provider;
}

// What a wrapper library does not define itself comes from the cudart that it needs.
template <class Function>
void fill(Function& slot, const LoadedObject& provider, const LoadedObject& behind,
          std::string_view name) {
  void* found = provider.find(name);
  if (found == nullptr) found = behind.find(name);
  if (found == hook_named(name)) found = nullptr;
  __atomic_store_n(reinterpret_cast<void**>(&slot), found, __ATOMIC_RELAXED);
}

const Table* table_of(const LoadedObject& provider) {
  for (Table& table : tables) {
    std::uintptr_t base = 0;
    if (!table.base.compare_exchange_strong(base, provider.base()) && base != provider.base())
      continue;
    if (!table.filled.load(std::memory_order_acquire)) {
      const LoadedObject behind = provider_needed_by(provider);
#define RUNTIME(result, name, parameters, arguments) \
  fill(table.functions.name, provider, behind, #name);
#include "runtime_hooks/driver/hooks.def"
      fill(table.get_version, provider, behind, "cudaRuntimeGetVersion");
      table.filled.store(true, std::memory_order_release);
    }
    return &table;
  }
  return nullptr;
}

}  // namespace

const driver::RealRuntime* real_runtime_for(const void* return_address) {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  const std::uint32_t now = generation.load(std::memory_order_acquire);
  LastCaller& last = last_caller;
  if (last.generation == now && address >= last.start && address < last.end)
    return &last.table->functions;
  LoadedObject caller;
  any_loaded_object([&](const LoadedObject& object) {
    if (!object.contains(address)) return false;
    caller = object;
    return true;
  });
  LoadedObject provider = caller ? provider_needed_by(caller) : LoadedObject();
  // A caller that takes it from the global scope, or code that no module holds.
  if (!provider) provider = first_provider();
  const Table* table = provider ? table_of(provider) : nullptr;
  if (table == nullptr) return nullptr;
  if (caller) last = {caller.start(), caller.end(), table, now};
  return &table->functions;
}

void forget_callers_of_runtime() { generation.fetch_add(1, std::memory_order_release); }

int runtime_version() {
  int version = 0;
  for (const Table& table : tables)
    if (table.filled.load(std::memory_order_acquire) && table.get_version != nullptr &&
        table.get_version(&version) == 0)
      return version;
  return 0;
}

}  // namespace cuwarden::shim

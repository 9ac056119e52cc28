// Page-locked host memory: pinned memory comes from the driver, registered memory is the program's
// own.
#include <optional>

#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/serving/pool_memory.hpp"

namespace cuwarden::hooks {
namespace {

// Allocates pinned memory. `flags` are those of cuMemHostAlloc; none for cuMemAllocHost.
template <class RealCall>
CUresult pinned(HookedCall& call, void** address, std::uint64_t bytes,
                std::optional<unsigned> flags, RealCall real_call) {
  Allocation memory{.kind = Kind::pinned, .bytes = bytes, .owned_by_context = true, .host = true};
  if (address != nullptr && call.recording()) {
    memory.address = call.memory().pools.allocate_pinned(bytes, flags);
    if (memory.address != 0) {
      *address = reinterpret_cast<void*>(memory.address);
      memory.in_pool = true;
      call.allocated(CUDA_SUCCESS, memory);
      return CUDA_SUCCESS;
    }
  }
  const CUresult result = call.allocate(memory, real_call);
  if (result == CUDA_SUCCESS) memory.address = reinterpret_cast<std::uint64_t>(*address);
  call.allocated(result, memory);
  return result;
}

template <class RealCall>
CUresult registered(HookedCall& call, void* address, std::uint64_t bytes, RealCall real_call) {
  const Allocation memory{.kind = Kind::registered,
                          .space = Space::registered,
                          .address = reinterpret_cast<std::uint64_t>(address),
                          .bytes = bytes,
                          .owned_by_context = true,
                          .host = true};
  const CUresult result = call.allocate(memory, real_call);
  call.allocated(result, memory);
  return result;
}

}  // namespace

#define OF_HOST_MEMORY CUWARDEN_HOOK_BY
#include "runtime_hooks/driver/hooks.def"

CUresult cuMemFreeHost(HookedCall& call, void* p) {
  return call.freed(Space::pointer, reinterpret_cast<std::uint64_t>(p), [&] {
    return serving::is_of_pinned_pool(p) ? serving::free_of_pinned_pool(call.real(), p)
                                         : call.real().cuMemFreeHost(p);
  });
}

CUresult cuMemHostUnregister(HookedCall& call, void* p) {
  return call.freed(Space::registered, reinterpret_cast<std::uint64_t>(p),
                    [&] { return call.real().cuMemHostUnregister(p); });
}

}  // namespace cuwarden::hooks

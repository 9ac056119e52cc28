// Linear device memory: cuMemAlloc, cuMemAllocPitch, cuMemFree. cuMemFree also frees managed,
// stream-ordered, imported and graph pointers, since all of them share one address space.
#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/serving/pool_memory.hpp"

namespace cuwarden::hooks {
namespace {

Allocation linear(std::uint64_t address, std::uint64_t bytes) {
  return {.kind = Kind::device, .address = address, .bytes = bytes, .owned_by_context = true};
}

// A row of pitched memory takes a multiple of this many bytes (measured).
constexpr std::uint64_t row_step = 512;
std::uint64_t pitch_of(std::uint64_t width) {
  return width > UINT64_MAX - row_step ? width : (width + row_step - 1) / row_step * row_step;
}
std::uint64_t bytes_of_rows(std::uint64_t pitch, std::uint64_t rows) {
  std::uint64_t bytes = 0;
  return __builtin_mul_overflow(pitch, rows, &bytes) ? UINT64_MAX : bytes;
}
bool is_size_of_element(unsigned bytes) { return bytes == 4 || bytes == 8 || bytes == 16; }

struct Made {
  CUresult result = CUDA_SUCCESS;
  bool in_pool = false;
};

// Serves a request from cuwarden's pool, from the driver, or by the ladder. Calls `put` with the
// address if the memory is not the driver's. `can_put` is false if an argument is not valid: then
// only the driver is asked, since it knows the right error.
template <class Put, class RealCall>
Made allocate(HookedCall& call, std::uint64_t bytes, bool can_put, const Put& put,
              const RealCall& real_call) {
  if (can_put && call.recording()) {
    if (const std::uint64_t address = call.memory().pools.allocate(bytes)) {
      put(address);
      return {CUDA_SUCCESS, true};
    }
  }
  using rescue::Accepts;
  const auto [result, address] = call.allocate(
      linear(0, bytes), real_call, can_put ? Accepts::any_memory : Accepts::drivers_memory);
  if (address != 0) put(address);
  return {result};
}

void record(HookedCall& call, const Made& made, const CUdeviceptr* dptr, std::uint64_t bytes) {
  Allocation memory = linear(made.result == CUDA_SUCCESS ? *dptr : 0, bytes);
  memory.in_pool = made.in_pool;
  call.allocated(made.result, memory);
}

}  // namespace

CUresult cuMemAlloc(HookedCall& call, CUdeviceptr_v1* dptr, unsigned int bytesize) {
  const CUresult result =
      call.allocate(linear(0, bytesize), [&] { return call.real().cuMemAlloc(dptr, bytesize); });
  call.allocated(result, linear(result == CUDA_SUCCESS ? *dptr : 0, bytesize));
  return result;
}

CUresult cuMemAlloc_v2(HookedCall& call, CUdeviceptr* dptr, size_t bytesize) {
  const auto put = [dptr](std::uint64_t address) { *dptr = address; };
  const Made made = allocate(call, bytesize, dptr != nullptr, put,
                             [&] { return call.real().cuMemAlloc_v2(dptr, bytesize); });
  record(call, made, dptr, bytesize);
  return made.result;
}

CUresult cuMemAllocPitch(HookedCall& call, CUdeviceptr_v1* dptr, unsigned int* pPitch,
                         unsigned int WidthInBytes, unsigned int Height,
                         unsigned int ElementSizeBytes) {
  const std::uint64_t bytes = bytes_of_rows(pitch_of(WidthInBytes), Height);
  const CUresult result = call.allocate(linear(0, bytes), [&] {
    return call.real().cuMemAllocPitch(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  });
  if (result == CUDA_SUCCESS)
    call.allocated(result, linear(*dptr, std::uint64_t{*pPitch} * Height));
  else
    call.allocated(result, linear(0, bytes));
  return result;
}

CUresult cuMemAllocPitch_v2(HookedCall& call, CUdeviceptr* dptr, size_t* pPitch,
                            size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes) {
  const std::uint64_t pitch = pitch_of(WidthInBytes), bytes = bytes_of_rows(pitch, Height);
  const bool can_put =
      dptr != nullptr && pPitch != nullptr && bytes != 0 && is_size_of_element(ElementSizeBytes);
  const auto put = [=](std::uint64_t address) {
    *dptr = address;
    *pPitch = pitch;
  };
  const Made made = allocate(call, bytes, can_put, put, [&] {
    return call.real().cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  });
  record(call, made, dptr, made.result == CUDA_SUCCESS ? *pPitch * Height : bytes);
  return made.result;
}

CUresult cuMemFree(HookedCall& call, CUdeviceptr_v1 dptr) {
  return call.freed(Space::pointer, dptr, [&] { return call.real().cuMemFree(dptr); });
}

CUresult cuMemFree_v2(HookedCall& call, CUdeviceptr dptr) {
  const bool is_of_pool = serving::is_of_pool(dptr);
  const CUresult result = call.freed(
      Space::pointer, dptr,
      [&] {
        return is_of_pool ? serving::free_of_pool(call.real(), dptr)
                          : call.real().cuMemFree_v2(dptr);
      },
      [&](const ledger::TakenRecord& taken) {
        if (!is_of_pool) call.memory().freed_out_of_order(taken);
      });
  if (is_of_pool && result == CUDA_SUCCESS && call.recording()) serving::memory_of_pool_was_freed();
  return result;
}

}  // namespace cuwarden::hooks

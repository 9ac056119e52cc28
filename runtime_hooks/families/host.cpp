// Page-locked host memory: allocated by the driver (pinned) or the program's own (registered).
#include "runtime_hooks/families/bodies.hpp"

namespace cuwarden::families {
namespace {

Allocation pinned(CUresult result, void** address, std::uint64_t bytes) {
  return {.kind = Kind::pinned,
          .address = result == CUDA_SUCCESS ? reinterpret_cast<std::uint64_t>(*address) : 0,
          .bytes = bytes,
          .owned_by_context = true,
          .host = true};
}

Allocation registered(void* address, std::uint64_t bytes) {
  return {.kind = Kind::registered,
          .space = Space::registered,
          .address = reinterpret_cast<std::uint64_t>(address),
          .bytes = bytes,
          .owned_by_context = true,
          .host = true};
}

}  // namespace

CUresult cuMemAllocHost(HookedCall& call, void** pp, unsigned int bytesize) {
  const CUresult result = call.real().cuMemAllocHost(pp, bytesize);
  call.allocated(result, pinned(result, pp, bytesize));
  return result;
}

CUresult cuMemAllocHost_v2(HookedCall& call, void** pp, size_t bytesize) {
  const CUresult result = call.real().cuMemAllocHost_v2(pp, bytesize);
  call.allocated(result, pinned(result, pp, bytesize));
  return result;
}

CUresult cuMemHostAlloc(HookedCall& call, void** pp, size_t bytesize, unsigned int Flags) {
  const CUresult result = call.real().cuMemHostAlloc(pp, bytesize, Flags);
  call.allocated(result, pinned(result, pp, bytesize));
  return result;
}

CUresult cuMemFreeHost(HookedCall& call, void* p) {
  return call.freed(Space::pointer, reinterpret_cast<std::uint64_t>(p),
                    [&] { return call.real().cuMemFreeHost(p); });
}

CUresult cuMemHostRegister(HookedCall& call, void* p, size_t bytesize, unsigned int Flags) {
  const CUresult result = call.real().cuMemHostRegister(p, bytesize, Flags);
  call.allocated(result, registered(p, bytesize));
  return result;
}

CUresult cuMemHostRegister_v2(HookedCall& call, void* p, size_t bytesize, unsigned int Flags) {
  const CUresult result = call.real().cuMemHostRegister_v2(p, bytesize, Flags);
  call.allocated(result, registered(p, bytesize));
  return result;
}

CUresult cuMemHostUnregister(HookedCall& call, void* p) {
  return call.freed(Space::registered, reinterpret_cast<std::uint64_t>(p),
                    [&] { return call.real().cuMemHostUnregister(p); });
}

}  // namespace cuwarden::families

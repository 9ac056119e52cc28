#include "tests/bench/stacks/recorded_pair.hpp"

#include <array>

#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "tests/unit/quiet_shim.hpp"

namespace cuwarden::bench {
namespace {

using namespace hooks;

driver::RealDriver idle_driver() {
  driver::RealDriver real;
  real.cuCtxGetCurrent = [](CUcontext* context) {
    return *context = reinterpret_cast<CUcontext>(0x1000), CUDA_SUCCESS;
  };
  real.cuCtxGetDevice = [](CUdevice* device) { return *device = 0, CUDA_SUCCESS; };
  real.cuMemGetInfo_v2 = [](std::size_t* free, std::size_t* total) {
    return *free = 100, *total = 1000, CUDA_SUCCESS;
  };
  real.cuMemAlloc_v2 = [](CUdeviceptr* out, std::size_t) {
    static constinit CUdeviceptr next = 1 << 20;
    return *out = next += 512, CUDA_SUCCESS;
  };
  real.cuMemFree_v2 = [](CUdeviceptr) { return CUDA_SUCCESS; };
  return real;
}

struct Recording {
  explicit Recording(unsigned depth)
      : session(*writer, real, shim.around(), {.stack_depth = depth, .python_frames = true}) {
    writer->file.remove();
  }
  const std::array<const char*, 2> folders = {"/dev/shm", "/tmp"};
  ledger::Writer* const writer = ledger::Writer::create(
      {.folders = folders, .hook_names = driver::row_names, .report_path = "/r"});
  const driver::RealDriver real = idle_driver();
  QuietShim shim;
  Session session;
};

Recording& recording(std::size_t depth) {
  static auto* const short_ones = new Recording(10);
  static auto* const middling = new Recording(30);
  static auto* const long_ones = new Recording(60);
  return depth == 10 ? *short_ones : depth == 30 ? *middling : *long_ones;
}

// Calls the hooks as the exported functions do.
[[gnu::noinline]] CUdeviceptr allocate(Recording& in) {
  HookedCall call(in.real, &in.session, driver::Row::cuMemAlloc_v2);
  CUdeviceptr memory = 0;
  cuMemAlloc_v2(call, &memory, 512);
  return memory;
}
[[gnu::noinline]] void release(Recording& in, CUdeviceptr memory) {
  HookedCall call(in.real, &in.session, driver::Row::cuMemFree_v2);
  cuMemFree_v2(call, memory);
}

}  // namespace

std::size_t record_pair(std::uint64_t*, std::size_t room) {
  Recording& in = recording(room);
  release(in, allocate(in));
  return room;
}

}  // namespace cuwarden::bench

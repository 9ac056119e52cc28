// Tests of the driver's promises about the memory of cuMemAlloc and cuMemHostAlloc: its contents,
// its uses, the answers about it, and its end. They are run without the shim, which shows that the
// driver keeps the promises, and under the shim.
//
//     memory_contract [--lock-slabs] [GoogleTest's options]
//
// --lock-slabs: keeps one small piece in each of many slabs, and begins the tests once odd sizes
// are no longer rounded up. If they still are after ten seconds, the status is 3.
#include <malloc.h>

#include <algorithm>
#include <string_view>

#include "tests/end_to_end/programs/memory_contract/locked_slabs.hpp"
#include "tests/end_to_end/programs/memory_contract/pieces.hpp"

namespace cuwarden::memory_contract {
namespace {

bool begin(bool locks_slabs) {
  int count = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&count) != CUDA_SUCCESS) return false;
  for (int i = 0; i < std::min(count, 2); ++i) {
    Device device;
    if (cuDeviceGet(&device.handle, i) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&device.context, device.handle) != CUDA_SUCCESS ||
        cuCtxSetCurrent(device.context) != CUDA_SUCCESS)
      return false;
    if (locks_slabs && !lock_slabs()) return false;
    devices().push_back(device);
  }
  return count > 0;
}

}  // namespace
}  // namespace cuwarden::memory_contract

int main(int argc, char** argv) {
  // Large host buffers are used again, since the system takes long to make them.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  testing::InitGoogleTest(&argc, argv);
  const bool locks_slabs = argc > 1 && std::string_view(argv[1]) == "--lock-slabs";
  if (!cuwarden::memory_contract::begin(locks_slabs)) return 3;
  return RUN_ALL_TESTS();
}

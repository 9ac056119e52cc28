// unknown_function HOW: asks for memory that only meshing can free, after it has had to do with a
// function that no header of CUDA declares (cuFutureFill, which the simulated driver has). HOW:
// `looked_up` (the function is looked up and not called), `called`, `global` (it is looked up in
// the global scope), `known` (functions that cuwarden knows are looked up and called), or
// `nothing`. Built with LINKED_WITH_UNKNOWN, the program is linked with the function, too, and
// never calls it. The last line has the results, as JSON.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/end_to_end/programs/create_context.hpp"
#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/require.hpp"

#ifdef LINKED_WITH_UNKNOWN
extern "C" [[gnu::weak]] CUresult cuFutureFill(CUdeviceptr, size_t, unsigned, int, int, int, int,
                                               double, float);
#endif

namespace {

using FutureFill = CUresult (*)(CUdeviceptr, size_t, unsigned, int, int, int, int, double, float);
constexpr std::size_t block_bytes = 64 << 10, request_bytes = 32 << 20, window = 256 << 20;

bool is_filled(CUdeviceptr block, unsigned char value) {
  std::vector<unsigned char> bytes(block_bytes);
  REQUIRE(cuMemcpyDtoH(bytes.data(), block, bytes.size()));
  return bytes == std::vector<unsigned char>(block_bytes, value);
}

// Returns true if all that was called did what it should.
bool meet(const std::string& how, CUdeviceptr block) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto find = [&](const char* name) { return dlsym(driver, name); };
  if (how == "looked_up") return find("cuFutureFill") != nullptr;
  if (how == "global") return dlsym(RTLD_DEFAULT, "cuFutureFill") != nullptr;
  if (how == "called") {
    const auto fill = reinterpret_cast<FutureFill>(find("cuFutureFill"));
    return fill != nullptr && find("cuFutureFill") == reinterpret_cast<void*>(fill) &&
           fill(block, block_bytes, 7, 1, 2, 3, 4, 0.5, 0.25f) == CUDA_SUCCESS &&
           is_filled(block, 7) &&
           fill(block, block_bytes, 8, 1, 2, 3, 5, 0.5, 0.25f) == CUDA_ERROR_INVALID_VALUE &&
           is_filled(block, 7);
  }
  if (how == "known") {
    int version = 0;
    unsigned flags = 0;
    return reinterpret_cast<decltype(&cuDriverGetVersion)>(find("cuDriverGetVersion"))(&version) ==
               CUDA_SUCCESS &&
           reinterpret_cast<decltype(&cuStreamGetFlags)>(find("cuStreamGetFlags"))(
               nullptr, &flags) == CUDA_SUCCESS;
  }
  return how == "nothing";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
#ifdef LINKED_WITH_UNKNOWN
  if (argc > 100) cuFutureFill(0, 0, 0, 0, 0, 0, 0, 0, 0);
#endif
  CUdevice device = 0;
  CUcontext context = nullptr;
  REQUIRE(cuInit(0));
  REQUIRE(cuDeviceGet(&device, 0));
  REQUIRE(cuwarden::test::create_context(&context, device));
  const std::size_t free = cuwarden::test::by_driver::free_bytes();
  CUdeviceptr block = 0;
  REQUIRE(cuMemAlloc(&block, (free - window) / (2 << 20) * (2 << 20)));
  std::vector<CUdeviceptr> blocks, live;
  while (cuMemAlloc(&block, block_bytes) == CUDA_SUCCESS) blocks.push_back(block);
  std::mt19937 random(4711);
  for (const CUdeviceptr each : blocks) {
    if (random() % 10 == 0)
      live.push_back(each);
    else
      REQUIRE(cuMemFree(each));
  }
  const bool is_right = meet(argv[1], live.front());
  const CUresult result = cuMemAlloc(&block, request_bytes);
  std::printf("{\"right\":%s,\"result\":%d}\n", is_right ? "true" : "false", result);
  return 0;
}

// The habit: the program frees no buffer, because resetting the device (or destroying the context)
// returns them all. That works and is not a leak, but a report must tell it apart from one.
//
// cuwarden reports these buffers with `released_by: context`, and not among the leaks.
//
//     context_reset [buffers] [bytes a buffer]
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>

#include "samples/driver_entry_point.hpp"
#include "samples/planted_leaks.hpp"

namespace {

int runtime_line = 0;
int driver_line = 0;

[[gnu::noinline]] void first_stage(std::size_t buffers, std::size_t bytes) {
  for (std::size_t i = 0; i < buffers; ++i) {
    void* buffer = nullptr;
    runtime_line = __LINE__ + 1;
    sample::require(cudaMalloc(&buffer, bytes), "cudaMalloc");
  }
  sample::require(cudaDeviceReset(), "cudaDeviceReset");
}

[[gnu::noinline]] void second_stage(std::size_t buffers, std::size_t bytes) {
  const auto create = sample::driver_entry_point<CUresult (*)(CUcontext*, unsigned int, CUdevice)>(
      "cuCtxCreate", 3020);
  const auto allocate =
      sample::driver_entry_point<CUresult (*)(CUdeviceptr*, std::size_t)>("cuMemAlloc", 3020);
  const auto destroy = sample::driver_entry_point<CUresult (*)(CUcontext)>("cuCtxDestroy", 4000);

  CUcontext context = nullptr;
  sample::require(create(&context, 0, 0), "cuCtxCreate");
  for (std::size_t i = 0; i < buffers; ++i) {
    CUdeviceptr buffer = 0;
    driver_line = __LINE__ + 1;
    sample::require(allocate(&buffer, bytes), "cuMemAlloc");
  }
  sample::require(destroy(context), "cuCtxDestroy");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t buffers = sample::argument(argc, argv, 1, 8);
  const std::size_t bytes = sample::argument(argc, argv, 2, std::size_t{2} << 20);

  first_stage(buffers, bytes);
  second_stage(buffers, bytes);
  std::printf("two stages done\n");
  sample::print_leaks(
      {{"cudaMalloc", "device", buffers, buffers * bytes, "first_stage", runtime_line, "context"},
       {"cuMemAlloc_v2", "device", buffers, buffers * bytes, "second_stage", driver_line,
        "context"}});
}

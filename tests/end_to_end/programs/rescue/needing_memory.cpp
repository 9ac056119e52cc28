// needing_memory CALL ROOM [WINDOW [LOCAL]]: makes calls that need device memory for themselves, on
// a full device. ROOM says where memory is that the driver does not hand out: `pending` (freed in a
// stream that was not waited for), `scattered` (free pieces between blocks of 64 KiB, of which
// every fourth stays live), `none` (blocks of 1 to 64 MiB fill the device), or `filled` (blocks of
// 50 to 500 KiB fill it). WINDOW: bytes of the device that are not taken by one block before all
// else (default: 1 GiB). LOCAL: bytes of local memory that each thread needs for the calls
// `deep_launch` and `stack_limit` (default: 16 KiB). The last line has the result of the call, as
// JSON, and how many calls were served before.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/end_to_end/programs/create_context.hpp"
#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/kernels_in_ptx.hpp"

namespace {

namespace kernels = cuwarden::kernels;
constexpr std::size_t mib = std::size_t{1} << 20;

struct Subject {
  int local_bytes =
      0;  // Bytes of local memory for each thread of `deep`, and the limit that `stack_limit` sets.
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule plain_module = nullptr;
  CUfunction plain = nullptr;
  CUdeviceptr out = 0;
  CUlibrary library = nullptr;
  CUkernel in_library = nullptr;
  CUfunction deep = nullptr;
  CUgraph launches = nullptr, memory = nullptr;
  CUgraphExec with_memory = nullptr, with_launch = nullptr;
};

// Makes all that the calls use beforehand, while there is memory.
Subject made(int local_bytes) {
  Subject all;
  all.local_bytes = local_bytes;
  REQUIRE(cuInit(0));
  REQUIRE(cuDeviceGet(&all.device, 0));
  REQUIRE(cuwarden::test::create_context(&all.context, all.device));
  REQUIRE(cuModuleLoadData(&all.plain_module, kernels::plain_code.c_str()));
  REQUIRE(cuModuleGetFunction(&all.plain, all.plain_module, "plain"));
  REQUIRE(cuMemAlloc(&all.out, 4096));
  REQUIRE(kernels::launch(all.plain, all.out));
  REQUIRE(cuLibraryLoadData(&all.library, kernels::large_code.c_str(), nullptr, nullptr, 0, nullptr,
                            nullptr, 0));
  REQUIRE(cuLibraryGetKernel(&all.in_library, all.library, "plain"));
  CUmodule module = nullptr;
  const std::string deep = kernels::head + kernels::text_of("deep", local_bytes);
  REQUIRE(cuModuleLoadData(&module, deep.c_str()));
  REQUIRE(cuModuleGetFunction(&all.deep, module, "deep"));
  REQUIRE(cuGraphCreate(&all.launches, 0));
  REQUIRE(kernels::add_launches(all.launches, all.plain, all.out, 2000));
  REQUIRE(cuGraphCreate(&all.memory, 0));
  REQUIRE(kernels::add_memory(all.memory, all.device, 64 * mib));
  REQUIRE(cuGraphInstantiate(&all.with_memory, all.memory, 0));
  CUgraph launch = nullptr;
  REQUIRE(cuGraphCreate(&launch, 0));
  REQUIRE(kernels::add_launches(launch, all.plain, all.out, 1));
  REQUIRE(cuGraphInstantiate(&all.with_launch, launch, 0));
  REQUIRE(cuCtxSynchronize());
  return all;
}

std::map<std::string, std::function<CUresult()>> calls_on(Subject& all) {
  static CUstream stream;
  static CUcontext context;
  static CUmodule module;
  static CUfunction function;
  static CUdeviceptr variable;
  static std::size_t size;
  static CUgraphExec exec;
  return {
      {"stream", [] { return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); }},
      {"event",
       [] {
         CUevent event = nullptr;
         const CUresult result = cuEventCreate(&event, CU_EVENT_DEFAULT);
         return result == CUDA_SUCCESS ? cuEventRecord(event, nullptr) : result;
       }},
      {"context", [&] { return cuwarden::test::create_context(&context, all.device); }},
      {"primary_context", [&] { return cuDevicePrimaryCtxRetain(&context, all.device); }},
      {"small_module", [] { return cuModuleLoadData(&module, kernels::plain_code.c_str()); }},
      {"module", [] { return cuModuleLoadData(&module, kernels::large_code.c_str()); }},
      {"module_of_library", [&] { return cuLibraryGetModule(&module, all.library); }},
      {"function_of_kernel", [&] { return cuKernelGetFunction(&function, all.in_library); }},
      {"variable_of_library",
       [&] { return cuLibraryGetGlobal(&variable, &size, all.library, "big"); }},
      {"first_launch",
       [&] { return kernels::launch(reinterpret_cast<CUfunction>(all.in_library), all.out); }},
      {"deep_launch", [&] { return kernels::launch(all.deep, all.out); }},
      {"stack_limit",
       [&] {
         const auto bytes = static_cast<std::size_t>(all.local_bytes);
         return cuCtxSetLimit(CU_LIMIT_STACK_SIZE, bytes);
       }},
      {"graph", [&] { return cuGraphInstantiate(&exec, all.launches, 0); }},
      {"graph_launch", [&] { return cuGraphLaunch(all.with_memory, nullptr); }},
      {"small_graph_launch", [&] { return cuGraphLaunch(all.with_launch, nullptr); }},
      {"graph_upload", [&] { return cuGraphUpload(all.with_memory, nullptr); }},
  };
}

void fill_up() {
  CUdeviceptr block = 0;
  for (std::size_t bytes = 64 * mib; bytes >= mib; bytes /= 2)
    while (cuMemAlloc(&block, bytes) == CUDA_SUCCESS) continue;
}

// Fills the device, and frees memory that the driver does not hand out at once.
void leave(const std::string& room, std::size_t window) {
  CUdeviceptr block = 0;
  if (const std::size_t free = cuwarden::test::by_driver::free_bytes(); free > window + 2 * mib)
    REQUIRE(cuMemAlloc(&block, (free - window) / (2 * mib) * (2 * mib)));
  if (room == "pending") {
    CUstream stream = nullptr;
    REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    std::vector<CUdeviceptr> blocks(window / (64 * mib) - 1);
    for (CUdeviceptr& each : blocks) REQUIRE(cuMemAllocAsync(&each, 64 * mib, stream));
    REQUIRE(cuStreamSynchronize(stream));
    fill_up();
    for (const CUdeviceptr each : blocks) REQUIRE(cuMemFreeAsync(each, stream));
  } else if (room == "scattered") {
    std::vector<CUdeviceptr> blocks;
    while (cuMemAlloc(&block, 64 << 10) == CUDA_SUCCESS) blocks.push_back(block);
    std::mt19937 random(4711);
    for (const CUdeviceptr each : blocks)
      if (random() % 4 != 0) REQUIRE(cuMemFree(each));
  } else if (room == "filled") {
    std::mt19937 random(4711);
    std::uniform_int_distribution<std::size_t> bytes(50 << 10, 500 << 10);
    while (cuMemAlloc(&block, bytes(random)) == CUDA_SUCCESS) continue;
  } else {
    fill_up();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Subject all = made(argc > 4 ? std::atoi(argv[4]) : 16384);
  const auto calls = calls_on(all);
  const auto call = calls.find(argv[1]);
  if (call == calls.end()) return 2;
  leave(argv[2], argc > 3 ? std::strtoull(argv[3], nullptr, 0) : 1024 * mib);
  // A stream or a small module may still fit into memory that the driver has taken already.
  CUresult result = CUDA_SUCCESS;
  int served = 0;
  const int most = call->first == "stream" ? 20 : call->first == "small_module" ? 400 : 1;
  while (served < most && (result = call->second()) == CUDA_SUCCESS) ++served;
  REQUIRE(cuCtxSetCurrent(all.context));
  REQUIRE(kernels::launch(all.plain, all.out));
  REQUIRE(cuCtxSynchronize());
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::printf("{\"call\":\"%s\",\"result\":\"%s\",\"served\":%d}\n", argv[1], name, served);
  return 0;
}

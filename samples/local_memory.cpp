// The bug: a solver takes most of the device for its fields, and leaves an amount that seems to be
// plenty. Its kernels are generated. Each thread has a work array, which grows with the order of
// the method. Such an array lies in device memory, for as many threads as the device can hold at
// once, until the context ends: megabytes of fields, gigabytes of arrays. The heap for malloc in
// kernels comes on top.
//
// Users see free memory shrink without any cudaMalloc, and then a kernel launch that is out of
// memory.
//
//     local_memory [highest order, at most 7]
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "samples/driver_entry_point.hpp"
#include "samples/planned_shortage.hpp"

namespace {

using sample::driver_entry_point;
using sample::require;

using LoadData = CUresult (*)(CUmodule*, const void*);
using GetFunction = CUresult (*)(CUfunction*, CUmodule, const char*);
using GetAttribute = CUresult (*)(int*, CUfunction_attribute, CUfunction);
using Launch = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, CUstream, void**, void**);

sample::Account account;

constexpr char kHead[] = R"(
.version 7.0
.target sm_70
.address_size 64
)";

// A kernel in which each thread allocates its list of neighbours with malloc, and frees it.
constexpr char kNeighbours[] = R"(
.extern .func (.param .b64 result) malloc (.param .b64 size);
.extern .func free (.param .b64 pointer);

.visible .entry find_neighbours(.param .u64 bytes)
{
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [bytes];
  {
    .param .b64 size;
    st.param.b64 [size], %d1;
    .param .b64 result;
    call.uni (result), malloc, (size);
    ld.param.b64 %d2, [result];
  }
  {
    .param .b64 pointer;
    st.param.b64 [pointer], %d2;
    call.uni free, (pointer);
  }
  ret;
}
)";

// Returns the PTX of a kernel with a work array of `work_bytes` for each thread. The array is
// written at an index that is known only when the kernel runs, so that no compiler can remove it.
std::string step_kernel(const std::string& name, std::size_t work_bytes) {
  return kHead + (".visible .entry " + name) + R"((.param .u64 field, .param .u32 at)
{
  .local .align 16 .b8 work[)" +
         std::to_string(work_bytes) + R"(];
  .reg .b32 %r<4>;
  .reg .b64 %d<6>;
  ld.param.u64 %d1, [field];
  ld.param.u32 %r1, [at];
  mov.u64 %d2, work;
  cvt.u64.u32 %d3, %r1;
  add.s64 %d4, %d2, %d3;
  st.local.u32 [%d4], %r1;
  ld.local.u32 %r2, [%d2+64];
  cvta.to.global.u64 %d1, %d1;
  st.global.u32 [%d1], %r2;
  ret;
}
)";
}

CUfunction compile(const std::string& code, const std::string& name) {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  require(driver_entry_point<LoadData>("cuModuleLoadData", 2000)(&module, code.c_str()),
          "cuModuleLoadData");
  require(
      driver_entry_point<GetFunction>("cuModuleGetFunction", 2000)(&kernel, module, name.c_str()),
      "cuModuleGetFunction");
  return kernel;
}

CUresult launch(CUfunction kernel, void** arguments) {
  return driver_entry_point<Launch>("cuLaunchKernel", 4000)(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr,
                                                            arguments, nullptr);
}

std::size_t resident_threads() {
  int processors = 0;
  int threads = 0;
  require(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0),
          "cudaDeviceGetAttribute");
  require(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, 0),
          "cudaDeviceGetAttribute");
  return static_cast<std::size_t>(processors) * static_cast<std::size_t>(threads);
}

[[gnu::noinline]] sample::Request step(CUfunction kernel, CUdeviceptr field) {
  int work_bytes = 0;
  require(driver_entry_point<GetAttribute>("cuFuncGetAttribute", 2020)(
              &work_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel),
          "cuFuncGetAttribute");
  unsigned at = 64;
  void* arguments[] = {&field, &at};
  auto request = sample::Request::planned("cuLaunchKernel",
                                          static_cast<std::size_t>(work_bytes) * resident_threads(),
                                          __func__, __LINE__ + 1);
  request.result = static_cast<cudaError_t>(launch(kernel, arguments));
  if (request.result == cudaSuccess) require(cudaDeviceSynchronize(), "the kernel");
  return request;
}

bool out_of_memory(const sample::Request& request) {
  return request.result.value_or(cudaSuccess) != cudaSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t highest = std::min(sample::argument(argc, argv, 1, 7), std::size_t{7});
  constexpr std::size_t kPlenty = 1200 * sample::kMiB;

  const std::size_t free = sample::device_memory().free;
  const std::size_t bytes =
      (free > kPlenty ? free - kPlenty : free / 4) / sample::kDevicePage * sample::kDevicePage;
  void* field = nullptr;
  require(cudaMalloc(&field, bytes), "cudaMalloc");
  account.allocated(bytes);
  const std::size_t before = sample::device_memory().free;

  std::size_t list_bytes = 256;
  void* list_arguments[] = {&list_bytes};
  require(launch(compile(kHead + std::string(kNeighbours), "find_neighbours"), list_arguments),
          "cuLaunchKernel");
  require(cudaDeviceSynchronize(), "the kernel");
  const std::size_t with_heap = sample::device_memory().free;

  // Each thread has 4 KiB at order 1, and twice as much with each further order: 256 KiB at order
  // 7.
  sample::Request request;
  std::string kernel;
  std::size_t last_free = with_heap;
  std::size_t work_bytes = 0;
  for (std::size_t order = 1; order <= highest && !out_of_memory(request); ++order) {
    kernel = "step_of_order_" + std::to_string(order);
    last_free = sample::device_memory().free;
    work_bytes = std::size_t{2048} << order;
    request = step(compile(step_kernel(kernel, work_bytes), kernel),
                   reinterpret_cast<CUdeviceptr>(field));
  }
  std::printf("the last was %s\n", kernel.c_str());
  return sample::conclude(
      request, account,
      sample::fact("kernel", kernel.c_str()) + sample::fact("local_bytes_per_thread", work_bytes) +
          sample::fact("resident_threads", resident_threads()) +
          sample::fact("free_before_kernels_bytes", before) +
          sample::fact("free_with_heap_bytes", with_heap) +
          sample::fact("free_before_launch_bytes", last_free) +
          sample::fact("free_after_launch_bytes", sample::device_memory().free));
}

// Calls that were not asked for memory and need some that there is not; room=MIB is left for them:
//
//     launch         launches a kernel with local=N bytes of local memory for each thread;
//     heap           launches a kernel that calls malloc, with a heap of bytes=N;
//     stack          sets a stack limit of bytes=N;
//     module         loads code with bytes=N of variables;
//     streams        makes streams until one fails;
//     context        makes a further context on the device;
//     first_context  makes the first context;
//
// With api=driver limits, streams and the first context are the driver's, otherwise the runtime's.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

#include "tests/end_to_end/programs/incidents/shortages.hpp"
#include "tests/kernels_in_ptx.hpp"

namespace shortages {
namespace {

// Returns the PTX text of a module with the kernel `needy`. `local_bytes`: local memory of each
// thread; 0: none. `variable_bytes`: size of a global variable; 0: there is none.
std::string code_with(std::size_t local_bytes, std::size_t variable_bytes) {
  std::string code = cuwarden::kernels::head;
  if (variable_bytes != 0)
    code += ".visible .global .align 16 .b8 table[" + std::to_string(variable_bytes) + "];\n";
  return code + cuwarden::kernels::text_of("needy", static_cast<int>(local_bytes));
}

bool by_driver() { return text("api", "runtime") == "driver"; }

void note(CUresult result) {
  ++(result == CUDA_SUCCESS ? facts.served : facts.failures);
  facts.figure = static_cast<std::size_t>(result);
}

[[gnu::noinline]] CUresult load(CUmodule& module, const std::string& code) {
  return cuModuleLoadData(&module, code.c_str());
}

[[gnu::noinline]] CUresult launch(CUfunction kernel, CUdeviceptr result) {
  unsigned at = 0;
  void* arguments[] = {&result, &at};
  return cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
}

CUresult set_heap(std::size_t bytes) {
  if (by_driver()) return cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, bytes);
  return static_cast<CUresult>(cudaDeviceSetLimit(cudaLimitMallocHeapSize, bytes));
}

[[gnu::noinline]] CUresult set_stack(std::size_t bytes) {
  if (by_driver()) return cuCtxSetLimit(CU_LIMIT_STACK_SIZE, bytes);
  return static_cast<CUresult>(cudaDeviceSetLimit(cudaLimitStackSize, bytes));
}

[[gnu::noinline]] CUresult make_stream() {
  CUstream stream = nullptr;
  if (by_driver()) return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  return static_cast<CUresult>(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

std::size_t resident_threads() {
  CUdevice device = 0;
  int processors = 0, threads = 0;
  cuCtxGetDevice(&device);
  cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
  return static_cast<std::size_t>(processors) * static_cast<std::size_t>(threads);
}

void launch_without_room() {
  CUmodule small = nullptr, large = nullptr;
  CUfunction first = nullptr, kernel = nullptr;
  auto* const result = static_cast<char*>(allocate(page));
  const auto address = reinterpret_cast<CUdeviceptr>(result);
  // One launch is made before, since the process's first launch needs memory of its own.
  if (load(small, code_with(128, 0)) != CUDA_SUCCESS ||
      load(large, code_with(number("local", 65536), 0)) != CUDA_SUCCESS ||
      cuModuleGetFunction(&first, small, "needy") != CUDA_SUCCESS ||
      cuModuleGetFunction(&kernel, large, "needy") != CUDA_SUCCESS ||
      launch(first, address) != CUDA_SUCCESS || cuCtxSynchronize() != CUDA_SUCCESS)
    return;
  leave(number("room", 64) * MiB);
  facts.requested = resident_threads() * number("local", 65536);
  facts.free = free_bytes();
  CUresult refused = launch(kernel, address);
  if (refused == CUDA_SUCCESS) refused = cuCtxSynchronize();
  note(refused);
}

void heap_without_room(std::size_t bytes) {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  if (load(module, cuwarden::kernels::head + cuwarden::kernels::text_with_malloc(
                                                 "needy(.param .u64 result, .param .u32 at)")) !=
          CUDA_SUCCESS ||
      cuModuleGetFunction(&kernel, module, "needy") != CUDA_SUCCESS)
    return;
  leave(number("room", 64) * MiB);
  facts.requested = bytes;
  facts.free = free_bytes();
  if (set_heap(bytes) != CUDA_SUCCESS) return;
  CUresult refused = launch(kernel, 0);
  if (refused == CUDA_SUCCESS) refused = cuCtxSynchronize();
  note(refused);
}

}  // namespace

[[gnu::noinline]] CUresult make_context() {
  CUcontext context = nullptr;
  const auto device = static_cast<CUdevice>(number("device", 0));
#if CUDA_VERSION >= 13000
  return cuCtxCreate(&context, nullptr, 0, device);
#else
  return cuCtxCreate(&context, 0, device);
#endif
}

void without_an_allocation(const std::string& situation) {
  if (situation == "launch") return launch_without_room();
  if (situation == "heap") return heap_without_room(number("bytes", 512 * MiB));
  const bool known = situation == "stack" || situation == "module" || situation == "streams" ||
                     situation == "context";
  if (!known) return;
  leave(number("room", 64) * MiB);
  facts.free = free_bytes();
  const std::size_t bytes = number("bytes", 512 * MiB);
  if (situation == "stack") note(set_stack(bytes));
  if (situation == "context") note(make_context());
  if (situation == "module") {
    CUmodule module = nullptr;
    note(load(module, code_with(128, bytes)));
  }
  if (situation == "streams") {
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < 100000 && result == CUDA_SUCCESS; ++i) {
      facts.free = free_bytes();
      result = make_stream();
    }
    note(result);
  }
}

bool before_any_context(const std::string& situation) {
  if (situation != "first_context") return false;
  if (by_driver()) {
    const CUresult begun = cuInit(0);
    note(begun != CUDA_SUCCESS ? begun : make_context());
    return true;
  }
  cudaError_t result = cudaSetDevice(static_cast<int>(number("device", 0)));
  if (result == cudaSuccess) result = cudaFree(nullptr);
  note(static_cast<CUresult>(result));
  return true;
}

}  // namespace shortages

// Entry points for launches. Memory is taken as by a real launch, and time passes. No kernel runs,
// but for the one with which cuwarden copies.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tools/simulated_gpu/device/modules.hpp"
#include "tools/simulated_gpu/device/work.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

// Memory that manages the heap of device-side malloc, and the largest heap that the driver makes,
// whatever size was set (measured with 300 GiB).
constexpr std::size_t kHeapManagement = 2 * kMiB;
constexpr std::size_t kLargestHeap = 16862 * kMiB;

struct Grid {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
};

// The kernel of cuwarden's, by which its pool copies parts of device memory; and that kernel's one
// parameter.
constexpr const char* kCopyKernel = "cuwarden_copy_parts";
struct CopyList {
  std::uint64_t count;
  struct Part {
    std::uint64_t to, from, bytes;
  } parts[170];
};

// Copies the parts at once, as other copies are made. `parameters`: those of cuLaunchKernel. Where
// the device may not access a part, returns the error that the real driver gives when it is asked
// for the kernel's result.
CUresult copy_parts(Simulator& sim, void** parameters) {
  if (parameters == nullptr || parameters[0] == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto& list = *static_cast<const CopyList*>(parameters[0]);
  for (std::uint64_t i = 0; i < list.count; ++i) {
    const CopyList::Part& part = list.parts[i];
    if (!accessible(sim, part.to, part.bytes, true, false) ||
        !accessible(sim, part.from, part.bytes, false, false))
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    std::memmove(reinterpret_cast<void*>(part.to), reinterpret_cast<const void*>(part.from),
                 part.bytes);
  }
  return CUDA_SUCCESS;
}

CUresult launch(CUfunction handle, const Grid& g, CUstream stream_handle,
                void** parameters = nullptr) {
  InContext at;
  SIM_TRY(at.error);
  Kernel* kernel = kernels().find(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(*at.context, stream_handle, stream));
  const auto within = [](unsigned value, unsigned limit) { return value >= 1 && value <= limit; };
  if (!within(g.grid_x, 2147483647) || !within(g.grid_y, 65535) || !within(g.grid_z, 65535) ||
      !within(g.block_x, 1024) || !within(g.block_y, 1024) || !within(g.block_z, 64) ||
      std::size_t{g.block_x} * g.block_y * g.block_z > 1024) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (g.shared > static_cast<unsigned>(kernel->dynamic_shared_limit))
    return CUDA_ERROR_INVALID_VALUE;
  const Clock::duration time = at.sim.settings.kernel_time;
  if (stream->capture) {
    if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    Node* node = capture_node(*stream, NodeKind::kernel, CU_GRAPH_NODE_TYPE_KERNEL);
    node->kernel = handle;
    node->work = [time](Stream& s) { enqueue(s, time); };
    return CUDA_SUCCESS;
  }
  SIM_TRY(prepare_launch(*stream->context, *kernel));
  if (kernel->name == kCopyKernel) {
    enqueue(*stream, Clock::duration::zero());
    return copy_parts(at.sim, parameters);
  }
  enqueue(*stream, time);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult prepare_launch(Context& context, const Kernel& kernel) {
  // The code of a library is loaded when one of its kernels is launched.
  SIM_TRY(load_into(context, *kernel.module));
  SIM_TRY(take_local_memory(context,
                            std::max(kernel.local_bytes, context.limits.at(CU_LIMIT_STACK_SIZE))));
  if (kernel.uses_heap) SIM_TRY(load_device_runtime(context));
  if (kernel.uses_heap && !context.heap_made) {
    const std::size_t heap =
        std::min(round_up(context.limits.at(CU_LIMIT_MALLOC_HEAP_SIZE), kPage), kLargestHeap);
    if (!charge_context(context, heap + kHeapManagement)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    context.heap_made = true;
  }
  return CUDA_SUCCESS;
}

namespace entry {

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared, CUstream stream,
                        void** parameters, void**) {
  return launch(function, {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared}, stream,
                parameters);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void**, void**) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return launch(function,
                {config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                 config->blockDimY, config->blockDimZ, config->sharedMemBytes},
                config->hStream);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared, CUstream stream,
                                   void**) {
  return launch(function, {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared}, stream);
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu

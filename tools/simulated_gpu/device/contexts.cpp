// Makes and ends contexts, and charges the device for what they take.
#include "tools/simulated_gpu/device/contexts.hpp"

#include <algorithm>

#include "tools/simulated_gpu/device/device_memory.hpp"
#include "tools/simulated_gpu/device/modules.hpp"

namespace cuwarden::simulated_gpu {
namespace {

// Memory that the first context of a device takes, and that each further one takes (measured).
constexpr std::size_t kFirstContext = 527 * kMiB;
constexpr std::size_t kFurtherContext = 524 * kMiB;
// Part of a context's memory: the local memory that kernels have from the start.
constexpr std::size_t kInitialLocalMemory = 414 * kMiB;
// Memory that code with device-side malloc takes when it is loaded.
constexpr std::size_t kDeviceRuntime = 138 * kMiB;

// Returns the error with which the compute mode refuses a context; CUDA_SUCCESS if it allows one.
// As in cuda.h: https://docs.nvidia.com/cuda/cuda-driver-api
CUresult refused_by_compute_mode(const Device& device) {
  Simulator& sim = simulator();
  const ComputeMode mode = sim.settings.compute_mode;
  if (mode == ComputeMode::prohibited) return CUDA_ERROR_UNKNOWN;
  if (mode == ComputeMode::shared) return CUDA_SUCCESS;
  bool taken = device.other_process != 0 || device.share.used_by_others(device.board) != 0;
  for (const Context* context : sim.contexts.all()) taken = taken || context->device == &device;
  return taken ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_SUCCESS;
}

}  // namespace

bool charge_context(Context& context, std::size_t bytes) {
  if (!charge_device(*context.device, bytes)) return false;
  context.overhead += bytes;
  return true;
}

void refund_context(Context& context, std::size_t bytes) {
  context.device->refund(bytes);
  context.overhead -= bytes;
}

bool take_object_memory(Context& context, ObjectMemory& memory, std::size_t bytes) {
  if (memory.used_bytes + bytes > memory.held_bytes) {
    const std::size_t more = round_up(memory.used_bytes + bytes - memory.held_bytes, kPage);
    if (!charge_context(context, more)) return false;
    memory.held_bytes += more;
  }
  memory.used_bytes += bytes;
  return true;
}

CUresult take_local_memory(Context& context, std::size_t bytes) {
  if (bytes <= context.local_bytes && !context.local_given_back) return CUDA_SUCCESS;
  const std::size_t wanted = std::max(bytes, context.local_bytes);
  const std::size_t more = local_memory_cost(wanted) - local_memory_cost(context.local_bytes) +
                           (context.local_given_back ? kInitialLocalMemory : 0);
  if (charge_context(context, more)) {
    context.local_bytes = wanted;
    context.local_given_back = false;
    return CUDA_SUCCESS;
  }
  if (!context.local_given_back)
    refund_context(context, kInitialLocalMemory + local_memory_cost(context.local_bytes));
  // Measured after a launch: the context had 1,342 MiB, of which 792 were local memory.
  if (context.device_runtime) refund_context(context, kDeviceRuntime);
  context.device_runtime = false;
  context.local_bytes = 0;
  context.local_given_back = true;
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult take_memory_for_copies(Context& context) {
  return context.local_given_back ? take_local_memory(context, context.local_bytes) : CUDA_SUCCESS;
}

void shrink_local_memory(Context& context, std::size_t bytes) {
  if (bytes >= context.local_bytes) return;
  refund_context(context, local_memory_cost(context.local_bytes) - local_memory_cost(bytes));
  context.local_bytes = bytes;
}

CUresult load_device_runtime(Context& context) {
  if (context.device_runtime) return CUDA_SUCCESS;
  if (!charge_context(context, kDeviceRuntime)) return CUDA_ERROR_OUT_OF_MEMORY;
  context.device_runtime = true;
  return CUDA_SUCCESS;
}

CUresult make_context(Device& device, unsigned flags, bool primary, Context*& made) {
  Simulator& sim = simulator();
  if (const CUresult refused = refused_by_compute_mode(device); refused != CUDA_SUCCESS)
    return refused;
  if (!device.arena.prepare()) return CUDA_ERROR_OUT_OF_MEMORY;
  auto context = std::make_unique<Context>();
  context->device = &device;
  context->primary = primary;
  context->flags = flags;
  context->id = sim.next_id++;
  context->legacy.context = context.get();
  context->legacy.id = sim.next_id++;
  context->view_memory.held_bytes = kViewsAtStart;
  context->limits = {{CU_LIMIT_STACK_SIZE, 1024},
                     {CU_LIMIT_PRINTF_FIFO_SIZE, 6 * kMiB},
                     {CU_LIMIT_MALLOC_HEAP_SIZE, 8 * kMiB},
                     {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
                     {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
                     {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
                     {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
  if (!charge_context(*context, device.had_context ? kFurtherContext : kFirstContext)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  device.had_context = true;
  made = sim.contexts.add(std::move(context));
  return CUDA_SUCCESS;
}

void end_context(Context& context) {
  Simulator& sim = simulator();
  unload_modules(context);
  release_context_memory(context);
  for (Stream* stream : context.streams) {
    stream->destroyed = true;
    sim.streams.remove(stream);
  }
  context.streams.clear();
  context.device->refund(context.overhead);
  context.overhead = 0;
  context.destroyed = true;
  sim.contexts.remove(&context);
}

}  // namespace cuwarden::simulated_gpu

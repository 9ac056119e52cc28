// Makes and ends contexts, and counts the device memory that a context itself takes (charges it).
// Callers hold the simulator's lock (Simulator::mutex).
#pragma once

#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

// Makes a context on the device. `flags`: those of cuCtxCreate. `primary`: true for the device's
// primary context. Sets `made` to the context, which Simulator::contexts owns; leaves it unchanged
// on an error. Returns CUDA_ERROR_OUT_OF_MEMORY if the device or the process's address space has no
// room, and another error if the device's compute mode forbids a context.
CUresult make_context(Device& device, unsigned flags, bool primary, Context*& made);
// Ends a context: gives back its memory, and ends its streams and modules. The object itself stays,
// with a mark, so that stale handles are recognised.
void end_context(Context& context);

// Takes `bytes` of the device for the context itself, such as local memory, streams or heaps. They
// are given back when the context ends. Returns false, and takes nothing, if the device has no
// room.
bool charge_context(Context& context, std::size_t bytes);
// Gives back `bytes` that charge_context() took.
void refund_context(Context& context, std::size_t bytes);

// Makes sure that the context has `bytes` of local memory for each thread that the device can run
// at once. If there is no room, gives back all local memory of the context and the code for
// device-side malloc, as the real driver does, and returns CUDA_ERROR_OUT_OF_MEMORY. A later launch
// takes both again.
CUresult take_local_memory(Context& context, std::size_t bytes);
// Gives back local memory of the context, so that `bytes` are left for each thread. Does nothing if
// each thread has no more.
void shrink_local_memory(Context& context, std::size_t bytes);

// Takes the device memory that the driver needs once in a context when code with device-side malloc
// is loaded. Later calls do nothing. Returns CUDA_ERROR_OUT_OF_MEMORY if the device has no room.
CUresult load_device_runtime(Context& context);

// Device memory, in bytes, that a stream takes.
constexpr std::size_t kStreamCost = 544 * kKiB;

}  // namespace cuwarden::simulated_gpu

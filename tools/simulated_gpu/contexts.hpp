// Making, ending and choosing contexts. Callers hold the lock.
#pragma once

#include "tools/simulated_gpu/simulator.hpp"

namespace cuwarden::simulated_gpu {

// Null with the error: a full device or a missing address space give OUT_OF_MEMORY.
CUresult make_context(Device& device, unsigned flags, bool primary, Context*& made);
void end_context(Context& context);

// An extra cost of the context itself (local memory, streams, heaps), paid until it ends.
bool charge_context(Context& context, std::size_t bytes);
void refund_context(Context& context, std::size_t bytes);

// Local memory of as many bytes for each thread that the device can hold at once. Where there is no
// room the driver gives back all that the context has, and a later launch takes it again.
CUresult take_local_memory(Context& context, std::size_t bytes);
void shrink_local_memory(Context& context, std::size_t bytes);

// What code with device-side malloc takes when it is loaded, once.
CUresult load_device_runtime(Context& context);

// What a stream takes.
constexpr std::size_t kStreamCost = 544 * kKiB;

}  // namespace cuwarden::simulated_gpu

// Makes, ends and charges contexts. Callers hold the simulator's lock.
#pragma once

#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

// Makes a context. Returns OUT_OF_MEMORY if the device is full or address space is lacking; `made`
// is null on any error.
CUresult make_context(Device& device, unsigned flags, bool primary, Context*& made);
void end_context(Context& context);

// Charges the device for memory of the context itself (local memory, streams, heaps), until the
// context ends. Returns false if the device has no room.
bool charge_context(Context& context, std::size_t bytes);
void refund_context(Context& context, std::size_t bytes);

// Makes sure that each thread which the device can hold at once has `bytes` of local memory. If
// there is no room, returns OUT_OF_MEMORY and gives back all local memory that the context has,
// with the code for device-side malloc. The driver does the same; a later launch takes both again.
CUresult take_local_memory(Context& context, std::size_t bytes);
// Gives back local memory above `bytes` for each thread.
void shrink_local_memory(Context& context, std::size_t bytes);

// Charges the context, once, for what code with device-side malloc takes when it is loaded.
CUresult load_device_runtime(Context& context);

// Memory that a stream takes.
constexpr std::size_t kStreamCost = 544 * kKiB;

}  // namespace cuwarden::simulated_gpu

// Makes and ends contexts. Counts ("charges") the device memory that the simulated driver itself
// takes for a context. Callers hold the simulator's lock (Simulator::mutex).
#pragma once

#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

// Makes a context on the device. The new context is not yet current in any thread. `flags`: those
// of cuCtxCreate. `primary`: true for the device's primary context. Sets `made` to the context,
// which Simulator::contexts owns; leaves it unchanged on an error. Returns CUDA_ERROR_OUT_OF_MEMORY
// if the device's memory or the process's address space does not suffice, and another error if the
// compute mode (CUWARDEN_SIM_COMPUTE_MODE) forbids the context.
CUresult make_context(Device& device, unsigned flags, bool primary, Context*& made);
// Ends a context: gives its memory back to the device, and ends its streams and modules. The object
// stays allocated, marked as destroyed, so that later uses of its handle give an error.
void end_context(Context& context);

// Counts `bytes` of the device as used by the context itself, such as for local memory, streams or
// heaps. The bytes count as free again when the context ends, or earlier by refund_context(). If
// the device has too few free bytes, first gives unused memory back to it (trim_device()). Returns
// false, and counts nothing, if that does not suffice.
bool charge_context(Context& context, std::size_t bytes);
// Counts `bytes` of the device as free again. charge_context() has counted them as used by this
// context.
void refund_context(Context& context, std::size_t bytes);

// Makes sure that the context has `bytes` of local memory for each thread that the device can run
// at once. If the device has too few free bytes, returns CUDA_ERROR_OUT_OF_MEMORY. The context then
// loses all its local memory and the code for device-side malloc, as with the real driver: their
// bytes are free again. A later launch takes both again.
CUresult take_local_memory(Context& context, std::size_t bytes);
// Makes sure that the context has the local memory that copies and fills on the device need. Takes
// it again if take_local_memory() has failed and given it up; otherwise does nothing. Returns
// CUDA_ERROR_OUT_OF_MEMORY if the device has too few free bytes.
CUresult take_memory_for_copies(Context& context);
// Gives local memory of the context back to the device, until `bytes` are left for each thread that
// the device can run at once. Does nothing if each thread has `bytes` or less already.
void shrink_local_memory(Context& context, std::size_t bytes);

// Takes device memory for the driver's own code of device-side malloc. Called when a module is
// loaded whose code calls malloc, and when a kernel that calls it is launched. Does nothing if the
// context has that memory already. Returns CUDA_ERROR_OUT_OF_MEMORY if the device has too few free
// bytes.
CUresult load_device_runtime(Context& context);

// Takes `bytes` of device memory for an object of the context, such as a stream. Uses free bytes in
// the pages of `memory`. If they do not suffice, takes further pages from the device, which the
// context keeps until it ends. `memory`: one of the ObjectMemory members of this context.
// Returns false, and changes nothing, if the device has too few free bytes.
bool take_object_memory(Context& context, ObjectMemory& memory, std::size_t bytes);

// Bytes of device memory that each node of an instantiated graph takes: a kernel node, and a node
// that fills memory. (Measured: 400 graphs of 200 kernels in a chain took 240 MiB, 100 graphs of
// 200 fills 10 MiB.) The real driver takes more for nodes that may run beside each other: 112 KiB
// for a fill without edges.
constexpr std::size_t kGraphKernelCost = 3 * kKiB, kGraphFillCost = kKiB / 2;
// Bytes of device memory that each stream of the program takes.
constexpr std::size_t kStreamCost = 544 * kKiB;
// Bytes of device memory that each texture or surface object takes, and bytes that a context has
// for them from its start. (Measured: on a full device, the 57,344th was refused.)
constexpr std::size_t kViewCost = 32, kViewsAtStart = 57'343 * kViewCost;

}  // namespace cuwarden::simulated_gpu

// Submits copies and fills to streams. The bytes move during the program's call, and the work does
// not make the stream busy. If the stream is being captured into a graph, the graph gets a node for
// the work instead.
#pragma once

#include "tools/simulated_gpu/device/graphs.hpp"
#include "tools/simulated_gpu/device/modules.hpp"
#include "tools/simulated_gpu/device/streams.hpp"

namespace cuwarden::simulated_gpu {

// Submits a copy or a fill to the stream. `work`: moves the bytes, and returns a CUresult. Calls
// work() at once, and returns its result. If the stream is being captured into a graph, adds a node
// instead, which calls work() at each launch of the graph and ignores its result, and returns
// CUDA_SUCCESS. If the capture is invalidated, adds nothing, and returns
// CUDA_ERROR_STREAM_CAPTURE_INVALIDATED. `kind` and `type`: values of Node::kind and Node::type for
// that node.
template <typename Work>
CUresult submit(Stream& stream, NodeKind kind, CUgraphNodeType type, Work work) {
  if (stream.capture) {
    if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    capture_node(stream, kind, type)->work = [work](Stream&) { (void)work(); };
    return CUDA_SUCCESS;
  }
  enqueue(stream, Clock::duration::zero());
  return work();
}

// Makes sure that the context has the device memory that a launch of the kernel needs: local
// memory, and for device-side malloc the driver's code and the heap. Loads the kernel's module or
// library into the context (load_into()). Called when the kernel is launched or its graph
// instantiated. Returns CUDA_ERROR_OUT_OF_MEMORY if the device has too little memory, or
// CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES if it has too little for the heap.
CUresult prepare_launch(Context&, const Kernel&);

// True if `size` bytes from `address` lie in memory that the program has allocated, mapped or
// registered. For mappings of cuMemMap, the device of the calling thread's context must have been
// given access, too. `write`: true for a write, false for a read. `host_allowed`: true if other
// host memory counts, too; only its first address is checked. False if the thread has no current
// context.
bool accessible(Simulator& sim, CUdeviceptr address, std::size_t size, bool write,
                bool host_allowed);

// Copies the rows that the parameters describe; the copy has ended when the function returns. If a
// row is longer than the pitch of the source or of the destination, or an array's handle is not
// valid, copies nothing and returns CUDA_ERROR_INVALID_VALUE. Returns this error also at the first
// row that the current context's device may not access; the rows before that one are copied.
CUresult copy_box(const CUDA_MEMCPY3D&);
// Fills the rows that the parameters describe; they are filled when the function returns. Returns
// CUDA_ERROR_INVALID_VALUE, and fills nothing, if the current context's device may not write to all
// these rows.
CUresult fill_rows(const CUDA_MEMSET_NODE_PARAMS&);
// True if the parameters of a fill are valid: elements of 1, 2 or 4 bytes, an address that is a
// multiple of that size, and, for several rows, a pitch that is not smaller than a row. Does not
// check if the memory is accessible.
bool is_filling(const CUDA_MEMSET_NODE_PARAMS&);

}  // namespace cuwarden::simulated_gpu

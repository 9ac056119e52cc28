// Submits work to a stream: it is done at once, or recorded if the stream captures. Data move when
// the call is made; only the time that work takes is put on the stream.
#pragma once

#include <utility>

#include "tools/simulated_gpu/device/graphs.hpp"
#include "tools/simulated_gpu/device/modules.hpp"
#include "tools/simulated_gpu/device/streams.hpp"

namespace cuwarden::simulated_gpu {

// Does `work`, which returns a CUresult, in the stream.
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

// Takes the memory that a launch needs, when the kernel is launched or its graph instantiated. It
// may fail for lack of memory, although no allocation function was called.
CUresult prepare_launch(Context&, const Kernel&);

// True if the current context's device may access `size` bytes from `address`: they lie in memory
// that the driver gave out or, with `host_allowed`, anywhere outside the device's address space.
bool accessible(Simulator& sim, CUdeviceptr address, std::size_t size, bool write,
                bool host_allowed);

// copy_box() and fill_rows() move the bytes at once. They return an error if an address is not
// accessible.
CUresult copy_box(const CUDA_MEMCPY3D&);
CUresult fill_rows(const CUDA_MEMSET_NODE_PARAMS&);
// True if the fill's element size is 1, 2 or 4 bytes, and its address and pitch fit that size. The
// memory behind the address is not checked.
bool is_filling(const CUDA_MEMSET_NODE_PARAMS&);

}  // namespace cuwarden::simulated_gpu

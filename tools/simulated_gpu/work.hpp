// Work for a stream: done at once where the stream works, recorded where it is captured.
// Data moves when the call is made; only the time that work takes is put on the stream.
#pragma once

#include <utility>

#include "tools/simulated_gpu/graphs.hpp"
#include "tools/simulated_gpu/modules.hpp"
#include "tools/simulated_gpu/streams.hpp"

namespace cuwarden::simulated_gpu {

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

// What a launch needs beyond time, taken when the kernel is launched or its graph instantiated: an
// allocation failure without an allocation call.
CUresult prepare_launch(Context&, const Kernel&);

// Who may touch a range: `size` bytes from `address` lie in memory the driver gave out
// (or, where `host_allowed`, anywhere outside the device's address space).
bool accessible(Simulator& sim, CUdeviceptr address, std::size_t size, bool write,
                bool host_allowed);

// At once; refused where it leads to what nobody may touch.
CUresult copy_box(const CUDA_MEMCPY3D&);
CUresult fill_rows(const CUDA_MEMSET_NODE_PARAMS&);
// Whether such rows can be filled, wherever they are.
bool is_filling(const CUDA_MEMSET_NODE_PARAMS&);

}  // namespace cuwarden::simulated_gpu

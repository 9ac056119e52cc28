// cuMemFree of memory that other functions than cuMemAlloc gave.
#include <cuda.h>

#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr std::size_t bytes = std::size_t{2} << 20;
expected::Account account;

void free_stream_ordered() {
  CUdeviceptr memory = 0;
  REQUIRE(cuMemAllocAsync(&memory, bytes, nullptr));
  account.allocated("stream_ordered", bytes);
  REQUIRE(cuStreamSynchronize(nullptr));
  REQUIRE(cuMemFree(memory));
  account.freed("stream_ordered", bytes);
}

void free_managed() {
  CUdeviceptr memory = 0;
  REQUIRE(cuMemAllocManaged(&memory, bytes, CU_MEM_ATTACH_GLOBAL));
  account.allocated("managed", bytes);
  REQUIRE(cuMemFree(memory));
  account.freed("managed", bytes);
}

void free_of_a_graph() {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  parameters.bytesize = bytes;
  REQUIRE(cuGraphCreate(&graph, 0));
  REQUIRE(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &parameters));
  REQUIRE(cuGraphInstantiate(&exec, graph, 0));
  REQUIRE(cuGraphLaunch(exec, nullptr));
  account.allocated("graph", bytes);
  REQUIRE(cuStreamSynchronize(nullptr));
  REQUIRE(cuMemFree(parameters.dptr));
  account.freed("graph", bytes);
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  REQUIRE(cuInit(0));
  REQUIRE(cuDevicePrimaryCtxRetain(&context, 0));
  REQUIRE(cuCtxSetCurrent(context));
  free_stream_ordered();
  free_managed();
  free_of_a_graph();
  account.print();
}

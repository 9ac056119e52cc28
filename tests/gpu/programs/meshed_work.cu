// The work of meshed.hpp, done by kernels: by launches, and by graphs.
#include "tests/end_to_end/programs/require.hpp"
#include "tests/end_to_end/programs/rescue/meshed.hpp"

namespace {

__global__ void fill(unsigned char* data, std::size_t bytes, unsigned char value) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes; i += step)
    data[i] = value;
}

__global__ void count_wrong(const unsigned char* data, std::size_t bytes, unsigned char value,
                            unsigned* wrong) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes; i += step)
    if (data[i] != value) atomicAdd(wrong, 1u);
}

class Worker {
 public:
  Worker() {
    REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    REQUIRE(cudaMallocHost(&wrong_, sizeof *wrong_));
  }
  ~Worker() {
    cudaFreeHost(wrong_);
    cudaStreamDestroy(stream_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Fills the block. Every eighth fill is a graph's; the graph is built without a capture, which
  // other threads' calls might disturb.
  void write(const meshed::Block& block) {
    if (++writes_ % 8 != 0) {
      fill<<<8, 256, 0, stream_>>>(bytes_of(block), block.bytes, block.value);
    } else {
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      REQUIRE(cudaGraphCreate(&graph, 0));
      void* memory = block.memory;
      std::size_t bytes = block.bytes;
      unsigned char value = block.value;
      void* arguments[] = {&memory, &bytes, &value};
      cudaKernelNodeParams node{};
      node.func = reinterpret_cast<void*>(fill);
      node.gridDim = dim3(8);
      node.blockDim = dim3(256);
      node.kernelParams = arguments;
      cudaGraphNode_t made = nullptr;
      REQUIRE(cudaGraphAddKernelNode(&made, graph, nullptr, 0, &node));
      REQUIRE(cudaGraphInstantiate(&executable, graph, 0));
      REQUIRE(cudaGraphLaunch(executable, stream_));
      REQUIRE(cudaStreamSynchronize(stream_));
      cudaGraphExecDestroy(executable);
      cudaGraphDestroy(graph);
    }
    REQUIRE(cudaGetLastError());
    REQUIRE(cudaStreamSynchronize(stream_));
  }
  // Counts the wrong bytes of the block. The kernel is launched three times in a row, so that work
  // is queued when other threads ask for memory.
  std::size_t wrong_bytes(const meshed::Block& block) {
    *wrong_ = 0;
    for (int i = 0; i < 3; ++i)
      count_wrong<<<8, 256, 0, stream_>>>(bytes_of(block), block.bytes, block.value, wrong_);
    REQUIRE(cudaGetLastError());
    REQUIRE(cudaStreamSynchronize(stream_));
    return *wrong_;
  }

 private:
  static unsigned char* bytes_of(const meshed::Block& block) {
    return static_cast<unsigned char*>(block.memory);
  }
  cudaStream_t stream_ = nullptr;
  unsigned* wrong_ = nullptr;
  unsigned writes_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return meshed::run<Worker>(argc, argv); }

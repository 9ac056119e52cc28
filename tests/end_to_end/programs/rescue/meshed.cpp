// meshed.hpp by copies and fills.
#include "tests/end_to_end/programs/rescue/meshed.hpp"

namespace {

class Worker {
 public:
  Worker() { REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Worker() { cudaStreamDestroy(stream_); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Writes the block in three parts: by a fill, and by copies from the host and on the device.
  void write(const meshed::Block& block) {
    const std::size_t part = block.bytes / 4;
    auto* const start = static_cast<unsigned char*>(block.memory);
    host_.assign(block.bytes - 2 * part, block.value);
    REQUIRE(cudaMemsetAsync(start, block.value, part, stream_));
    REQUIRE(cudaMemcpyAsync(start + part, start, part, cudaMemcpyDeviceToDevice, stream_));
    REQUIRE(cudaMemcpyAsync(start + 2 * part, host_.data(), host_.size(), cudaMemcpyHostToDevice,
                            stream_));
    REQUIRE(cudaStreamSynchronize(stream_));
  }
  std::size_t wrong_bytes(const meshed::Block& block) {
    host_.resize(block.bytes);
    REQUIRE(
        cudaMemcpyAsync(host_.data(), block.memory, block.bytes, cudaMemcpyDeviceToHost, stream_));
    REQUIRE(cudaStreamSynchronize(stream_));
    const auto right = std::count(host_.begin(), host_.end(), block.value);
    return block.bytes - static_cast<std::size_t>(right);
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<unsigned char> host_;
};

}  // namespace

int main(int argc, char** argv) { return meshed::run<Worker>(argc, argv); }

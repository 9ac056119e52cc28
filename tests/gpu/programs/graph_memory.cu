// Memory of CUDA graphs: nodes that allocate, nodes that free, and stream-ordered calls that a
// capture turns into nodes. Memory that a graph does not free is live after its launch.
#include "tests/end_to_end/programs/allocation_calls/memory_nodes.hpp"
#include "tests/gpu/programs/device_work.cuh"

namespace memory {

using expected::Account;

using memory_nodes::bytes;

constexpr std::size_t words = bytes / sizeof(unsigned);

void launched_and_left(Account& account) {
  work::fill_and_check("a node's memory", memory_nodes::launched(account), words, 1);
}

void captured(Account& account) {
  const auto made = memory_nodes::captured_graph([](cudaStream_t stream, void* memory) {
    work::fill<<<64, 256, 0, stream>>>(static_cast<unsigned*>(memory), words, 2);
  });
  REQUIRE(cudaGraphLaunch(made.exec, made.stream));
  account.allocated("graph", bytes);
  std::vector<unsigned> got(words);
  REQUIRE(cudaMemcpyAsync(got.data(), made.address, bytes, cudaMemcpyDefault, made.stream));
  REQUIRE(cudaStreamSynchronize(made.stream));
  work::print_checksum("captured", got, 2);
  REQUIRE(cudaFree(made.address));
  account.freed("graph", bytes);
}

void captured_and_freed_in_the_capture(Account& account) {
  const auto made = memory_nodes::captured_graph(
      [](cudaStream_t stream, void* memory) { REQUIRE(cudaFreeAsync(memory, stream)); });
  for (int i = 0; i < 4; ++i) {
    REQUIRE(cudaGraphLaunch(made.exec, made.stream));
    account.allocated("graph", bytes);
    account.freed("graph", bytes);
  }
  REQUIRE(cudaStreamSynchronize(made.stream));
}

// Launches a graph again and again while the last launch's memory is still there: the launch frees
// it.
void freed_by_the_next_launch(Account& account) {
  const cudaGraphExec_t exec =
      memory_nodes::allocating_graph(cudaGraphInstantiateFlagAutoFreeOnLaunch).exec;
  for (int i = 0; i < 3; ++i) {
    if (i > 0) account.freed("graph", bytes);
    REQUIRE(cudaGraphLaunch(exec, nullptr));
    account.allocated("graph", bytes);
  }
  REQUIRE(cudaDeviceSynchronize());
}

int planted_line = 0;

void planted(Account& account) {
  void* memory = nullptr;
  planted_line = __LINE__ + 1;
  REQUIRE(cudaMalloc(&memory, 123456));
  account.allocated("device", 123456);
  account.leaked({"cudaMalloc", "device", "planted", planted_line, 1, 123456});
}

}  // namespace memory

int main() {
  const long long before = work::warm_up();
  expected::Account account;
  memory_nodes::never_launched();
  memory::launched_and_left(account);
  memory_nodes::freed_by_the_graph(account);
  memory::captured(account);
  memory::captured_and_freed_in_the_capture(account);
  memory::freed_by_the_next_launch(account);
  memory::planted(account);
  const long long after = work::used_bytes();
  std::printf("memory: {\"taken_bytes\":%lld,\"used_bytes\":%lld}\n", after - before, after);
  account.print();
}

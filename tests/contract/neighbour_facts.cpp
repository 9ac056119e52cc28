// Two processes on one device: memory of one is not available to the other, and is free again when
// its owner ends, however it ends. The exit status is 0, or the number of the fact that did not
// hold.
#include "tests/comes_about.hpp"
#include "tests/contract/neighbour.hpp"

namespace {

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  require(cuMemGetInfo(&free, &total) == CUDA_SUCCESS, 4);
  return free;
}

}  // namespace

int main() {
  const pid_t neighbour = start_neighbour();
  make_context();
  CUdeviceptr address = 0;
  const std::size_t beside = free_bytes();
  require(cuMemAlloc(&address, beside + held / 2) == CUDA_ERROR_OUT_OF_MEMORY, 10);
  kill(neighbour, SIGKILL);
  require(waitpid(neighbour, nullptr, 0) == neighbour, 11);
  require(cuwarden::comes_about([&] { return free_bytes() >= beside + held; }), 12);
  require(cuMemAlloc(&address, beside + held / 2) == CUDA_SUCCESS, 13);
  return 0;
}

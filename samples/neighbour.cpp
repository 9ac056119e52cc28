// The situation: another process holds most of the device, and leaves after some seconds. This
// program is not at fault: its own account says that it uses nearly nothing.
//
// Users see an out-of-memory on a device that was empty when they looked. In a container, not even
// nvidia-smi shows the other process.
//
// The other process is a second instance of this program. It leaves after the given seconds, or
// when the first one has seen its request fail. On the simulated GPU both have to share the device:
// CUWARDEN_SIM_SHARED names a file for that.
//
//     neighbour [seconds]
#include <cuda_runtime_api.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "samples/child_process.hpp"
#include "samples/planned_shortage.hpp"

namespace {

sample::Account account;

// Runs the other process: prints how many bytes it holds, and holds them until its input ends.
int hold_the_device(std::size_t seconds) {
  const std::size_t bytes =
      sample::device_memory().free / 10 * 6 / sample::kDevicePage * sample::kDevicePage;
  void* buffer = nullptr;
  sample::require(cudaMalloc(&buffer, bytes), "cudaMalloc");
  std::printf("%zu\n", bytes);
  std::fflush(stdout);
  pollfd told{STDIN_FILENO, POLLIN, 0};
  poll(&told, 1, static_cast<int>(1000 * seconds));
  sample::require(cudaFree(buffer), "cudaFree");
  return 0;
}

class Neighbour {
 public:
  explicit Neighbour(const std::string& seconds) : process_({"neighbour", "hold", seconds}, [] {}) {
    bytes_ = std::strtoull(process_.next_line().c_str(), nullptr, 10);
  }

  pid_t pid() const { return process_.pid(); }
  std::size_t bytes() const { return bytes_; }
  void leave() {
    process_.close_input();
    process_.wait();
  }

 private:
  sample::ChildProcess process_;
  std::size_t bytes_ = 0;
};

[[gnu::noinline]] sample::Request load_model(std::size_t bytes) {
  void* model = nullptr;
  auto request = sample::Request::planned("cudaMalloc", bytes, __func__, __LINE__ + 1);
  request.result = cudaMalloc(&model, bytes);
  sample::free_if_served(request, model, account);
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "hold") == 0)
    return hold_the_device(sample::argument(argc, argv, 2, 0));
  const std::size_t seconds = sample::argument(argc, argv, 1, 8);

  Neighbour other(std::to_string(seconds));
  if (other.bytes() == 0) {  // The other process has printed the reason on stderr.
    other.leave();
    return 1;
  }
  const sample::Request request = load_model(sample::device_memory().total / 2);
  other.leave();
  std::printf("the neighbour has left\n");
  return sample::conclude(request, account,
                          sample::fact("other_pid", static_cast<std::size_t>(other.pid())) +
                              sample::fact("other_bytes", other.bytes()));
}

// Two processes on one device: NVML, read as the shim reads it, lists both, each with the memory
// that it holds. The exit status is 0, or the number of the fact that did not hold; 77 without a
// device.
//
// usage: process_list_facts [refused | alone | made_up]: the setting that the simulated GPU has.
#include <cstdio>
#include <span>
#include <string_view>

#include "shim/probes/nvml_processes.hpp"
#include "tests/contract/neighbour.hpp"

namespace {

using namespace cuwarden::shim;

// The most bytes that a context takes; it takes more on one machine than on another.
constexpr std::size_t most_of_a_context = 1024 * MiB;

DeviceProcesses ask(std::span<DeviceProcess> into) {
  CUuuid uuid{};
  require(cuDeviceGetUuid_v2(&uuid, 0) == CUDA_SUCCESS, 10);
  return read_device_processes(uuid.bytes, into);
}

struct List {
  DeviceProcess processes[16];
  std::uint32_t found = 0;
  const DeviceProcess* of(pid_t pid) const {
    for (std::uint32_t i = 0; i < found && i < 16; ++i)
      if (processes[i].pid == static_cast<std::uint32_t>(pid)) return &processes[i];
    return nullptr;
  }
};

List list() {
  List made;
  const DeviceProcesses read = ask(made.processes);
  std::printf("%s (%d): %u\n", text_of(read.answer), read.nvml_error, read.found);
  require(read.answer == DeviceProcessesAnswer::listed, 11);
  made.found = read.found;
  for (std::uint32_t i = 0; i < made.found && i < 16; ++i) {
    const DeviceProcess& process = made.processes[i];
    std::printf("  %u: %llu bytes, %d\n", process.pid,
                static_cast<unsigned long long>(process.used_bytes),
                static_cast<int>(process.whose));
  }
  std::fflush(stdout);
  return made;
}

bool holds_about(const DeviceProcess& process, std::size_t bytes) {
  return process.used_bytes == DeviceProcess::unknown ||
         (process.used_bytes >= bytes && process.used_bytes <= bytes + most_of_a_context);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view told = argc > 1 ? argv[1] : "";
  const pid_t neighbour = start_neighbour();
  make_context();
  CUdeviceptr address = 0;
  require(cuMemAlloc(&address, 512 * MiB) == CUDA_SUCCESS, 12);
  std::printf("this process: %d, its neighbour: %d\n", getpid(), neighbour);
  if (told == "refused") {
    const DeviceProcesses refused = ask({});
    require(refused.answer == DeviceProcessesAnswer::not_permitted && refused.nvml_error == 4, 21);
    return 0;
  }
  const List both = list();
  kill(neighbour, SIGKILL);
  waitpid(neighbour, nullptr, 0);
  const DeviceProcess* const own = both.of(getpid());
  const DeviceProcess* const other = both.of(neighbour);
  require(own != nullptr, 13);
  require(own->whose == DeviceProcess::Whose::this_process, 14);
  require(holds_about(*own, 512 * MiB), 15);
  if (!told.empty()) {
    require(other == nullptr, 22);
    require(both.found == (told == "made_up" ? 2u : 1u), 23);
    if (told == "made_up") require(both.processes[1].used_bytes == 256 * MiB, 24);
    return 0;
  }
  require(other != nullptr, 16);
  require(other->whose == DeviceProcess::Whose::another, 17);
  require(holds_about(*other, held), 18);
  const List after = list();
  require(after.of(neighbour) == nullptr, 19);
  require(after.of(getpid()) != nullptr, 20);
  return 0;
}

// Lists the processes that hold memory of the devices, as far as this process can know: itself,
// those that share the devices with it (CUWARDEN_SIM_SHARED), and the one that
// CUWARDEN_SIM_OTHER_PROCESS makes up.
#include "tools/simulated_gpu/device/process_list.hpp"

#include <unistd.h>

#include <algorithm>

#include "tools/simulated_gpu/device/simulator.hpp"

using namespace cuwarden::simulated_gpu;

int cuSimulatedGpuProcesses(int board, ListedProcess* into, int capacity) {
  Simulator& sim = simulator();
  const std::lock_guard lock(sim.mutex);
  if (board < 0 || board >= sim.settings.devices) return kNoSuchDevice;
  if (sim.settings.processes == ProcessList::refuse) return kListRefused;
  int found = 0;
  const int own = getpid();
  const auto list = [&](int pid, std::size_t used) {
    if (used == 0 || (pid != own && sim.settings.processes == ProcessList::hide_others)) return;
    if (found < capacity) into[found] = {static_cast<unsigned>(pid), used};
    ++found;
  };
  if (sim.share.joined()) {
    sim.share.each(board, list);
  } else {
    for (const auto& device : sim.devices)
      if (device->board == board) list(own, device->used);
  }
  // Process 1 exists nearly everywhere, so it stands for the other process.
  const int other = own == 1 ? 2 : 1;
  list(sim.settings.other_pid != 0 ? sim.settings.other_pid : other, sim.settings.other_process);
  return found;
}

int cuSimulatedGpuWhole(int board, WholeDevice* into) {
  Simulator& sim = simulator();
  const std::lock_guard lock(sim.mutex);
  if (board < 0 || board >= sim.settings.devices) return kNoSuchDevice;
  const std::size_t capacity = sim.settings.memory;
  const std::size_t taken = sim.settings.other_process + sim.share.used_by_others(board);
  *into = {sim.settings.whole_memory != 0,       sim.settings.whole_memory, capacity,
           capacity - std::min(capacity, taken), sim.settings.cgroup_limit, 0};
  for (const auto& device : sim.devices) {
    if (device->board != board) continue;
    into->own_free_bytes = device->free_bytes();
    into->cgroup_used_bytes = device->used;
  }
  return sim.settings.processes == ProcessList::refuse ? kListRefused : 0;
}

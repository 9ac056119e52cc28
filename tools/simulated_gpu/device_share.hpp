// Processes that share the simulated devices: what each holds, in a file that all of them map
// (CUWARDEN_SIM_SHARED). Without that file every process has devices of its own.
//
// A process owns one slot, and a record lock on it that the kernel gives up when the process ends
// in whatever way: what a dead process held is free at that moment, as on a real device.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

namespace cuwarden::simulated_gpu {

class DeviceShare {
 public:
  DeviceShare() = default;
  DeviceShare(const DeviceShare&) = delete;
  DeviceShare& operator=(const DeviceShare&) = delete;

  // A file that cannot be used is one line on stderr, and the devices are not shared.
  void join(const std::string& path);
  bool joined() const { return slots_ != nullptr; }

  // What the other living processes hold of the device.
  std::size_t used_by_others(int device) const;
  void publish(int device, std::size_t used);
  // Calls visit(pid, used) for every living process that holds something, this one too.
  void each(int device, const std::function<void(int, std::size_t)>& visit) const;

  // Whoever takes memory holds this from the reading of what is free to the publishing.
  class Taking {
   public:
    explicit Taking(const DeviceShare& share);
    ~Taking();
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;

   private:
    const DeviceShare& share_;
  };

 private:
  static constexpr int kSlots = 64;
  static constexpr int kDevices = 64;
  struct Slot {
    std::atomic<int> pid;
    std::atomic<std::size_t> used[kDevices];
  };

  bool owned_by_another(int slot) const;

  int file_ = -1;
  int own_ = -1;
  Slot* slots_ = nullptr;
};

}  // namespace cuwarden::simulated_gpu

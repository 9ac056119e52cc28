// Processes that share the simulated devices. A file that all of them map (CUWARDEN_SIM_SHARED)
// tells how much each process holds. Without that file every process has devices of its own.
//
// A process owns one slot and a record lock on it. The kernel gives the lock up when the process
// ends in whatever way. So memory of a dead process is free at that moment, as on a real device.
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

  // Joins the processes that share the file at `path`. If the file cannot be used, writes one line
  // to stderr, and the devices are not shared.
  void join(const std::string& path);
  bool joined() const { return slots_ != nullptr; }

  // Returns the bytes of the device that other living processes hold.
  std::size_t used_by_others(int device) const;
  // Tells the other processes that this one holds `used` bytes of the device.
  void publish(int device, std::size_t used);
  // Calls visit(pid, used) for every living process that holds memory of the device, this one
  // included.
  void each(int device, const std::function<void(int, std::size_t)>& visit) const;

  // A lock between processes. A process that takes memory holds it from reading the free bytes to
  // publishing its own.
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

// Lets several processes share the simulated devices. All of them map one file
// (CUWARDEN_SIM_SHARED), in which each process writes how much memory of each device it holds.
// Without the file every process has devices of its own.
//
// A process owns one slot of the file, and a record lock on the slot. The kernel releases the lock
// when the process ends in any way. So the memory of a dead process is free at once, as on a real
// device.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

namespace cuwarden::simulated_gpu {

// Tells other processes how much memory of the simulated devices this process holds, and finds out
// how much they hold. Until join() succeeds, this process shares its devices with no other.
class DeviceShare {
 public:
  DeviceShare() = default;
  DeviceShare(const DeviceShare&) = delete;
  DeviceShare& operator=(const DeviceShare&) = delete;

  // Makes this process one of those that share the simulated devices by the file at `path`, which
  // is made if missing. If the file cannot be used, or 64 processes share it already, writes one
  // line to stderr, and the devices are not shared.
  void join(const std::string& path);
  // True if this process shares the devices with others: join() has succeeded.
  bool joined() const { return slots_ != nullptr; }

  // Returns the bytes of the device that other living processes hold; 0 if the devices are not
  // shared. `device`: number in the machine, 0 to 63.
  std::size_t used_by_others(int device) const;
  // Tells the processes that share the devices that this process holds `used` bytes of the device,
  // all in all. `device`: number in the machine, 0 to 63. Does nothing if the devices are not
  // shared.
  void publish(int device, std::size_t used);
  // Calls visit(pid, used) for each living process that holds memory of the device, this process
  // included. `used`: bytes of the device that the process holds. `device`: number in the machine,
  // 0 to 63. Does nothing if the devices are not shared.
  void each(int device, const std::function<void(int, std::size_t)>& visit) const;

  // While the object exists, holds a lock that excludes the other processes that share the devices.
  // A process that takes device memory holds the lock from the moment it reads the free bytes until
  // it has called publish(). So two processes cannot both take the last free bytes.
  class Taking {
   public:
    // Waits until no other process holds the lock of `share`, and takes it; the destructor releases
    // it. Does not exclude threads of this process. Does nothing if the devices are not shared.
    // `share` outlives the object.
    explicit Taking(const DeviceShare& share);
    // Releases the lock.
    ~Taking();
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;

   private:
    const DeviceShare& share_;  // The object whose shared file contains the lock; not owned.
  };

 private:
  static constexpr int kSlots = 64;    // Most processes that can share the devices.
  static constexpr int kDevices = 64;  // Most devices of the machine.
  // A slot of the shared file: the device memory that one process holds.
  struct Slot {
    std::atomic<int> pid;  // Id of the process that took this slot last; 0: none did.
    // Bytes that the process holds of each device, by the device's number in the machine.
    std::atomic<std::size_t> used[kDevices];
  };

  // True if another living process owns the slot of the shared file with this index, from 0.
  bool owned_by_another(int slot) const;

  int file_ = -1;  // Descriptor of the file by which processes share the devices; -1: not shared.
  // Index of this process's slot in the shared file; -1: the devices are not shared.
  int own_ = -1;
  Slot* slots_ = nullptr;  // The mapped file, kSlots slots; null if the devices are not shared.
};

}  // namespace cuwarden::simulated_gpu

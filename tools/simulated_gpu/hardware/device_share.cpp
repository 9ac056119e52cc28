// Slots of a shared file and their record locks. POSIX locks belong to the process and not to the
// descriptor: a forked child, which may not use the driver anyway, does not keep its parent's slot.
#include "tools/simulated_gpu/hardware/device_share.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace cuwarden::simulated_gpu {
namespace {

struct flock byte(short type, off_t at) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = at;
  lock.l_len = 1;
  return lock;
}

// To lengthen a file beyond the limit raises a signal that ends the program.
bool may_have_size(std::size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes) return true;
  errno = EFBIG;
  return false;
}

// The lock of a file is a point at which pthread_cancel ends a thread, within a call of the driver.
int lock_uncancelled(int file, int command, struct flock& lock) {
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  const int result = fcntl(file, command, &lock);
  const int error = errno;
  pthread_setcancelstate(before, nullptr);
  errno = error;
  return result;
}

}  // namespace

void DeviceShare::join(const std::string& path) {
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* mapped = MAP_FAILED;
  if (file_ >= 0 && may_have_size(sizeof(Slot) * kSlots) &&
      ftruncate(file_, sizeof(Slot) * kSlots) == 0) {
    mapped = mmap(nullptr, sizeof(Slot) * kSlots, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  }
  for (int slot = 0; mapped != MAP_FAILED && own_ < 0 && slot < kSlots; ++slot) {
    struct flock lock = byte(F_WRLCK, slot);
    if (lock_uncancelled(file_, F_SETLK, lock) == 0) own_ = slot;
  }
  if (own_ < 0) {
    std::fprintf(stderr,
                 "simulated GPU: the file of CUWARDEN_SIM_SHARED cannot be used (%s); the devices "
                 "are this process's alone\n",
                 std::strerror(errno));
    if (mapped != MAP_FAILED) munmap(mapped, sizeof(Slot) * kSlots);
    if (file_ >= 0) close(file_);
    file_ = -1;
    return;
  }
  slots_ = static_cast<Slot*>(mapped);
  slots_[own_].pid.store(getpid());
  for (auto& used : slots_[own_].used) used.store(0);
}

bool DeviceShare::owned_by_another(int slot) const {
  struct flock lock = byte(F_WRLCK, slot);
  return slot != own_ && lock_uncancelled(file_, F_GETLK, lock) == 0 && lock.l_type != F_UNLCK;
}

std::size_t DeviceShare::used_by_others(int device) const {
  std::size_t sum = 0;
  for (int slot = 0; joined() && slot < kSlots; ++slot) {
    const std::size_t used = slots_[slot].used[device].load();
    if (used != 0 && owned_by_another(slot)) sum += used;
  }
  return sum;
}

void DeviceShare::each(int device, const std::function<void(int, std::size_t)>& visit) const {
  for (int slot = 0; joined() && slot < kSlots; ++slot) {
    const std::size_t used = slots_[slot].used[device].load();
    const int pid = slots_[slot].pid.load();
    if (used != 0 && (slot == own_ || owned_by_another(slot))) visit(pid, used);
  }
}

void DeviceShare::publish(int device, std::size_t used) {
  if (joined()) slots_[own_].used[device].store(used);
}

DeviceShare::Taking::Taking(const DeviceShare& share) : share_(share) {
  if (!share_.joined()) return;
  struct flock lock = byte(F_WRLCK, kSlots);
  while (lock_uncancelled(share_.file_, F_SETLKW, lock) != 0 && errno == EINTR) {
  }
}

DeviceShare::Taking::~Taking() {
  if (!share_.joined()) return;
  struct flock lock = byte(F_UNLCK, kSlots);
  lock_uncancelled(share_.file_, F_SETLK, lock);
}

}  // namespace cuwarden::simulated_gpu

// Two processes on one device: memory of one is not available to the other, and is free again when
// its owner ends, however it ends. Without GoogleTest, because a process must fork before it begins
// with CUDA. The exit status is 0, or the number of the fact that did not hold.
#include <cuda.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kHeld = 1024 * kMiB;

void require(bool holds, int fact) {
  if (!holds) _exit(fact);
}

void make_context() {
  CUcontext context = nullptr;
  const CUresult started = cuInit(0);
  if (started == CUDA_ERROR_NO_DEVICE) _exit(77);
  require(started == CUDA_SUCCESS, 1);
  require(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS, 2);
  require(cuCtxSetCurrent(context) == CUDA_SUCCESS, 3);
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  require(cuMemGetInfo(&free, &total) == CUDA_SUCCESS, 4);
  return free;
}

void hold(int ready) {
  CUdeviceptr address = 0;
  make_context();
  require(cuMemAlloc(&address, kHeld) == CUDA_SUCCESS, 5);
  require(write(ready, "r", 1) == 1, 6);
  for (;;) pause();
}

}  // namespace

int main() {
  int ready[2] = {};
  require(pipe(ready) == 0, 7);
  const pid_t neighbour = fork();
  require(neighbour >= 0, 8);
  if (neighbour == 0) hold(ready[1]);
  close(ready[1]);
  char heard = 0;
  if (read(ready[0], &heard, 1) != 1) {  // The neighbour has ended: its status tells the reason.
    int status = 0;
    require(waitpid(neighbour, &status, 0) == neighbour && WIFEXITED(status), 9);
    return WEXITSTATUS(status);
  }

  make_context();
  CUdeviceptr address = 0;
  const std::size_t beside = free_bytes();
  require(cuMemAlloc(&address, beside + kHeld / 2) == CUDA_ERROR_OUT_OF_MEMORY, 10);
  kill(neighbour, SIGKILL);
  require(waitpid(neighbour, nullptr, 0) == neighbour, 11);
  for (int i = 0; i < 3000 && free_bytes() < beside + kHeld; ++i) usleep(20000);
  require(free_bytes() >= beside + kHeld, 12);
  require(cuMemAlloc(&address, beside + kHeld / 2) == CUDA_SUCCESS, 13);
  return 0;
}

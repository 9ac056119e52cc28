// frees_in_child: a static object frees at the end of the process, and so also in a forked child,
// which must not use CUDA. The driver's answer does not matter, but the child must end.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

struct Holder {
  CUdeviceptr held = 0;
  bool child = false;
  ~Holder() {
    const CUresult result = cuMemFree(held);
    std::printf("%s: %s\n", child ? "child" : "parent",
                result == CUDA_SUCCESS ? "freed" : "refused");
    std::fflush(stdout);
  }
} holder;

}  // namespace

int main() {
  CUcontext context = nullptr;
  CUdevice device = 0;
  CUdeviceptr other = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc(&holder.held, 1000) != CUDA_SUCCESS ||
      cuMemAlloc(&other, 2000) != CUDA_SUCCESS || cuMemFree(other) != CUDA_SUCCESS)
    return 3;
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    holder.child = true;
    alarm(10);  // ends a child in which two functions call each other without end
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("the child's status: %d\n", status);
}

// Memory between processes. The parent does not use the driver before it has made its child: a
// forked process cannot use its parent's driver state.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace {

struct Message {
  CUipcMemHandle handle;
  CUdeviceptr address;
};

bool start() {
  CUcontext context = nullptr;
  return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
         cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

// Opens the handle, reads, writes and closes. Returns the exit status: 0, or the number of the step
// that failed.
int child(int from_parent) {
  Message message;
  if (read(from_parent, &message, sizeof message) != sizeof message || !start()) return 1;
  CUdeviceptr address = 0, again = 0;
  int value = 0;
  if (cuIpcOpenMemHandle(&address, message.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) !=
      CUDA_SUCCESS)
    return 2;
  if (cuIpcOpenMemHandle(&again, message.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) !=
          CUDA_SUCCESS ||
      again != address)
    return 3;
  if (cuMemcpyDtoH(&value, address, sizeof value) != CUDA_SUCCESS || value != 4711) return 4;
  if (cuMemsetD32(address, 815, 1) != CUDA_SUCCESS) return 5;
  if (cuMemFree(address) != CUDA_ERROR_INVALID_VALUE) return 6;
  if (cuIpcCloseMemHandle(address) != CUDA_SUCCESS || cuIpcCloseMemHandle(address) != CUDA_SUCCESS)
    return 7;
  if (cuIpcCloseMemHandle(address) == CUDA_SUCCESS) return 8;
  return 0;
}

}  // namespace

int main() {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 1;
  const pid_t other = fork();
  if (other == 0) _exit(child(pipe_ends[0]));
  Message message{};
  CUdeviceptr neighbour = 0;
  int value = 4711, status = 0;
  if (!start()) return 77;
  if (cuMemAlloc(&neighbour, 1000) != CUDA_SUCCESS ||
      cuMemAlloc(&message.address, 1000) != CUDA_SUCCESS)
    return 2;
  if (cuMemcpyHtoD(message.address, &value, sizeof value) != CUDA_SUCCESS) return 3;
  if (cuIpcGetMemHandle(&message.handle, message.address) != CUDA_SUCCESS) return 4;
  if (write(pipe_ends[1], &message, sizeof message) != sizeof message) return 5;
  if (waitpid(other, &status, 0) != other || status != 0) {
    std::fprintf(stderr, "the other process ended with status %d\n", WEXITSTATUS(status));
    return 6;
  }
  if (cuMemcpyDtoH(&value, message.address, sizeof value) != CUDA_SUCCESS || value != 815) return 7;
  if (cuMemFree(message.address) != CUDA_SUCCESS || cuMemFree(neighbour) != CUDA_SUCCESS) return 8;
  // A forked child of a process that uses the driver cannot use it.
  const pid_t heir = fork();
  if (heir == 0)
    _exit(cuMemFree(0) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) != CUDA_SUCCESS ? 0 : 1);
  return waitpid(heir, &status, 0) == heir && status == 0 ? 0 : 9;
}

// A second process on the device, for programs without GoogleTest: a process must fork before it
// begins with CUDA. A program ends with the number of the first fact that does not hold.
#pragma once

#include <cuda.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

#include "tests/contract/numbered_facts.hpp"

inline constexpr std::size_t MiB = std::size_t{1} << 20;  // bytes of a mebibyte
// Bytes of device memory that the second process (the neighbour) holds.
inline constexpr std::size_t held = 1024 * MiB;

// Makes device 0's primary context current. Ends the process with status 77 (skipped) if there is
// no device, and with a status from 1 to 3 if a call of the driver fails.
inline void make_context() {
  CUcontext context = nullptr;
  const CUresult started = cuInit(0);
  if (started == CUDA_ERROR_NO_DEVICE) _exit(77);
  require(started == CUDA_SUCCESS, 1);
  require(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS, 2);
  require(cuCtxSetCurrent(context) == CUDA_SUCCESS, 3);
}

// Starts a process that holds `held` bytes of device 0 until it is killed. Returns its pid once it
// holds them. If it ends before, ends this process with the same status.
inline pid_t start_neighbour() {
  int ready[2] = {};
  require(pipe(ready) == 0, 7);
  const pid_t neighbour = fork();
  require(neighbour >= 0, 8);
  if (neighbour == 0) {
    CUdeviceptr address = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // This process must not outlive a fact that does not hold.
    make_context();
    require(cuMemAlloc(&address, held) == CUDA_SUCCESS, 5);
    require(write(ready[1], "r", 1) == 1, 6);
    for (;;) pause();
  }
  close(ready[1]);
  char heard = 0;
  if (read(ready[0], &heard, 1) != 1) {
    int status = 0;
    require(waitpid(neighbour, &status, 0) == neighbour && WIFEXITED(status), 9);
    _exit(WEXITSTATUS(status));
  }
  return neighbour;
}

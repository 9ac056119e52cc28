// stuck HOW: ends the process while a thread is inside the driver, or has left it by a jump. The
// simulated GPU sends SIGUSR1 from within a call, with the driver's lock held (CUWARDEN_SIM_FAIL).
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/end_to_end/programs/let_time_pass.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/kernels_in_ptx.hpp"

namespace {

constexpr int status = 7;
constexpr std::size_t bytes = std::size_t{1} << 20;

sigjmp_buf outside;
sem_t inside;

void exit_in_handler(int) { std::exit(status); }
void quick_exit_in_handler(int) { std::quick_exit(status); }
void jump_in_handler(int) { siglongjmp(outside, 1); }
void stay_in_handler(int) {
  sem_post(&inside);
  for (;;) pause();
}
// Takes longer than the shim may wait in all at the end of the process.
void tarry_in_handler(int) { let_time_pass(700); }
// Ends the thread without unwinding: not all frames of a driver can be unwound.
void end_thread_in_handler(int) { syscall(SYS_exit, 0); }

void on_signal(void (*handler)(int)) {
  static char stack[64 << 10];
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof stack;
  REQUIRE(sigaltstack(&other, nullptr) == 0);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  REQUIRE(sigaction(SIGUSR1, &action, nullptr) == 0);
}

// Launches a kernel twice: the first launch of a kernel takes another way through the shim.
void launch() {
  const std::string code = cuwarden::kernels::head + cuwarden::kernels::text_of_idle("nothing");
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  REQUIRE(cuModuleLoadData(&module, code.c_str()));
  REQUIRE(cuModuleGetFunction(&kernel, module, "nothing"));
  for (int i = 0; i < 2; ++i)
    cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
}

// The call that the test has the simulated GPU stop in.
void call(const std::string& which, void* block) {
  if (which == "free") cudaFree(block);
  if (which == "malloc") cudaMalloc(&block, bytes);
  if (which == "odd") cudaMalloc(&block, 3 * bytes);  // cuwarden's pool serves this size
  if (which == "copy") cudaMemcpy(block, &which, sizeof which, cudaMemcpyHostToDevice);
  if (which == "launch") launch();
  if (which == "synchronize") cuCtxSynchronize();
  if (which == "priorities") {  // a call that is not hooked
    int least = 0, greatest = 0;
    cuCtxGetStreamPriorityRange(&least, &greatest);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "", which = argc > 2 ? argv[2] : "free";
  void* block = nullptr;
  REQUIRE(cudaMalloc(&block, bytes));
  std::puts("allocated");
  std::fflush(stdout);
  REQUIRE(sem_init(&inside, 0, 0) == 0);

  if (how == "exit_in_handler") on_signal(exit_in_handler);
  if (how == "quick_exit_in_handler") on_signal(quick_exit_in_handler);
  if (how == "exit_in_handler" || how == "quick_exit_in_handler") call(which, block);
  if (how == "jump" || how == "jump_and_exit") {
    on_signal(jump_in_handler);
    if (sigsetjmp(outside, 1) == 0) call(which, block);
    if (how == "jump") return status;
    std::exit(status);
  }
  if (how == "other_thread" || how == "other_thread_ends") {
    on_signal(how == "other_thread" ? stay_in_handler : end_thread_in_handler);
    std::thread other([&] {
      cudaSetDevice(0);  // the driver's functions want a context
      call(which, block);
    });
    if (how == "other_thread") {
      other.detach();
      REQUIRE(sem_wait(&inside) == 0);
    } else {
      other.join();
    }
    return status;
  }
  if (how == "lost") {  // the device answers with an error once, and never again
    std::printf("error %d\n", static_cast<int>(cuCtxSynchronize()));
    return status;
  }
  if (how == "interrupted_in_report") on_signal(exit_in_handler);
  if (how == "slow_at_exit") on_signal(tarry_in_handler);
  if (how == "return" || how == "slow_at_exit" || how == "interrupted_in_report") return status;
  return 2;
}

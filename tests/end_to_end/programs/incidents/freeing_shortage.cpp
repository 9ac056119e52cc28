// freeing: another thread frees what is asked for, and waits for the device, which works for ms=N
// milliseconds. With count=N in so many pieces. No shortage, as it turns out.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/comes_about.hpp"
#include "tests/end_to_end/programs/incidents/shortages.hpp"
#include "tests/kernels_in_ptx.hpp"
#include "tests/thread_state.hpp"

namespace shortages {
namespace {

// Works until the time is over.
const std::string code = cuwarden::kernels::head + R"(
.visible .entry work(.param .u64 nanoseconds)
{
  .reg .pred %p<2>;
  .reg .b64 %d<6>;
  ld.param.u64 %d1, [nanoseconds];
  mov.u64 %d2, %globaltimer;
again:
  mov.u64 %d3, %globaltimer;
  sub.s64 %d4, %d3, %d2;
  setp.lt.u64 %p1, %d4, %d1;
  @%p1 bra again;
  ret;
}
)";

}  // namespace

void work_in(void* stream, std::size_t milliseconds) {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  cuModuleLoadData(&module, code.c_str());
  cuModuleGetFunction(&kernel, module, "work");
  unsigned long long nanoseconds = milliseconds * 1'000'000ull;
  void* arguments[] = {&nanoseconds};
  cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, static_cast<CUstream>(stream), arguments, nullptr);
}

void while_another_thread_frees(const std::string& situation) {
  if (situation != "freeing") return;
  CUstream stream = nullptr;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);

  const std::size_t count = number("count", 1);
  const std::size_t bytes = (free_bytes() - 256 * MiB) / count / page * page;
  std::vector<void*> buffers;
  for (std::size_t i = 0; i < count; ++i) buffers.push_back(allocate(bytes));
  work_in(stream, number("ms", 400));
  int device = 0;
  cudaGetDevice(&device);
  std::atomic<pid_t> frees{0};  // id of the other thread, once it frees; 0: not yet
  std::atomic<bool> has_freed{false};
  std::thread other([&] {
    cudaSetDevice(device);
    frees = gettid();
    for (void* buffer : buffers) cudaFree(buffer);
    has_freed = true;
  });
  // The thread sleeps only where cudaFree waits for the device. On a busy machine, the device may
  // have finished before this thread looks.
  cuwarden::wait_until("the other thread waits in cudaFree, or has freed all", [&] {
    return has_freed || (frees != 0 && cuwarden::thread_state(frees) == 'S');
  });
  facts.figure = bytes;
  request(free_bytes() + bytes / 2 / page * page);
  other.join();
}

}  // namespace shortages

// jumping_handler: a signal handler leaves a CUDA call by longjmp, at the moment at which it hurts
// a recorder most: while it writes its records. Where there is a ledger in this process, its
// records are write-protected for one call; what follows must go on as if nothing had been there.
#include <cuda.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime_hooks/ledger/format/layout.hpp"

namespace {

using cuwarden::ledger::Header;
using cuwarden::ledger::RegionId;

sigjmp_buf outside;
void jump_outside(int) { siglongjmp(outside, 1); }

// The mapping of this process that begins as a ledger does; null without one.
char* ledger() {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[1024];
  char* found = nullptr;
  while (found == nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long start = 0;
    char access[5] = "";
    if (std::sscanf(line, "%lx-%*x %4s", &start, access) != 2 || std::strcmp(access, "rw-s") != 0)
      continue;
    auto* const bytes = reinterpret_cast<char*>(start);
    if (reinterpret_cast<Header*>(bytes)->magic == cuwarden::ledger::magic) found = bytes;
  }
  std::fclose(maps);
  return found;
}

CUdeviceptr allocate() {
  CUdeviceptr memory = 0;
  return cuMemAlloc(&memory, 4096) == CUDA_SUCCESS ? memory : 0;
}

void jump_out_of_a_call(char* records, std::size_t bytes) {
  struct sigaction jump {
  }, before{};
  jump.sa_handler = jump_outside;
  sigaction(SIGSEGV, &jump, &before);
  mprotect(records, bytes, PROT_READ);
  if (sigsetjmp(outside, 1) == 0) allocate();
  mprotect(records, bytes, PROT_READ | PROT_WRITE);
  sigaction(SIGSEGV, &before, nullptr);
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  CUdevice device = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS)
    return 3;
  // Enough that no call below needs new pages, which would not be protected.
  std::vector<CUdeviceptr> first;
  for (int i = 0; i < 4000; ++i) first.push_back(allocate());
  for (std::size_t i = 3; i < first.size(); ++i)
    if (cuMemFree(first[i]) != CUDA_SUCCESS) return 4;
  if (char* const present = ledger()) {
    const auto& records =
        reinterpret_cast<Header*>(present)->regions[static_cast<int>(RegionId::records)];
    jump_out_of_a_call(present + records.offset, records.file_bytes);
  }

  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      cuCtxSetCurrent(context);
      std::vector<CUdeviceptr> memory;
      for (int i = 0; i < 500; ++i) memory.push_back(allocate());
      for (const CUdeviceptr each : memory)
        if (each != 0 && cuMemFree(each) == CUDA_SUCCESS) ++answered;
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("answered %d\n", answered.load());
}

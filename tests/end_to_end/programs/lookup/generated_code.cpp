// generated_code PAGES: calls cudaMalloc from code in PAGES pages that belong to no module, as code
// compiled at run time does.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Malloc = cudaError_t (*)(void**, std::size_t);

// Makes a function that passes its arguments on to `target`, by a call rather than a jump.
Malloc compile(Malloc target) {
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) std::exit(3);
  unsigned char code[] = {0x48, 0x83, 0xec, 0x08,                      // sub $8, %rsp
                          0x48, 0xb8, 0,    0,    0,   0, 0, 0, 0, 0,  // mov $target, %rax
                          0xff, 0xd0,                                  // call *%rax
                          0x48, 0x83, 0xc4, 0x08, 0xc3};               // add $8, %rsp; ret
  const auto address = reinterpret_cast<std::uint64_t>(target);
  std::memcpy(code + 6, &address, sizeof address);
  std::memcpy(page, code, sizeof code);
  mprotect(page, 4096, PROT_READ | PROT_EXEC);
  return reinterpret_cast<Malloc>(page);
}

}  // namespace

int main(int, char** arguments) {
  const int pages = std::atoi(arguments[1]);
  int worked = 0;
  for (int i = 0; i < pages; ++i) {
    void* memory = nullptr;
    const Malloc allocate = compile(cudaMalloc);
    for (int again = 0; again < 2; ++again)
      worked += allocate(&memory, 1000) == cudaSuccess && cudaFree(memory) == cudaSuccess;
  }
  std::printf("%d calls worked\n", worked);
}

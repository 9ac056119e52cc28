// coroutine_in_stack WHERE WHAT: a coroutine, whose stack is a local array of a function, makes the
// process's first CUDA call (`first`), has a request refused (`refused`), or calls exit() (`exit`).
// The function runs in a child's first thread (`main`) or in another one (`thread`). The parent
// tells if the bytes below the coroutine's stack are what they were.
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr char kept = 0x5a;
constexpr std::size_t bytes_below = 256 << 10, bytes_of_stack = 4 << 20;

// Memory of parent and child.
struct Shared {
  alignas(4096) char stack[bytes_of_stack];  // the thread's
  bool was_whole;
};

// The thread has megabytes of stack below the arrays.
struct Arrays {
  char below[bytes_below];
  char stack[16 << 10];
};

std::string what;
ucontext_t in_caller, in_coroutine;
Shared* shared = nullptr;

bool is_whole(const Arrays& arrays) {
  return std::ranges::all_of(arrays.below, [](char byte) { return byte == kept; });
}

void work() {
  void* block = nullptr;
  if (what == "first") cudaMalloc(&block, 4096);
  if (what == "refused") cudaMalloc(&block, std::size_t{1} << 45);
  if (what == "exit") std::exit(0);
}

void* call_coroutine(void*) {
  void* block = nullptr;
  if (what != "first") cudaMalloc(&block, 4096);
  Arrays arrays;
  std::memset(arrays.below, kept, sizeof arrays.below);
  getcontext(&in_coroutine);
  in_coroutine.uc_stack.ss_sp = arrays.stack;
  in_coroutine.uc_stack.ss_size = sizeof arrays.stack;
  in_coroutine.uc_link = &in_caller;
  makecontext(&in_coroutine, work, 0);
  swapcontext(&in_caller, &in_coroutine);
  shared->was_whole = is_whole(arrays);
  return nullptr;
}

// Runs call_coroutine() in a thread whose stack the parent can read when the process has ended.
void call_in_thread() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, shared->stack, sizeof shared->stack);
  pthread_t thread{};
  if (pthread_create(&thread, &attributes, call_coroutine, nullptr) != 0) std::abort();
  pthread_join(thread, nullptr);
}

// True if the thread's stack has so many bytes in a row of those that the child put below the
// coroutine's stack.
bool has_bytes_below() {
  std::size_t row = 0, longest = 0;
  for (const char byte : shared->stack)
    longest = std::max(longest, row = byte == kept ? row + 1 : 0);
  return longest >= bytes_below;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string where = argv[1];
  what = argv[2];
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  shared = static_cast<Shared*>(memory);
  const pid_t child = fork();
  if (child == 0) {
    if (where == "main") call_coroutine(nullptr);
    if (where == "thread") call_in_thread();
    return 0;
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool whole = what == "exit" ? has_bytes_below() : shared->was_whole;
  std::puts(status != 0 ? "failed" : whole ? "kept" : "overwritten");
}

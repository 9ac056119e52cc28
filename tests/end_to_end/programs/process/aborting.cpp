// aborting HOW: a handler of SIGABRT calls abort() itself ("nested"), or leaves abort() by a jump,
// two hundred times ("jump", each after an allocation).
#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <signal.h>

#include <cstdlib>
#include <string>

namespace {

sigjmp_buf outside;
void abort_again(int) { std::abort(); }
void jump(int) { siglongjmp(outside, 1); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const bool nested = std::string(argv[1]) == "nested";
  struct sigaction action {};
  action.sa_handler = nested ? abort_again : jump;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGABRT, &action, nullptr);
  void* block = nullptr;
  cudaMalloc(&block, 4096);
  if (nested) std::abort();
  static int turns = 0;
  while (turns < 200) {
    ++turns;
    cudaMalloc(&block, 4096);
    if (sigsetjmp(outside, 1) == 0) std::abort();
  }
}

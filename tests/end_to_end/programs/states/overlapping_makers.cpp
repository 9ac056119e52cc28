// overlapping_makers COUNT: one thread loads COUNT modules, and another one makes COUNT streams.
// Each pair of calls begins at the same time. The last line says how many bytes the device lost.
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/end_to_end/programs/states/kernels.hpp"
#include "tests/end_to_end/programs/states/used_bytes.hpp"

namespace {

// Code with so many comments that it takes a while to load.
std::string long_code() {
  std::string code = code_with_table;
  for (int i = 0; i < 100'000; ++i) code += "// a line that is read and says nothing\n";
  return code;
}

const std::string code = long_code();

[[gnu::noinline]] void load_code() {
  CUmodule module = nullptr;
  require(cuModuleLoadData(&module, code.c_str()), "cuModuleLoadData");
}

[[gnu::noinline]] void open_stream() {
  CUstream stream = nullptr;
  require(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int count = std::atoi(argv[1]);
  CUcontext context = nullptr;
  require(cuInit(0), "cuInit");
  require(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const long long before = used_bytes();
  std::barrier together(2);
  std::thread other([&] {
    require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    for (int i = 0; i < count; ++i) {
      together.arrive_and_wait();
      open_stream();
    }
  });
  for (int i = 0; i < count; ++i) {
    together.arrive_and_wait();
    load_code();
  }
  other.join();
  std::printf("{\"taken\":%lld}\n", used_bytes() - before);
}

// overlapping_makers COUNT long|pipe: one thread loads COUNT modules, and another one makes COUNT
// streams.
//
// long: the code is so long that loading it takes a while; each pair of calls begins at the same
// time. pipe: the driver reads the code from a pipe, so that each stream is made while a module is
// loaded. Only the simulated driver reads pipes.
//
// The last line says how many bytes the device lost.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/end_to_end/programs/states/kernels.hpp"

namespace {

using cuwarden::test::by_driver::used_bytes;

// Code with so many comments that it takes a while to load.
std::string long_code() {
  std::string code = code_with_table;
  for (int i = 0; i < 100'000; ++i) code += "// a line that is read and says nothing\n";
  return code;
}

constexpr char pipe_path[] = "code.pipe";
bool by_pipe = false;
std::string code;

[[gnu::noinline]] void load_code() {
  CUmodule module = nullptr;
  if (by_pipe)
    REQUIRE(cuModuleLoad(&module, pipe_path));
  else
    REQUIRE(cuModuleLoadData(&module, code.c_str()));
}

[[gnu::noinline]] void open_stream() {
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

// Makes a stream while the other thread is inside its call of cuModuleLoad, which then gets its
// code.
void open_stream_during_load() {
  const int pipe = open(pipe_path, O_WRONLY);  // returns once the other thread's call reads
  open_stream();
  if (write(pipe, code.data(), code.size()) != static_cast<ssize_t>(code.size())) {
    std::perror(pipe_path);
    std::_Exit(1);
  }
  close(pipe);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int count = std::atoi(argv[1]);
  const std::string way = argv[2];
  by_pipe = way == "pipe";
  if (!by_pipe && way != "long") return 2;
  code = by_pipe ? code_with_table : long_code();
  CUcontext context = nullptr;
  REQUIRE(cuInit(0));
  REQUIRE(cuDevicePrimaryCtxRetain(&context, 0));
  REQUIRE(cuCtxSetCurrent(context));
  if (by_pipe && mkfifo(pipe_path, 0600) != 0) {
    std::perror(pipe_path);
    return 1;
  }
  const long long before = used_bytes();
  // Each pair begins once the pair before has ended, so that no pipe is opened that is still open.
  std::barrier together(2);
  std::thread other([&] {
    REQUIRE(cuCtxSetCurrent(context));
    for (int i = 0; i < count; ++i) {
      together.arrive_and_wait();
      if (by_pipe)
        open_stream_during_load();
      else
        open_stream();
    }
  });
  for (int i = 0; i < count; ++i) {
    together.arrive_and_wait();
    load_code();
  }
  other.join();
  if (by_pipe) unlink(pipe_path);
  std::printf("{\"taken\":%lld}\n", used_bytes() - before);
}

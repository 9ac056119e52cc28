// contexts_that_end HOW ROUNDS: one thread makes streams and loads code, again and again, in a
// context that another thread ends at any moment and replaces by a new one.
//
//   HOW: destroyed, a context of its own each round, which cuCtxDestroy ends;
//        reset, the primary context, which cuDevicePrimaryCtxReset ends.
//
// Afterwards, the second thread alone makes such objects in a further context, and ends it. Its own
// context stays until the end. The last line has the bytes of the device that are in use before the
// first round and after the last one.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/comes_about.hpp"
#include "tests/end_to_end/programs/create_context.hpp"
#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/end_to_end/programs/states/kernels.hpp"

namespace {

using cuwarden::test::create_context;
using cuwarden::test::by_driver::used_bytes;

constexpr int objects_of_a_round = 6;
constexpr int last_objects = 20;

std::atomic<CUcontext> shared{nullptr};  // The context of the round; null between two rounds.
std::atomic<int> made{0};                // Objects that were made in all rounds.
std::atomic<bool> done{false};

[[gnu::noinline]] CUresult open_stream() {
  CUstream stream = nullptr;
  return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
}

[[gnu::noinline]] CUresult load_code() {
  CUmodule module = nullptr;
  return cuModuleLoadData(&module, code_with_table.c_str());
}

// Makes objects until `done` is true. The driver refuses each call whose context has ended.
void make_objects() {
  while (!done) {
    const CUcontext context = shared;
    if (context == nullptr || cuCtxSetCurrent(context) != CUDA_SUCCESS) continue;
    made += open_stream() == CUDA_SUCCESS;
    made += load_code() == CUDA_SUCCESS;
  }
}

// Makes objects that no other thread disturbs.
[[gnu::noinline]] void make_last_objects() {
  for (int i = 0; i < last_objects; ++i) {
    CUmodule module = nullptr;
    CUstream stream = nullptr;
    REQUIRE(cuModuleLoadData(&module, code_with_table.c_str()));
    REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }
}

[[gnu::noinline]] CUcontext stay() {
  CUcontext context = nullptr;
  REQUIRE(create_context(&context, 0));
  return context;
}

[[gnu::noinline]] CUcontext begin(bool is_primary) {
  CUcontext context = nullptr;
  if (is_primary)
    REQUIRE(cuDevicePrimaryCtxRetain(&context, 0));
  else
    REQUIRE(create_context(&context, 0));
  return context;
}

void end(CUcontext context, bool is_primary) {
  if (is_primary)
    REQUIRE(cuDevicePrimaryCtxReset(0));
  else
    REQUIRE(cuCtxDestroy(context));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool is_primary = argv[1] == std::string("reset");
  REQUIRE(cuInit(0));
  const CUcontext own = stay();
  const long long before = used_bytes();
  std::thread maker(make_objects);
  for (int round = 0; round < std::atoi(argv[2]); ++round) {
    const CUcontext context = begin(is_primary);
    const int wanted = made + objects_of_a_round;
    shared = context;
    cuwarden::wait_until("the objects of the round", [&] { return made >= wanted; });
    end(context, is_primary);
    shared = nullptr;
    REQUIRE(cuCtxSetCurrent(own));
  }
  done = true;
  maker.join();
  const CUcontext last = begin(is_primary);
  REQUIRE(cuCtxSetCurrent(last));
  make_last_objects();
  end(last, is_primary);
  REQUIRE(cuCtxSetCurrent(own));
  std::printf("{\"before\":%lld,\"left\":%lld}\n", before, used_bytes());
}

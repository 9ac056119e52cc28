// contexts_and_kernels WHAT [COUNT]: makes contexts, or launches kernels for which the driver takes
// device memory in a context, and reads the device around that. Its last line says what it found.
//
//   Contexts beside a first one, COUNT of them:
//     kept       they stay;
//     destroyed  all of them are destroyed;
//     half       every other one is destroyed;
//     first_ended  the first one is destroyed, the others stay;
//     slowly     a pause follows each, so that their number grows over the time of the run;
//     early      a long pause follows all of them.
//   Kernels in the primary context, with local memory that grows, a heap and a larger stack:
//     kernels    their memory stays;
//     lowered    the stack is made smaller again;
//     reset      the device is reset, and one kernel is launched again;
//     ended      they run in a context of their own, which is destroyed.
//   forks        one child makes contexts and launches kernels before its parent calls CUDA, and
//                another one tries to afterwards.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/end_to_end/programs/create_context.hpp"
#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/let_time_pass.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/end_to_end/programs/states/kernels.hpp"

namespace {

using cuwarden::test::create_context;
using cuwarden::test::by_driver::used_bytes;

constexpr std::size_t mib = 1 << 20;

const std::string code = code_with(R"(
.visible .entry _Z7shallowPii(.param .u64 field, .param .u32 at)
{
  .local .align 16 .b8 work[2048];
  ret;
}
.visible .entry _Z4deepPii(.param .u64 field, .param .u32 at)
{
  .local .align 16 .b8 work[8192];
  ret;
}
)");

std::string facts;
void fact(const char* name, long long value) {
  facts += (facts.empty() ? "{\"" : ",\"") + std::string(name) + "\":" + std::to_string(value);
}

// Calls the step, and makes the bytes that it took the fact `name`.
template <class Call>
void step(const char* name, const Call& call) {
  const long long before = used_bytes();
  call();
  fact(name, used_bytes() - before);
}

CUdevice device() {
  CUdevice found = 0;
  REQUIRE(cuDeviceGet(&found, 0));
  return found;
}

[[gnu::noinline]] CUcontext first_context() {
  CUcontext context = nullptr;
  REQUIRE(create_context(&context, device()));
  return context;
}

[[gnu::noinline]] void make_context(std::vector<CUcontext>& made) {
  made.push_back(nullptr);
  REQUIRE(create_context(&made.back(), device()));
}

[[gnu::noinline]] CUcontext retain_context() {
  CUcontext context = nullptr;
  REQUIRE(cuDevicePrimaryCtxRetain(&context, device()));
  REQUIRE(cuCtxSetCurrent(context));
  return context;
}

void run(CUmodule module, const char* name) {
  CUfunction kernel = nullptr;
  REQUIRE(cuModuleGetFunction(&kernel, module, name));
  unsigned long long field = 0;
  unsigned at = 0;
  void* arguments[] = {&field, &at};
  REQUIRE(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  REQUIRE(cuCtxSynchronize());
}

[[gnu::noinline]] void launch_shallow(CUmodule module) { run(module, "_Z7shallowPii"); }
[[gnu::noinline]] void launch_deep(CUmodule module) { run(module, "_Z4deepPii"); }
[[gnu::noinline]] void launch_list(CUmodule module) { run(module, "_Z4listv"); }
[[gnu::noinline]] void set_stack(std::size_t bytes) {
  REQUIRE(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, bytes));
}

CUmodule load() {
  CUmodule module = nullptr;
  REQUIRE(cuModuleLoadData(&module, code.c_str()));
  run(module, "_Z5shortv");
  return module;
}

void run_kernels() {
  CUmodule module = nullptr;
  step("code", [&] { module = load(); });
  step("shallow", [&] {
    for (int i = 0; i < 3; ++i) launch_shallow(module);
  });
  step("deep", [&] {
    for (int i = 0; i < 3; ++i) launch_deep(module);
  });
  REQUIRE(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 128 * mib));
  step("heap", [&] { launch_list(module); });
  step("stack", [] { set_stack(16384); });
}

void with_kernels(const std::string& what) {
  if (what == "ended") {
    const CUcontext first = first_context();
    fact("first", used_bytes());
    std::vector<CUcontext> made;
    make_context(made);
    run_kernels();
    REQUIRE(cuCtxDestroy(made.back()));
    REQUIRE(cuCtxSetCurrent(first));
    fact("left", used_bytes());
    return;
  }
  retain_context();
  fact("first", used_bytes());
  run_kernels();
  if (what == "lowered") step("lowered", [] { set_stack(4096); });
  if (what != "reset") return;
  REQUIRE(cuDevicePrimaryCtxReset(device()));
  retain_context();
  fact("second", used_bytes());
  const CUmodule module = load();
  step("again", [&] { launch_shallow(module); });
}

void with_contexts(const std::string& what, int count) {
  const CUcontext first = first_context();
  fact("first", used_bytes());
  std::vector<CUcontext> made;
  step("taken", [&] {
    for (int i = 0; i < count; ++i) {
      make_context(made);
      if (what == "slowly") let_time_pass(40);
    }
  });
  if (what == "early") let_time_pass(3000);
  int live = count;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (what != "destroyed" && (what != "half" || i % 2 == 0)) continue;
    REQUIRE(cuCtxDestroy(made[i]));
    --live;
  }
  if (what == "first_ended") {
    REQUIRE(cuCtxDestroy(first));
    REQUIRE(cuCtxSetCurrent(made.back()));
  } else {
    REQUIRE(cuCtxSetCurrent(first));
  }
  fact("left", used_bytes());
  fact("live", live);
}

void with_forks(int count) {
  const pid_t before = fork();
  if (before == 0) {
    REQUIRE(cuInit(0));
    with_contexts("kept", count);
    run_kernels();
    std::exit(0);
  }
  int status = 0;
  waitpid(before, &status, 0);
  REQUIRE(cuInit(0));
  with_contexts("kept", 1);
  const CUdevice on = device();
  const pid_t after = fork();
  if (after == 0) {
    CUcontext context = nullptr;
    create_context(&context, on);
    std::exit(0);
  }
  int other_status = 0;
  waitpid(after, &other_status, 0);
  fact("status", status + other_status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string what = argv[1];
  const int count = argc > 2 ? std::atoi(argv[2]) : 1;
  if (what == "forks") {
    with_forks(count);
  } else {
    REQUIRE(cuInit(0));
    if (what == "kernels" || what == "lowered" || what == "reset" || what == "ended")
      with_kernels(what);
    else
      with_contexts(what, count);
  }
  std::printf("%s}\n", facts.c_str());
}

// implicit_takers WHAT: makes calls that take device memory without being asked for it, and reads
// the device itself around each. Its last line says what it found.
//
//   all       takes memory by two contexts, code, local memory, the heap, streams;
//   captured  does so after a stream capture, except for the first context;
//   in_graph  does so with the kernel that takes local memory in a captured graph;
//   ended     does so, then ends both contexts and makes another one.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/end_to_end/programs/create_context.hpp"
#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/end_to_end/programs/states/kernels.hpp"

namespace {

using cuwarden::test::by_driver::used_bytes;

constexpr std::size_t mib = 1 << 20;
constexpr std::size_t streams = 64, ended_streams = 16;

const std::string code = code_with(R"(
.visible .entry _Z4deepPii(.param .u64 field, .param .u32 at)
{
  .local .align 16 .b8 work[4096];
  ret;
}
)");

CUcontext make_context() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  REQUIRE(cuDeviceGet(&device, 0));
  REQUIRE(cuwarden::test::create_context(&context, device));
  return context;
}

template <class Work>
CUgraph capture(Work work) {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  work(stream);
  REQUIRE(cuStreamEndCapture(stream, &graph));
  REQUIRE(cuStreamDestroy(stream));
  return graph;
}

CUfunction kernel(CUmodule module, const char* name) {
  CUfunction found = nullptr;
  REQUIRE(cuModuleGetFunction(&found, module, name));
  return found;
}

void launch(CUfunction function, CUstream stream = nullptr) {
  unsigned long long field = 0;
  unsigned at = 0;
  void* arguments[] = {&field, &at};
  REQUIRE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  if (stream == nullptr) REQUIRE(cuCtxSynchronize());
}

void launch_in_graph(CUfunction function) {
  const CUgraph graph = capture([&](CUstream stream) {
    for (int i = 0; i < 3; ++i) launch(function, stream);
  });
  CUgraphExec exec = nullptr;
  REQUIRE(cuGraphInstantiate(&exec, graph, 0));
  REQUIRE(cuGraphLaunch(exec, nullptr));
  REQUIRE(cuCtxSynchronize());
}

std::string facts;
void fact(const char* name, long long value) {
  facts += (facts.empty() ? "{\"" : ",\"") + std::string(name) + "\":" + std::to_string(value);
}

class Step {
 public:
  explicit Step(const char* name) : name_(name), before_(used_bytes()) {}
  ~Step() { fact(name_, used_bytes() - before_); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  const char* name_;
  long long before_;
};

void load_code(CUmodule& module) {
  const Step step("modules");
  REQUIRE(cuModuleLoadData(&module, code.c_str()));
  launch(kernel(module, "_Z5shortv"));
}

void take_everything(bool in_graph) {
  CUmodule module = nullptr;
  load_code(module);
  {
    const Step step("local_memory");
    if (in_graph) launch_in_graph(kernel(module, "_Z4deepPii"));
    for (int i = 0; i < 3; ++i) launch(kernel(module, "_Z4deepPii"));
    REQUIRE(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 6144));
  }
  {
    const Step step("heap");
    REQUIRE(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 128 * mib));
    launch(kernel(module, "_Z4listv"));
  }
  const Step step("streams");
  std::vector<CUstream> made(streams);
  for (CUstream& stream : made) REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (std::size_t i = 0; i < ended_streams; ++i) REQUIRE(cuStreamDestroy(made[i]));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string what = argv[1];
  REQUIRE(cuInit(0));
  CUcontext first = make_context();
  fact("first_context", used_bytes());
  if (what == "captured") REQUIRE(cuGraphDestroy(capture([](CUstream) {})));
  CUcontext second = nullptr;
  {
    const Step step("second_context");
    second = make_context();
  }
  take_everything(what == "in_graph");
  if (what == "second_ended") {
    REQUIRE(cuCtxDestroy(second));
    REQUIRE(cuCtxSetCurrent(first));
    fact("afterwards", used_bytes());
  }
  if (what == "ended") {
    REQUIRE(cuCtxDestroy(second));
    REQUIRE(cuCtxDestroy(first));
    make_context();
    fact("context_afterwards", used_bytes());
  }
  std::printf("%s}\n", facts.c_str());
}

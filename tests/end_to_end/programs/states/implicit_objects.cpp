// implicit_objects KIND COUNT [END [KERNELS]]: makes COUNT objects of a kind for which the driver
// takes device memory by itself, and reads the device around that. Its last line says what it
// found.
//
//   KIND: graphs, streams, modules
//   END:  kept (the default), destroyed, or half: every other object is destroyed. With `slowly`, a
//         pause follows each object, so that the number of objects grows over the time of the run;
//         with `early`, a long pause follows all of them. With `paused`, it says "made" after
//         them and waits for the end of its input. With `forking`, a second thread forks
//         processes that end at once, all the time in which the objects are made.
//   KERNELS: number of kernels in each graph, 200 by default
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/let_time_pass.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/end_to_end/programs/states/kernels.hpp"

namespace {

using cuwarden::test::by_driver::used_bytes;

CUmodule module_of_code() {
  CUmodule module = nullptr;
  REQUIRE(cuModuleLoadData(&module, code_with_table.c_str()));
  return module;
}

CUfunction kernel_of(CUmodule module) {
  CUfunction found = nullptr;
  REQUIRE(cuModuleGetFunction(&found, module, "_Z5shortv"));
  return found;
}

CUgraph graph_of(CUfunction kernel, int kernels) {
  CUgraph graph = nullptr;
  REQUIRE(cuGraphCreate(&graph, 0));
  CUDA_KERNEL_NODE_PARAMS node{};
  node.func = kernel;
  node.gridDimX = node.gridDimY = node.gridDimZ = 1;
  node.blockDimX = node.blockDimY = node.blockDimZ = 1;
  for (int i = 0; i < kernels; ++i) {
    CUgraphNode added = nullptr;
    REQUIRE(cuGraphAddKernelNode(&added, graph, nullptr, 0, &node));
  }
  return graph;
}

// An object of one of the three kinds, and how it is made and destroyed.
class Objects {
 public:
  Objects(const std::string& kind, int kernels_of_a_graph) : kind_(kind) {
    if (kind_ == "modules") return;
    const CUfunction kernel = kernel_of(module_of_code());
    REQUIRE(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    if (kind_ == "graphs") graph_ = graph_of(kernel, kernels_of_a_graph);
  }
  [[gnu::noinline]] void* make() const {
    if (kind_ == "graphs") {
      CUgraphExec exec = nullptr;
      REQUIRE(cuGraphInstantiate(&exec, graph_, 0));
      REQUIRE(cuGraphLaunch(exec, nullptr));
      return exec;
    }
    if (kind_ == "streams") {
      CUstream stream = nullptr;
      REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      return stream;
    }
    const CUmodule module = module_of_code();
    REQUIRE(cuLaunchKernel(kernel_of(module), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    return module;
  }
  void destroy(void* object) const {
    if (kind_ == "graphs")
      REQUIRE(cuGraphExecDestroy(static_cast<CUgraphExec>(object)));
    else if (kind_ == "streams")
      REQUIRE(cuStreamDestroy(static_cast<CUstream>(object)));
    else
      REQUIRE(cuModuleUnload(static_cast<CUmodule>(object)));
  }

 private:
  std::string kind_;
  CUgraph graph_ = nullptr;
};

// Forks processes that end at once, from the construction to the destruction.
class Forks {
 public:
  Forks()
      : thread_([this] {
          while (!done_) {
            const pid_t child = fork();
            if (child == 0) _exit(0);
            if (child > 0) waitpid(child, nullptr, 0);
          }
        }) {}
  ~Forks() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string end = argc > 3 ? argv[3] : "kept";
  const int count = std::atoi(argv[2]);
  const int kernels_of_a_graph = argc > 4 ? std::atoi(argv[4]) : 200;
  CUdevice device = 0;
  CUcontext context = nullptr;
  REQUIRE(cuInit(0));
  REQUIRE(cuDeviceGet(&device, 0));
  REQUIRE(cuDevicePrimaryCtxRetain(&context, device));
  REQUIRE(cuCtxSetCurrent(context));
  const Objects objects(argv[1], kernels_of_a_graph);
  const long long before = used_bytes();
  std::vector<void*> made;
  std::optional<Forks> forks;
  if (end == "forking") forks.emplace();
  for (int i = 0; i < count; ++i) {
    made.push_back(objects.make());
    if (end == "slowly") let_time_pass(20);
  }
  forks.reset();
  if (end == "early") let_time_pass(3000);
  if (end == "paused") {
    std::puts("made");
    std::fflush(stdout);
    while (std::getchar() != EOF) continue;
  }
  REQUIRE(cuCtxSynchronize());
  const long long taken = used_bytes() - before;
  int live = count;
  for (int i = 0; i < count; ++i) {
    if (end != "destroyed" && (end != "half" || i % 2 == 0)) continue;
    objects.destroy(made[static_cast<std::size_t>(i)]);
    --live;
  }
  std::printf("{\"taken\":%lld,\"left\":%lld,\"live\":%d}\n", taken, used_bytes() - before, live);
}

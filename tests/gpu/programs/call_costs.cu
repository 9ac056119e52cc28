// Measures what a hook adds to a kernel launch, to the launch of a CUDA graph and to a copy, in
// nanoseconds on the processor. The function that the program looks up, which is the hook if the
// program runs under cuwarden, and the driver's own function work in turn: 200 calls each, which
// fit into the stream's queue. So both meet the same process, memory and driver. Two processes
// differ by more than a hook takes.
//
//     call_costs launch|graph|copy TURNS
//
// Prints {"driver_ns":N,"added_ns":N}: medians, over all turns, of a call of the driver's function,
// and of the difference between two neighbouring turns.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/end_to_end/programs/require.hpp"

namespace {

__global__ void nothing() {}

// Returns the address of a function in the driver's table of symbols; null if it has none of this
// name. dlsym() would return the hook. The library's table of names begins right behind the table
// of symbols, as linkers put them.
void* driver_function(void* library, const std::string& name) {
  link_map* map = nullptr;
  REQUIRE(dlinfo(library, RTLD_DI_LINKMAP, &map) == 0);
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  }
  for (; reinterpret_cast<const char*>(symbols) < names; ++symbols)
    if (symbols->st_value != 0 && name == names + symbols->st_name)
      return reinterpret_cast<void*>(map->l_addr + symbols->st_value);
  return nullptr;
}

double median_of(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Measures `turns` turns of each of two functions, the driver's own one first.
template <class Function, class Call>
void measure(const char* name, int turns, cudaStream_t stream, const Call& call) {
  constexpr int calls = 200;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE(library != nullptr);
  Function* const own = reinterpret_cast<Function*>(driver_function(library, name));
  Function* const found = reinterpret_cast<Function*>(dlsym(library, name));
  REQUIRE(own != nullptr && found != nullptr);
  const auto turn = [&](Function* function) {
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) REQUIRE(call(function) == CUDA_SUCCESS);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    REQUIRE(cudaStreamSynchronize(stream));
    return took.count() / calls;
  };
  // Early calls load code, and the driver makes its queues.
  for (int i = 0; i < 20; ++i) turn(i % 2 == 0 ? own : found);
  std::vector<double> alone, added;
  for (int i = 0; i < turns; ++i) {
    // Each of the two comes first in half of the turns.
    const bool is_own_first = i % 2 == 0;
    const double first = turn(is_own_first ? own : found);
    const double second = turn(is_own_first ? found : own);
    alone.push_back(is_own_first ? first : second);
    added.push_back(is_own_first ? second - first : first - second);
  }
  std::printf("{\"driver_ns\":%.2f,\"added_ns\":%.2f}\n", median_of(alone), median_of(added));
}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "launch";
  const int turns = argc > 2 ? std::atoi(argv[2]) : 1000;
  cudaStream_t stream;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  void* buffer = nullptr;
  REQUIRE(cudaMalloc(&buffer, 1 << 20));
  if (std::strcmp(what, "launch") == 0) {
    cudaFunction_t kernel = nullptr;
    REQUIRE(cudaGetFuncBySymbol(&kernel, reinterpret_cast<const void*>(nothing)));
    measure<decltype(cuLaunchKernel)>("cuLaunchKernel", turns, stream, [&](auto* launch) {
      return launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
    });
  } else if (std::strcmp(what, "graph") == 0) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 8; ++i) nothing<<<1, 1, 0, stream>>>();
    REQUIRE(cudaStreamEndCapture(stream, &graph));
    REQUIRE(cudaGraphInstantiate(&executable, graph, 0));
    measure<decltype(cuGraphLaunch)>("cuGraphLaunch", turns, stream,
                                     [&](auto* launch) { return launch(executable, stream); });
  } else {
    const auto from = reinterpret_cast<CUdeviceptr>(buffer);
    measure<decltype(cuMemcpyAsync)>("cuMemcpyAsync", turns, stream, [&](auto* copy) {
      return copy(from + (512 << 10), from, 4096, stream);
    });
  }
}

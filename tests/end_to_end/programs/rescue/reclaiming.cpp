// A cache of the program's own holds most of the device, and has a reclaimer that empties it; then
// the program asks for more than is left:
//
//     reclaiming HOW [name=value]...
//
// HOW is what the reclaimer does: empties, empties_host, tarries (1.2 s, then empties), nothing,
// throws, exits, hangs (lets 100 ms pass before), asks (CUDA, for more than there is), unregisters
// (itself), none (there is no reclaimer), bad (they are not accepted). Options: modules=LIST,
// thread=1 (another thread asks), capture=open, ended or destroyed (a stream capture was begun
// before, and how that is now), jit=1 (through generated code), beside=1 (a second reclaimer),
// times=N requests. The last line is what the program itself knows, as JSON.
#include <cuda_runtime_api.h>
#include <cuwarden.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/let_time_pass.hpp"

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::map<std::string, std::string> options;
std::string how;
std::mutex mutex;
std::vector<void*> cache;
std::atomic<int> calls{0}, seen_device{-2}, beside{0};
std::atomic<std::size_t> seen_bytes{0}, given_back{0};
std::atomic<bool> signals_are_held{true}, asked_in_vain{false};
int number = 0;

bool is_on(const char* name) { return options.count(name) != 0; }

std::size_t empty() {
  const std::lock_guard lock(mutex);
  std::size_t bytes = 0;
  for (void* block : cache) {
    const cudaError_t result = how == "empties_host" ? cudaFreeHost(block) : cudaFree(block);
    bytes += result == cudaSuccess ? 64 * kMiB : 0;
  }
  cache.clear();
  given_back += bytes;
  return bytes;
}

extern "C" std::size_t reclaim(int device, std::size_t bytes, void* argument) {
  ++calls;
  seen_device = device;
  seen_bytes = bytes;
  sigset_t held;
  pthread_sigmask(SIG_SETMASK, nullptr, &held);
  signals_are_held = sigismember(&held, SIGTERM) == 1 && sigismember(&held, SIGSEGV) == 0;
  if (argument != &cache) std::abort();
  if (how == "nothing") return 0;
  if (how == "throws") throw std::runtime_error("the cache is in a bad state");
  if (how == "exits") pthread_exit(nullptr);
  if (how == "hangs") {
    let_time_pass(100);
    sleep(1000);
  }
  if (how == "tarries") let_time_pass(1200);
  if (how == "unregisters") {
    empty();
    return cuwarden_unregister_reclaimer(number) == 0 ? 1 : 0;
  }
  if (how == "asks") {
    void* more = nullptr;
    asked_in_vain = cudaMalloc(&more, bytes) == cudaErrorMemoryAllocation;
  }
  return empty();
}

extern "C" std::size_t reclaim_beside(int, std::size_t, void*) {
  ++beside;
  return 0;
}

[[gnu::noinline]] bool ask(std::size_t bytes) {
  void* memory = nullptr;
  return (how == "empties_host" ? cudaMallocHost(&memory, bytes) : cudaMalloc(&memory, bytes)) ==
         cudaSuccess;
}

// Asks through code like a JIT compiler's: no unwinder goes beyond this frame.
bool ask_through_generated_code(std::size_t bytes) {
  // push %rbp; mov %rsp,%rbp; call *%rsi; pop %rbp; ret
  constexpr unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) std::abort();
  std::memcpy(page, code, sizeof code);
  mprotect(page, 4096, PROT_READ | PROT_EXEC);
  return reinterpret_cast<bool (*)(std::size_t, bool (*)(std::size_t))>(page)(bytes, ask);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) how = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  if (how == "bad") {
    const std::string long_name(64, 'n'), long_list(250, 'm');
    number += cuwarden_register_reclaimer(long_name.c_str(), nullptr, reclaim, &cache);
    number +=
        cuwarden_register_reclaimer("long", (long_list + "," + long_list).c_str(), reclaim, &cache);
    number += cuwarden_register_reclaimer(nullptr, nullptr, reclaim, &cache);
    number += cuwarden_register_reclaimer("null", nullptr, nullptr, &cache);
    for (int i = 0; i < 17; ++i)
      if (cuwarden_register_reclaimer("many", nullptr, reclaim_beside, nullptr) == 0) --number;
  } else if (how != "none") {
    // Registers before the first CUDA call, as a library does when it is loaded.
    if (is_on("beside")) cuwarden_register_reclaimer("beside", nullptr, reclaim_beside, nullptr);
    const char* modules = is_on("modules") ? options["modules"].c_str() : nullptr;
    number = cuwarden_register_reclaimer("own cache", modules, reclaim, &cache);
  }
  const std::size_t free = cuwarden::test::free_bytes();
  if (how == "empties_host") {
    void* block = nullptr;
    while (cache.size() < 12 && cudaMallocHost(&block, 64 * kMiB) == cudaSuccess)
      cache.push_back(block);
  } else {
    for (std::size_t kept = 0; kept < free / 10 * 8; kept += 64 * kMiB) {
      void* block = nullptr;
      if (cudaMalloc(&block, 64 * kMiB) != cudaSuccess) break;
      cache.push_back(block);
    }
  }
  const std::size_t held = cache.size();
  // In this thread alone: another one may allocate meanwhile.
  if (is_on("capture")) {
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cudaGraph_t graph = nullptr;
    if (options["capture"] == "ended") cudaStreamEndCapture(stream, &graph);
    if (options["capture"] == "destroyed") cudaStreamDestroy(stream);
    options["thread"] = "1";
  }
  int served = 0, failures = 0;
  const std::size_t bytes = how == "empties_host" ? 512 * kMiB : free / 2;
  const auto ask_all = [&] {
    for (int i = 0; i < (is_on("times") ? std::atoi(options["times"].c_str()) : 1); ++i)
      ++((is_on("jit") ? ask_through_generated_code(bytes) : ask(bytes)) ? served : failures);
  };
  if (is_on("thread"))
    std::thread(ask_all).join();
  else
    ask_all();
  if (how == "unregisters" && cuwarden_unregister_reclaimer(number) != -1) return 2;
  std::printf(
      "{\"served\":%d,\"failures\":%d,\"calls\":%d,\"beside\":%d,\"device\":%d,\"asked_for\":%zu,"
      "\"requested_bytes\":%zu,\"given_back\":%zu,\"held\":%zu,\"registered\":%d,"
      "\"signals_are_held\":%s,\"asked_in_vain\":%s}\n",
      served, failures, calls.load(), beside.load(), seen_device.load(), seen_bytes.load(), bytes,
      given_back.load(), held * 64 * kMiB, number, signals_are_held ? "true" : "false",
      asked_in_vain ? "true" : "false");
  std::fflush(stdout);
  // A call that hangs does not keep the process from its end.
  return 0;
}

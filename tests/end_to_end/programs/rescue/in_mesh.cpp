// in_mesh HOW FUNCTION N [WAY]: acts of threads and signals in the middle of a mesh, in which
// cuwarden moves blocks of several pages onto one. The asking thread requests a block that only a
// mesh makes room for. The simulated GPU stops that thread at the N-th call of the driver's
// FUNCTION that it makes while all submissions are held (CUWARDEN_SIM_FAIL=FUNCTION:*:tell). The
// main thread then acts, as HOW says:
//
//     fork: It forks, and waits for the child's end. The child calls _exit, or uses CUDA and calls
//         exit, or becomes the program WAY.
//     exec: It becomes the program WAY.
//     cancel: It cancels the asking thread. WAY is that thread's cancellation type: deferred or
//         asynchronous.
//     cancel_at_gate: It cancels the waiting thread, of such a type, which waits to submit work.
//     end: It gets a signal, whose handler ends the process by exit or _exit.
//     end_at_gate: It sends the signal to the waiting thread.
//     end_after: It sends the signal to the asking thread, which blocks it while it moves memory.
//     end_inside: The asking thread itself raises SIGSEGV, which has the same handler.
//     end_without_driver: It calls exit. The asking thread goes on after the driver's exit handler.
//     kill: It kills the process.
//
// Before the request, a line says how many allocations are live. The last line, as JSON, says how
// the request, the threads and the child ended, and how many bytes of the blocks are wrong.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/comes_about.hpp"
#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/thread_state.hpp"

namespace {

constexpr int status = 7;               // exit status of the process, and of a child that ends well
constexpr unsigned char filled = 0xee;  // value that the waiting thread writes

// A block of device memory that is filled with one value.
struct Block {
  void* memory = nullptr;
  std::size_t bytes = 0;
  unsigned char value = 0;
};

std::string how, function_to_stop_at, way;
int call_to_stop_at = 0;
std::vector<Block> blocks;  // the blocks that stay, and that the mesh moves
std::size_t asked_bytes = 0;
void* asked_for = nullptr;
std::atomic<const char*> answer{"none"};  // name of the request's result

// Posted when the asking thread stops, when its request returns, and when the waiting thread is
// ready to submit.
sem_t has_stopped;
sem_t may_go_on, may_submit;  // the asking and the waiting thread wait for these
std::atomic<bool> has_answer{false};
thread_local bool asks = false;  // true in the asking thread while its request is under way
int calls = 0;                   // number of the asking thread's calls of the function
std::atomic<pid_t> waiting_thread{0};
pthread_t asking{}, waiting{};

void wait_for(sem_t& event) {
  while (sem_wait(&event) != 0) {
  }
}

// Returns the number of bytes of the block that do not have its value.
std::size_t wrong_bytes(const Block& block) {
  std::vector<unsigned char> host(block.bytes);
  REQUIRE(cudaMemcpy(host.data(), block.memory, block.bytes, cudaMemcpyDeviceToHost));
  return block.bytes - static_cast<std::size_t>(std::count(host.begin(), host.end(), block.value));
}

// Fills the device with blocks, and frees nine of ten bytes, so that nearly all pages keep a block.
void scatter_blocks() {
  constexpr std::size_t mib = std::size_t{1} << 20, room = 64 * mib, spare = 16 * mib;
  void* held = nullptr;
  REQUIRE(cudaMalloc(&held, (cuwarden::test::free_bytes() - room - spare) / (2 * mib) * 2 * mib));
  std::mt19937_64 random(7);
  std::size_t sum = 0, freed = 0;
  while (sum < room) {
    Block block{.bytes = std::size_t{4096} << random() % 6,
                .value = static_cast<unsigned char>(random())};
    REQUIRE(cudaMalloc(&block.memory, block.bytes));
    REQUIRE(cudaMemset(block.memory, block.value, block.bytes));
    sum += block.bytes;
    blocks.push_back(block);
  }
  std::shuffle(blocks.begin(), blocks.end(), random);
  while (freed < sum / 10 * 9) {
    REQUIRE(cudaFree(blocks.back().memory));
    freed += blocks.back().bytes;
    blocks.pop_back();
  }
  asked_bytes = spare + freed / 10 * 6;
  std::printf("live: %zu\n", blocks.size() + 1);
  std::fflush(stdout);
}

void take_cancellation_type() {
  int before = 0;
  if (way == "asynchronous") pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
}

void* ask(void*) {
  REQUIRE(cudaSetDevice(0));
  if (how == "cancel") take_cancellation_type();
  asks = true;
  answer = cudaGetErrorName(cudaMalloc(&asked_for, asked_bytes));
  asks = false;
  has_answer = true;
  sem_post(&has_stopped);
  pthread_testcancel();
  return nullptr;
}

// Submits a fill by the driver's own function: no frame of the runtime is to be unwound.
void* submit(void*) {
  REQUIRE(cudaSetDevice(0));
  REQUIRE(cuMemsetD8(reinterpret_cast<CUdeviceptr>(blocks[0].memory), blocks[0].value, 1));
  sem_post(&has_stopped);
  wait_for(may_submit);
  if (how == "cancel_at_gate") take_cancellation_type();
  waiting_thread = gettid();
  cuMemsetD8(reinterpret_cast<CUdeviceptr>(blocks[0].memory), filled, blocks[0].bytes);
  blocks[0].value = filled;
  pthread_testcancel();
  return nullptr;
}

void let_thread_submit() {
  sem_post(&may_submit);
  cuwarden::wait_until("a thread waits to submit work",
                       [] { return cuwarden::thread_state(waiting_thread) == 'S'; });
}

// --- acts in the middle of the mesh

void end(int) {
  if (way == "_exit") _exit(status);
  std::exit(status);
}

[[noreturn]] void be_child() {
  alarm(60);  // ends a child that waits for ever
  if (way == "_exit") _exit(status);
  if (way == "exit") {
    void* memory = nullptr;
    const bool are_refused = cudaMalloc(&memory, 4096) == cudaErrorInitializationError &&
                             cudaMemset(blocks[0].memory, 1, 1) == cudaErrorInitializationError &&
                             cudaFree(blocks[0].memory) == cudaErrorInitializationError;
    std::exit(are_refused ? status : 1);
  }
  execl(way.c_str(), way.c_str(), "3", "512", nullptr);
  _exit(1);
}

int forks() {
  const pid_t child = fork();
  if (child == 0) be_child();
  int ended = 0;
  REQUIRE(waitpid(child, &ended, 0) == child);
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : -WTERMSIG(ended);
}

// Lets happen what is wanted while the asking thread is stopped. Returns the status of a child.
int act() {
  if (how == "fork") return forks();
  if (how == "exec") execl(way.c_str(), way.c_str(), "3", "512", nullptr);
  if (how == "cancel") REQUIRE(pthread_cancel(asking) == 0);
  if (how == "end") raise(SIGUSR1);
  if (how == "end_without_driver") std::exit(status);
  if (how == "kill") raise(SIGKILL);
  if (how.ends_with("at_gate")) let_thread_submit();
  if (how == "cancel_at_gate") REQUIRE(pthread_cancel(waiting) == 0);
  if (how == "end_at_gate") pthread_kill(waiting, SIGUSR1);
  if (how == "end_after") {
    pthread_kill(asking, SIGUSR1);
    sem_post(&may_go_on);
  }
  if (how.starts_with("end")) wait_for(has_stopped);  // the process ends meanwhile
  return 0;
}

// Waits for the thread's end. Returns true if it was cancelled.
bool was_cancelled(pthread_t thread) {
  void* result = nullptr;
  REQUIRE(pthread_join(thread, &result) == 0);
  return result == PTHREAD_CANCELED;
}

// Registered before the driver's exit handler, so that it runs after that.
void go_on_without_driver() {
  if (how != "end_without_driver") return;
  sem_post(&may_go_on);
  pthread_join(asking, nullptr);
}

}  // namespace

// The thread that moves memory blocks signals, and only while it does.
extern "C" void simulated_gpu_tells(const char* function) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  if (!asks || sigismember(&blocked, SIGUSR1) == 0 || function_to_stop_at != function ||
      ++calls != call_to_stop_at)
    return;
  if (how == "end_inside") raise(SIGSEGV);
  sem_post(&has_stopped);
  wait_for(may_go_on);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  how = argv[1], function_to_stop_at = argv[2], call_to_stop_at = std::atoi(argv[3]);
  if (argc > 4) way = argv[4];
  REQUIRE(std::atexit(go_on_without_driver) == 0);
  REQUIRE(std::signal(SIGUSR1, end) != SIG_ERR && std::signal(SIGSEGV, end) != SIG_ERR);
  REQUIRE(sem_init(&has_stopped, 0, 0) == 0 && sem_init(&may_go_on, 0, 0) == 0 &&
          sem_init(&may_submit, 0, 0) == 0);
  scatter_blocks();
  if (how.ends_with("at_gate")) {
    REQUIRE(pthread_create(&waiting, nullptr, submit, nullptr) == 0);
    wait_for(has_stopped);
  }
  REQUIRE(pthread_create(&asking, nullptr, ask, nullptr) == 0);
  wait_for(has_stopped);
  REQUIRE(!has_answer.load());
  const int child = act();
  // A thread of asynchronous type ends while memory is still being moved.
  bool are_cancelled[] = {false, false};
  if (how == "cancel_at_gate" && way == "asynchronous") are_cancelled[1] = was_cancelled(waiting);
  sem_post(&may_go_on);
  are_cancelled[0] = was_cancelled(asking);
  if (how == "cancel_at_gate" && way == "deferred") are_cancelled[1] = was_cancelled(waiting);
  std::size_t wrong = 0;
  for (const Block& block : blocks) wrong += wrong_bytes(block);
  std::printf(
      "{\"request\": \"%s\", \"child\": %d, \"cancelled\": [%s, %s], \"filled\": %s, \"wrong\": "
      "%zu}\n",
      answer.load(), child, are_cancelled[0] ? "true" : "false",
      are_cancelled[1] ? "true" : "false", blocks[0].value == filled ? "true" : "false", wrong);
}

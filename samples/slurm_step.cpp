// The situation: a job step on a node with several GPUs, whose ranks all got the same one. (For
// example, CUDA_VISIBLE_DEVICES was exported before srun.) Each rank takes its part of the field,
// block by block, until the device is full. Rank 0, which also has the input, takes four blocks
// where the others take one. The other GPUs are idle.
//
// Users see an out-of-memory at a size that fits by their own sums, and every rank calls its device
// "device 0", whichever it is. For most ranks the memory is not their own; for rank 0 it is.
//
// The ranks are instances of this program, started with the environment that a scheduler sets. They
// take turns. A rank that was refused keeps its memory until all were. On the simulated GPU they
// have to share the device: CUWARDEN_SIM_SHARED names a file for that.
//
//     slurm_step [ranks]
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "samples/child_process.hpp"
#include "samples/planned_shortage.hpp"

namespace {

constexpr const char* kJob = "4711";
constexpr std::string_view kServed = "served", kRefused = "refused";

// --- a rank

sample::Account account;

[[gnu::noinline]] sample::Request take_block(std::size_t bytes) {
  void* block = nullptr;
  auto request = sample::Request::planned("cudaMalloc", bytes, __func__, __LINE__ + 1);
  request.result = cudaMalloc(&block, bytes);
  if (request.result == cudaSuccess) account.allocated(bytes);
  return request;
}

std::string device_uuid() {
  cudaDeviceProp properties{};
  sample::require(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(properties.uuid.bytes[i]));
    text += (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) ? "-" : "";
    text += byte;
  }
  return text;
}

void answer(std::string_view word) {
  std::printf("%s\n", word.data());
  std::fflush(stdout);
}

// Runs a rank. Each byte of its input is a turn; at the input's end the rank prints its facts and
// ends.
int work(std::size_t rank) {
  sample::require(cudaFree(nullptr), "cudaFree");
  int devices = 0;
  sample::require(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  const std::size_t bytes =
      sample::device_memory().total / 32 / sample::kDevicePage * sample::kDevicePage;
  answer(kServed);

  sample::Request request;
  char turn = 0;
  while (read(STDIN_FILENO, &turn, 1) == 1) {
    int blocks = rank == 0 ? 4 : 1;
    do request = take_block(bytes);
    while (request.result == cudaSuccess && --blocks > 0);
    answer(request.result == cudaSuccess ? kServed : kRefused);
  }
  return sample::conclude(request, account,
                          sample::fact("rank", rank) +
                              sample::fact("devices", static_cast<std::size_t>(devices)) +
                              sample::fact("device_uuid", device_uuid().c_str()));
}

// --- the launcher, which makes no CUDA call, as usual for launchers

struct Step {
  std::size_t ranks;
  std::string visible_devices;
};

class Rank {
 public:
  Rank(const Step& step, std::size_t rank)
      : process_({"slurm_step", "rank", std::to_string(rank)},
                 [&] { set_environment(step, rank); }) {
    lives_ = process_.next_line() == kServed;
  }

  pid_t pid() const { return process_.pid(); }
  bool lives() const { return lives_; }  // If false, the rank has printed the reason on stderr.
  bool refused() const { return refused_; }
  void take_turn() {
    process_.tell('t');
    const std::string said = process_.next_line();
    refused_ = said == kRefused;
    lives_ = refused_ || said == kServed;
  }
  // Ends the rank and stores its facts. Returns true if its exit status says that everything came
  // about as planned.
  bool end(std::string* facts = nullptr) {
    if (!process_.has_input()) return false;
    process_.close_input();
    const std::string said = process_.next_line();
    if (facts != nullptr) *facts = said;
    return process_.wait() == 0;
  }

 private:
  static void set_environment(const Step& step, std::size_t rank) {
    // Variables of the launcher that started this program must go: a rank would prefer them to the
    // scheduler's.
    for (const char* name : {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) unsetenv(name);
    const std::string number = std::to_string(rank);
    const std::pair<const char*, std::string> variables[] = {
        {"SLURM_JOB_ID", kJob},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", number},
        {"SLURM_LOCALID", number},
        {"SLURM_NODEID", "0"},
        {"SLURM_NTASKS", std::to_string(step.ranks)},
        {"CUDA_VISIBLE_DEVICES", step.visible_devices}};
    for (const auto& [name, value] : variables) setenv(name, value.c_str(), 1);
  }

  sample::ChildProcess process_;
  bool lives_ = false, refused_ = false;
};

// Returns the first visible device. The mistake is that all ranks get it.
std::string first_visible_device() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string list = visible == nullptr ? "0" : visible;
  return list.substr(0, list.find(','));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "rank") == 0)
    return work(sample::argument(argc, argv, 2, 0));

  const Step step{sample::argument(argc, argv, 1, 3), first_visible_device()};
  std::vector<std::unique_ptr<Rank>> ranks;
  for (std::size_t rank = 0; rank < step.ranks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(step, rank));
    if (!ranks.back()->lives()) return 1;
  }
  for (bool all_refused = false; !all_refused;) {
    all_refused = true;
    for (const auto& rank : ranks) {
      if (!rank->refused()) rank->take_turn();
      if (!rank->lives()) return 1;
      all_refused = all_refused && rank->refused();
    }
  }

  bool as_planned = true;
  std::string pids, facts;
  for (const auto& rank : ranks) {
    std::string said;
    as_planned = rank->end(&said) && as_planned;
    pids += (pids.empty() ? "" : ",") + std::to_string(rank->pid());
    facts += (facts.empty() ? "" : ",") + said;
  }
  std::printf("%zu ranks of job %s with CUDA_VISIBLE_DEVICES=%s\n", step.ranks, kJob,
              step.visible_devices.c_str());
  std::printf("{\"job_id\":\"%s\"%s,\"pids\":[%s],\"ranks\":[%s]}\n", kJob,
              sample::fact("visible_devices", step.visible_devices.c_str()).c_str(), pids.c_str(),
              facts.c_str());
  return as_planned ? 0 : 1;
}

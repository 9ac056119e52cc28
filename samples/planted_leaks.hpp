// Leaks that a sample makes on purpose. The sample prints their facts as its last line, one JSON
// object. So a report can be checked against facts that do not come from cuwarden.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace sample {

// One group of leaked allocations, with the values that the report should have.
struct PlantedLeak {
  const char* api;       // CUDA function that the sample calls, such as "cudaMalloc".
  const char* kind;      // Kind of the leaked memory, as in reports, such as "device".
  std::size_t count;     // Number of leaked allocations.
  std::size_t bytes;     // Bytes of all leaked allocations of the group together.
  const char* function;  // Name of the function that makes the leak, without parameters.
  int line;              // Line of the call in the source; 0 if the module has no debug info.
  const char* released_by = nullptr;  // "context" if a context's end releases it; otherwise null.
  // File name of the module that makes the leak; null for the program itself.
  const char* module = nullptr;
};

// Prints the leaks as one JSON object. `extra`: further members of the object, each of the form
// `,"name":value`, for facts that only one sample has; may be empty.
inline void print_leaks(const std::vector<PlantedLeak>& leaks, const std::string& extra = "") {
  const auto text = [](const char* value) {
    return value == nullptr ? std::string("null") : '"' + std::string(value) + '"';
  };
  std::string rows;
  for (const PlantedLeak& leak : leaks) {
    if (!rows.empty()) rows += ',';
    rows += "{\"api\":" + text(leak.api) + ",\"kind\":" + text(leak.kind) +
            ",\"count\":" + std::to_string(leak.count) +
            ",\"bytes\":" + std::to_string(leak.bytes) + ",\"function\":" + text(leak.function) +
            ",\"line\":" + (leak.line == 0 ? "null" : std::to_string(leak.line)) +
            ",\"released_by\":" + text(leak.released_by) + ",\"module\":" + text(leak.module) + "}";
  }
  std::printf("{\"leaked\":[%s]%s}\n", rows.c_str(), extra.c_str());
}

// If `result` is an error, ends the program with status 1 and one line on stderr. `call`: name of
// the call that gave the result, such as "cudaMalloc".
inline void require(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s failed: %s\n", call, cudaGetErrorString(result));
  std::exit(1);
}

// Returns the program's argument `n` (argv[n]) as a number; `otherwise` if there are fewer
// arguments. If argv[n] is not a number, ends the program with status 1 and one line on stderr.
inline std::size_t argument(int argc, char** argv, int n, std::size_t otherwise) {
  if (n >= argc) return otherwise;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(argv[n], &end, 10);
  if (end == argv[n] || *end != '\0') {
    std::fprintf(stderr, "%s: argument %d is not a number: %s\n", argv[0], n, argv[n]);
    std::exit(1);
  }
  return static_cast<std::size_t>(value);
}

}  // namespace sample

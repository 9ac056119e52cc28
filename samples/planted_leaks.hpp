// Leaks that a sample makes on purpose, and reports by itself. They are the last line of its
// output, as one JSON object, so that a report can be checked against facts that do not come from
// cuwarden.
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
  const char* api;
  const char* kind;
  std::size_t count;
  std::size_t bytes;     // Bytes of all of them together.
  const char* function;  // Name of the function that makes the leak, without parameters.
  int line;              // The line of the call; 0 if the module has no debug info.
  const char* released_by = nullptr;
  const char* module = nullptr;  // The module's file name; null for the program itself.
};

// Prints the leaks. `extra` is text of the form `,"name":value`, for facts that only one sample
// has.
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

// Ends the program with one line if a call has failed that must succeed, for example without a GPU.
inline void require(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s failed: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

// Returns the n-th argument as a number; `otherwise` if there is none.
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

// Ends a test program if a step fails that must not fail. Device code includes this header, too:
// C++17.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace cuwarden::test {

// Ends the process at once, with status 3 and the line "`what`: `error`" on stderr. Any thread
// may call it: no function runs that the program has registered for its end.
[[noreturn]] inline void end_after(const char* what, const char* error) {
  std::fprintf(stderr, "%s: %s\n", what, error);
  std::fflush(stdout);
  std::_Exit(3);
}

// If `result` is an error of the runtime, ends the process with status 3, and a line on stderr.
// `what`: name of the call in that line.
inline void require(cudaError_t result, const char* what) {
  if (result != cudaSuccess) end_after(what, cudaGetErrorName(result));
}

// If `holds` is false, ends the process with status 3, and a line on stderr. `what`: name of the
// step in that line.
inline void require(bool holds, const char* what) {
  if (!holds) end_after(what, "failed");
}

// If `result` is an error of the driver or of a CUDA library, ends the process with status 3, and a
// line on stderr. `what`: name of the call in that line. `Result`: an enumeration in which 0 is
// success.
template <class Result>
void require(Result result, const char* what) {
  static_assert(std::is_enum_v<Result>, "0 is success only in CUDA's own enumerations");
  if (static_cast<int>(result) == 0) return;
  char error[32];
  std::snprintf(error, sizeof error, "error %d", static_cast<int>(result));
  end_after(what, error);
}

}  // namespace cuwarden::test

#define CUWARDEN_TEXT_OF(words) #words
#define CUWARDEN_LINE_OF(line) "line " CUWARDEN_TEXT_OF(line) ": "
// Makes a call of CUDA or tests a condition. If the call fails or the condition is false, ends the
// process with status 3, and a line on stderr that has the line of the source and its text.
#define REQUIRE(step) ::cuwarden::test::require((step), CUWARDEN_LINE_OF(__LINE__) #step)

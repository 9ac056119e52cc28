// The bug is not in this program, but in a library that it uses (vendor_filter.cpp), which loses
// device memory on each call. The library has no sources and no debug info.
//
// cuwarden reports the library's file, the nearest exported function and the offset in it, the
// count and the bytes. Further out on the stack it shows this program's line that called it.
//
//     library_leak [calls] [bytes a call]
#include <cstdio>
#include <string>

#include "samples/libraries/vendor_filter.hpp"
#include "samples/planted_leaks.hpp"

int main(int argc, char** argv) {
  const std::size_t calls = sample::argument(argc, argv, 1, 25);
  const std::size_t bytes = sample::argument(argc, argv, 2, std::size_t{256} << 10);

  int calling_line = 0;
  bool done = vendor_filter_open() == 0;
  for (std::size_t call = 0; done && call < calls; ++call) {
    calling_line = __LINE__ + 1;
    done = vendor_filter_apply(bytes) == 0;
  }
  done = done && vendor_filter_close() == 0;
  if (!done) {
    std::fprintf(stderr, "the filter failed: is there a CUDA device?\n");
    return 1;
  }
  std::printf("filtered %zu times\n", calls);
  sample::print_leaks(
      {{"cudaMalloc", "device", calls, calls * bytes, "vendor_filter_apply", 0, nullptr,
        "libvendor_filter.so"}},
      R"(,"calling_function":"main","calling_line":)" + std::to_string(calling_line));
}

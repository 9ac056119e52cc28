// checkpoint FILE COUNT: allocates COUNT blocks, then writes 3 MiB to the file.
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* block = nullptr;
  for (int i = 0; i < std::atoi(argv[2]); ++i) cudaMalloc(&block, 16);
  const std::vector<char> data(3 << 20);
  const int file = open(argv[1], O_CREAT | O_WRONLY, 0600);
  const bool written = write(file, data.data(), data.size()) == static_cast<ssize_t>(data.size());
  std::puts(written ? "written" : "not written");
  return written ? 0 : 1;
}

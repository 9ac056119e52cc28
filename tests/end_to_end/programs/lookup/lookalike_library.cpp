// Names that look like CUDA's, or even are, in a library that is not CUDA's. Each returns a number
// of its own, so that a replacement shows.
#define EXPORTED extern "C" [[gnu::visibility("default")]] int

EXPORTED cudnnCreate() { return 101; }
EXPORTED curl_easy_init() { return 102; }
EXPORTED cuMemAlloc_v2() { return 103; }
EXPORTED cudaMalloc() { return 104; }
EXPORTED cuMemAllocator() { return 105; }
EXPORTED dlsymbolic() { return 106; }

// Needs a library that asks for CUDA (asking_helper.cpp), and CUDA's runtime.
extern "C" int finds_cuda();
extern "C" int cudaGetLastError();

extern "C" [[gnu::visibility("default")]] int extension() {
  return finds_cuda() + cudaGetLastError();
}

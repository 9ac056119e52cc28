// Calls CUDA by name, in a library that defines the functions itself (caching_wrapper.cpp).
// ALLOCATE and FREE are the functions that it calls.
#include <cstddef>

using Address = unsigned long long;
extern "C" int ALLOCATE(Address*, std::size_t);
extern "C" int FREE(Address);

#ifdef STARTS_DRIVER
extern "C" int cuInit(unsigned);
extern "C" int cuDevicePrimaryCtxRetain(void**, int);
extern "C" int cuCtxSetCurrent(void*);
extern "C" int start() {
  void* context = nullptr;
  if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0) return 1;
  return cuCtxSetCurrent(context);
}
#else
extern "C" int start() { return 0; }
#endif

extern "C" Address take(std::size_t bytes) {
  Address address = 0;
  return ALLOCATE(&address, bytes) == 0 ? address : 0;
}
// With optimization this call is a jump, so FREE returns to the caller of give().
extern "C" int give(Address address) { return FREE(address); }

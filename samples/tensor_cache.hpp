// The interface of a library that brings a caching allocator of its own, as frameworks do.
#pragma once

#include <cstddef>

extern "C" {
void* tensor_cache_allocate(std::size_t bytes);  // null where the device has no more
void tensor_cache_release(void* tensor);         // into the cache: the device does not get it back
std::size_t tensor_cache_idle_bytes();           // held, and used by nobody
void tensor_cache_empty();                       // what is idle goes back to the device
}

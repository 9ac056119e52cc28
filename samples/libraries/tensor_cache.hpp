// The interface of a library that brings a caching allocator of its own, as frameworks do.
#pragma once

#include <cstddef>

extern "C" {
void* tensor_cache_allocate(std::size_t bytes);  // Null if the device has no more memory.
// Puts the block into the cache: the device does not get it back.
void tensor_cache_release(void* tensor);
// Returns the bytes that the cache holds and no tensor uses.
std::size_t tensor_cache_idle_bytes();
void tensor_cache_empty();  // Gives the idle bytes back to the device.
}

#include "tests/end_to_end/programs/frameworks/caching_allocator.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "tests/end_to_end/programs/frameworks/c10_report.hpp"

namespace c10::cuda {
namespace {

constexpr std::size_t granularity = 512, segment_bytes = std::size_t{20} << 20;

struct Block {
  std::size_t bytes = 0;
  bool is_free = true;
};
using Segment = std::map<char*, Block>;  // by address; neighbours touch each other

std::mutex mutex;
std::map<char*, Segment> segments;
std::size_t reserved = 0, allocated = 0;

void report(void* block, std::int64_t bytes) {
  reportMemoryUsageToProfiler(block, bytes, static_cast<ReportedSize>(allocated),
                              static_cast<ReportedSize>(reserved), {DeviceType::CUDA, 0});
}

bool is_free(const Segment& segment) {
  return segment.size() == 1 && segment.begin()->second.is_free;
}

bool add_segment(std::size_t bytes) {
  const std::size_t size = bytes <= segment_bytes ? segment_bytes : (bytes + 0x1fffff) >> 21 << 21;
  void* address = nullptr;
  if (cudaMalloc(&address, size) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  segments[static_cast<char*>(address)] = {{static_cast<char*>(address), {size, true}}};
  reserved += size;
  return true;
}

void release_free_segments() {
  for (auto segment = segments.begin(); segment != segments.end();) {
    if (!is_free(segment->second)) {
      ++segment;
      continue;
    }
    reserved -= segment->second.begin()->second.bytes;
    cudaFree(segment->first);
    segment = segments.erase(segment);
  }
}

// Takes the first free block that is large enough, and cuts the rest off.
void* take(std::size_t bytes) {
  for (auto& [start, segment] : segments)
    for (auto& [address, block] : segment) {
      if (!block.is_free || block.bytes < bytes) continue;
      if (block.bytes > bytes) segment[address + bytes] = {block.bytes - bytes, true};
      block = {bytes, false};
      allocated += bytes;
      report(address, static_cast<std::int64_t>(bytes));
      return address;
    }
  return nullptr;
}

}  // namespace

void* raw_alloc(std::size_t asked) {
  const std::lock_guard lock(mutex);
  const std::size_t bytes = (asked + granularity - 1) / granularity * granularity;
  if (void* const block = take(bytes)) return block;
  if (!add_segment(bytes)) {
    release_free_segments();
    if (!add_segment(bytes)) return nullptr;
  }
  return take(bytes);
}

void raw_delete(void* given) {
  const std::lock_guard lock(mutex);
  auto* const address = static_cast<char*>(given);
  Segment& segment = std::prev(segments.upper_bound(address))->second;
  const auto block = segment.find(address);
  const std::size_t bytes = block->second.bytes;
  allocated -= bytes;
  block->second.is_free = true;
  if (const auto next = std::next(block); next != segment.end() && next->second.is_free) {
    block->second.bytes += next->second.bytes;
    segment.erase(next);
  }
  if (block != segment.begin())
    if (const auto before = std::prev(block); before->second.is_free) {
      before->second.bytes += block->second.bytes;
      segment.erase(block);
    }
  report(given, -static_cast<std::int64_t>(bytes));
}

void empty_cache() {
  const std::lock_guard lock(mutex);
  release_free_segments();
}

Figures figures() {
  const std::lock_guard lock(mutex);
  Figures sums{reserved, allocated, 0, 0, 0};
  for (const auto& [start, segment] : segments)
    for (const auto& [address, block] : segment) {
      if (!block.is_free) continue;
      sums.largest_free = std::max(sums.largest_free, block.bytes);
      if (is_free(segment)) continue;
      ++sums.holes;
      sums.hole_bytes += block.bytes;
    }
  return sums;
}

}  // namespace c10::cuda

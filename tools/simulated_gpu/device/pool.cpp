// Memory pools: blocks, chunks, and the order in which a pool looks for memory.
#include "tools/simulated_gpu/device/pool.hpp"

#include <algorithm>
#include <iterator>

#include "tools/simulated_gpu/device/device_memory.hpp"
#include "tools/simulated_gpu/device/simulator.hpp"
#include "tools/simulated_gpu/device/streams.hpp"

namespace cuwarden::simulated_gpu {
namespace {

// The least bytes by which a pool grows, if the device has them.
constexpr std::size_t kChunk = 32 * kMiB;

}  // namespace

bool MemoryPool::grow(std::size_t size) {
  const std::size_t exact = round_up(size, kPage);
  if (max_size != 0 && reserved + exact > max_size) return false;
  for (const std::size_t wanted : {std::max(exact, kChunk), exact}) {
    if (max_size != 0 && reserved + wanted > max_size) continue;
    if (!device->charge(wanted)) continue;
    const CUdeviceptr start = device->arena.take(wanted);
    if (start == 0) {
      device->refund(wanted);
      continue;
    }
    reserved += wanted;
    reserved_high = std::max(reserved_high, reserved);
    chunks[start] = Chunk{wanted, 0, 0};
    blocks[start] = Block{wanted, State::free, nullptr, start};
    available[nullptr].emplace(wanted, start);
    return true;
  }
  return false;
}

CUdeviceptr MemoryPool::cut(Stream* owner, std::size_t size) {
  const auto list = available.find(owner);
  if (list == available.end()) return 0;
  const auto best = list->second.lower_bound({size, 0});
  if (best == list->second.end()) return 0;
  const CUdeviceptr start = best->second;
  list->second.erase(best);
  Block& block = blocks[start];
  Chunk& chunk = chunks[block.chunk];
  if (block.state == State::pending) chunk.pending -= block.size;
  if (block.size > size) {
    Block rest = block;
    rest.size -= size;
    if (rest.state == State::pending) chunk.pending += rest.size;
    list->second.emplace(rest.size, start + size);
    blocks[start + size] = rest;
    block.size = size;
  }
  block.state = State::used;
  block.stream = nullptr;
  chunk.used += size;
  used += size;
  used_high = std::max(used_high, used + freed_otherwise);
  return start;
}

CUdeviceptr MemoryPool::take(std::size_t request, Stream* stream) {
  const std::size_t size = round_up(std::max<std::size_t>(request, 1), kSlabStep);
  if (const CUdeviceptr found = cut(stream, size)) return found;
  if (const CUdeviceptr found = cut(nullptr, size)) return found;
  if (grow(size)) return cut(nullptr, size);
  trim_device(*device);
  if (grow(size)) return cut(nullptr, size);
  // Frees that other streams have not reached: the work of this stream waits for them.
  Clock::time_point latest = stream->busy_until;
  for (Context* context : simulator().contexts.all()) {
    if (context->device == device) latest = std::max(latest, busy_until(*context));
  }
  stream->busy_until = latest;
  for (MemoryPool* pool : all_memory_pools()) {
    if (pool->device == device) pool->observe(nullptr);
  }
  if (const CUdeviceptr found = cut(nullptr, size)) return found;
  trim_device(*device);
  return grow(size) ? cut(nullptr, size) : 0;
}

// Marks the block as free or pending and joins it with neighbours of the same state and stream.
void MemoryPool::make_available(CUdeviceptr start, Block& freed, State state, Stream* stream) {
  freed.state = state;
  freed.stream = stream;
  const auto same = [&](const Block& other) {
    return other.state == state && other.stream == stream && other.chunk == freed.chunk;
  };
  auto at = blocks.find(start);
  auto& list = available[stream];
  if (const auto next = std::next(at); next != blocks.end() && same(next->second)) {
    list.erase({next->second.size, next->first});
    at->second.size += next->second.size;
    blocks.erase(next);
  }
  if (at != blocks.begin()) {
    const auto previous = std::prev(at);
    if (same(previous->second)) {
      list.erase({previous->second.size, previous->first});
      previous->second.size += at->second.size;
      blocks.erase(at);
      at = previous;
    }
  }
  list.emplace(at->second.size, at->first);
}

void MemoryPool::give_pending(CUdeviceptr start, Stream* stream) {
  Block& block = blocks[start];
  Chunk& chunk = chunks[block.chunk];
  chunk.used -= block.size;
  chunk.pending += block.size;
  used -= block.size;
  make_available(start, block, State::pending, stream);
}

void MemoryPool::give_now(CUdeviceptr start) {
  Block& block = blocks[start];
  chunks[block.chunk].used -= block.size;
  used -= block.size;
  make_available(start, block, State::free, nullptr);
}

void MemoryPool::observe(Stream* stream) {
  std::vector<CUdeviceptr> reached;
  for (auto& [owner, list] : available) {
    if (owner == nullptr || (stream != nullptr && owner != stream)) continue;
    for (const auto& [size, start] : list) reached.push_back(start);
    list.clear();
  }
  for (const CUdeviceptr start : reached) {
    const auto found = blocks.find(start);
    if (found == blocks.end() || found->second.state != State::pending) continue;
    chunks[found->second.chunk].pending -= found->second.size;
    make_available(start, found->second, State::free, nullptr);
  }
}

void MemoryPool::trim(std::size_t keep) {
  for (auto at = chunks.begin(); at != chunks.end() && reserved > keep;) {
    const auto [start, chunk] = *at;
    if (chunk.used != 0 || chunk.pending != 0) {
      ++at;
      continue;
    }
    available[nullptr].erase({chunk.size, start});
    blocks.erase(start);
    at = chunks.erase(at);
    reserved -= chunk.size;
    device->refund(chunk.size);
    device->arena.give(start, chunk.size);
  }
}

std::vector<MemoryPool*> all_memory_pools() {
  Simulator& sim = simulator();
  std::erase_if(sim.ending_pools, [](const MemoryPool* pool) { return pool->reserved == 0; });
  std::vector<MemoryPool*> pools(sim.pools.all().begin(), sim.pools.all().end());
  pools.insert(pools.end(), sim.ending_pools.begin(), sim.ending_pools.end());
  return pools;
}

}  // namespace cuwarden::simulated_gpu

// Measures recording without the stack walk: one allocation and its free, and a known stack.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace {

using namespace cuwarden;
using namespace cuwarden::ledger;

Writer& writer() {
  static Writer* const made = [] {
    const std::array<const char*, 2> folders = {"/dev/shm", "/tmp"};
    const std::array<std::string_view, 1> hooks = {"cudaMalloc"};
    Creation creation;
    creation.folders = folders;
    creation.hook_names = hooks;
    Writer* const ledger = Writer::create(creation);
    // The mapping stays; the benchmark does not need the file's name.
    ledger->file.remove();
    return ledger;
  }();
  return *made;
}

GroupId group_of(std::uint64_t stack) {
  const std::array<Frame, 2> frames = {stack, 0x10};
  return writer().groups.get(
      {writer().stacks.intern(frames, false), HookId{0}, Kind::device, DeviceOrdinal{0}});
}

NewRecord record_of(int thread) {
  NewRecord record;
  record.bytes = ByteCount{4096};
  record.group = group_of(static_cast<std::uint64_t>(thread));
  return record;
}

DeviceAddress address_of(int thread, std::uint64_t i) {
  return {(static_cast<std::uint64_t>(thread) + 1) << 40 | i << 9};
}

void add_and_take(benchmark::State& state) {
  Writer& ledger = writer();
  NewRecord record = record_of(state.thread_index());
  std::uint64_t i = 0;
  for (auto _ : state) {
    record.address = address_of(state.thread_index(), i++ % 4096);
    ledger.allocations.add(record);
    ledger.allocations.take(Space::pointer, record.address);
  }
}
BENCHMARK(add_and_take)->ThreadRange(1, 2)->UseRealTime();

// With other allocations live, the tables are larger than the caches.
void add_and_take_among_live(benchmark::State& state) {
  Writer& ledger = writer();
  NewRecord record = record_of(state.thread_index());
  const auto live = static_cast<std::uint64_t>(state.range(0));
  for (std::uint64_t i = 0; i < live; ++i) {
    record.address = address_of(state.thread_index(), i);
    ledger.allocations.add(record);
  }
  std::uint64_t i = 1;
  for (auto _ : state) {
    i = (i * 2862933555777941757 + 3037000493) % live;
    record.address = address_of(state.thread_index(), i);
    ledger.allocations.take(Space::pointer, record.address);
    ledger.allocations.add(record);
  }
  for (std::uint64_t n = 0; n < live; ++n) {
    ledger.allocations.take(Space::pointer, address_of(state.thread_index(), n));
  }
}
BENCHMARK(add_and_take_among_live)->Arg(1'000'000)->UseRealTime();

void intern_known_stack(benchmark::State& state) {
  Writer& ledger = writer();
  std::vector<Frame> frames(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < frames.size(); ++i) frames[i] = 0x400000 + i * 0x123;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ledger.stacks.intern(frames, false));
  }
}
BENCHMARK(intern_known_stack)->Arg(10)->Arg(30)->Arg(60)->ThreadRange(1, 2)->UseRealTime();

// Measures everything that a hook does: clock, call count, stack, group, record and its end.
void record_one_call(benchmark::State& state) {
  Writer& ledger = writer();
  std::array<Frame, 30> frames{};
  for (std::size_t i = 0; i < frames.size(); ++i) frames[i] = 0x500000 + i * 0x321;
  NewRecord record;
  record.bytes = ByteCount{4096};
  std::uint64_t i = 0;
  for (auto _ : state) {
    ledger.thread_shards.count_call(HookId{0});
    record.group = ledger.groups.get(
        {ledger.stacks.intern(frames, false), HookId{0}, Kind::device, DeviceOrdinal{0}});
    record.address = address_of(state.thread_index(), i++ % 4096);
    ledger.allocations.add(record);
    ledger.thread_shards.count_call(HookId{0});
    ledger.allocations.take(Space::pointer, record.address);
  }
}
BENCHMARK(record_one_call)->ThreadRange(1, 2)->UseRealTime();

}  // namespace

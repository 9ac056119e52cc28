#include "tests/unit/reporters/sample_ledger.hpp"

#include <dlfcn.h>

#include "tests/unit/reporters/sample_program.hpp"

namespace cuwarden::test {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

// Address at which the sample's process has loaded its program.
constexpr std::uint64_t program_base = 0x555555554000;

ledger::SeriesView series(Kind kind, DeviceOrdinal device, std::uint64_t count,
                          std::uint64_t bytes) {
  ledger::SeriesView view;
  view.kind = kind;
  view.device = device;
  view.allocations = view.live_count = view.peak_count = count;
  view.live_bytes = view.peak_bytes = bytes;
  view.peak_ns = 90 * second;
  view.buckets_used = 2;
  view.buckets[0] = {0, 50 * second, bytes / 2, bytes / 2};
  view.buckets[1] = {50 * second, 50 * second, bytes, bytes};
  return view;
}

}  // namespace

void fill_sample(FakeLedger& ledger) {
  // The path stays valid, because the tests are linked with the module.
  Dl_info program{};
  dladdr(reinterpret_cast<void*>(sample_program::address_in_refine()), &program);
  const ledger::Frame in_program = sample_program::address_in_refine() -
                                   reinterpret_cast<std::uint64_t>(program.dli_fbase) +
                                   program_base;

  ledger.process.pid = 41233;
  ledger.process.parent = 41207;
  ledger.process.start_realtime_ns = 1'795'161'601'123'456'789;
  ledger.process.host = "node-7";
  ledger.process.program = program.dli_fname;
  ledger.process.command_line = std::string_view("./app\0inputs.3d\0", 16);
  ledger.process.end_reason = ledger::EndReason::exit;
  ledger.process.exit_status = 0;
  ledger.process.driver_version = 13000;
  ledger.process.recorded_calls = 13;
  ledger.process.ledger_bytes = 65536;

  ledger.hooks = {{{0}, "cuMemAlloc_v2", 7},
                  {{1}, "cudaMallocHost", 1},
                  {{2}, "cuMemCreate", 1},
                  {{3}, "cuMemFree_v2", 0}};
  ledger.settings = {{"CUWARDEN_STACK_DEPTH", "64", true}, {"CUWARDEN_LOG", "warn", false}};
  ledger.environment = {{"CUDA_VISIBLE_DEVICES", "1", true},
                        {"SLURM_JOB_ID", "882113", true},
                        {"SLURM_PROCID", "3", true}};

  ledger.add_module("", program_base, 0x100000);  // the dynamic linker's name for the program
  ledger.add_module("/opt/vendor/libvendor \xff.so", 0x7f0000000000, 0x100000);

  const StackId here = ledger.add_stack({in_program});
  const StackId vendor = ledger.add_stack({0x7f0000001234, in_program});
  const StackId nowhere = ledger.add_stack({0x10, in_program}, true);

  const GroupId growing = ledger.add_group(here, {0}, Kind::device, {0});
  for (std::uint64_t i = 0; i < 6; ++i) {
    ledger.add_record(growing, 0x7f1240000000 + i * 0x200000, 1u << 20, (10 + i * 15) * second);
  }
  ledger.groups[0].at_peak_count = 6;
  ledger.groups[0].at_peak_bytes = 6u << 20;
  const GroupId pinned = ledger.add_group(vendor, {1}, Kind::pinned, no_device);
  ledger.add_record(pinned, 0x7f1300000000, 4096, 5 * second);
  const GroupId released = ledger.add_group(here, {0}, Kind::device, {0});
  ledger.groups[released.value - 1].allocations = 2;
  ledger.groups[released.value - 1].released_count = 2;
  ledger.groups[released.value - 1].released_bytes = 8192;
  const GroupId handle = ledger.add_group(nowhere, {2}, Kind::vmm, {0});
  ledger.add_record(handle, 0xabc, 2u << 20, 7 * second);
  ledger.records.back().space = Space::vmm_handle;
  ledger.records.back().references = 1;
  // The handle's mapping has no bytes of its own.
  ledger.add_record(handle, 0x7f1400000000, 2u << 20, 8 * second);
  ledger.records.back().space = Space::vmm_mapping;
  ledger.records.back().flags = ledger::record_counts_no_bytes;
  ledger::GroupView& handles = ledger.groups.back();
  --handles.allocations;
  --handles.live_count;
  handles.live_bytes -= 2u << 20;

  ledger.series.push_back(series(Kind::device, {0}, 6, 6u << 20));
  ledger.series.push_back(series(Kind::pinned, no_device, 1, 4096));
  ledger.series.push_back(series(Kind::vmm, {0}, 1, 2u << 20));
  ledger.series.push_back(series(Kind::device, no_device, 0, 1u << 28));
  ledger.series.back().host_rss = true;

  ledger::DeviceView read;
  read.ordinal = {0};
  read.uuid[0] = 0x6b;
  read.uuid[15] = 1;
  read.name = "NVIDIA H200";
  read.at = ledger::ReadingAt::exit;
  read.time_ns = 99 * second;
  read.total_bytes = 150108897280;
  read.free_bytes = read.total_bytes - (600u << 20);
  ledger::DeviceView unread;
  unread.ordinal = {1};
  unread.name = "NVIDIA H200";
  ledger.devices = {read, unread};
}

}  // namespace cuwarden::test

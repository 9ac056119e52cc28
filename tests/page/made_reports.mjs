// Reports that no sample leaves: names that hold markup, very many stacks, a job of many ranks.
import { read, write } from './browser.mjs';

export const markup = '</script><img src="http://192.0.2.1/x.png" onerror="globalThis.harmed = true"><b>bold</b>';

/** Puts markup into every name, makes figures negative where the format allows it, and adds odd texts. */
export function hostileReport(from) {
  const report = read(from);
  const long = 'std::vector<std::pair<int, std::string>>::emplace_back<'.repeat(40);
  Object.assign(report.process, { program: `/tmp/${markup}`, command_line: [markup, '${alert(1)}', '\u202egnp.exe'], host: markup });
  for (const frame of report.frames) {
    frame.function = `${markup} ${frame.id % 2 ? long : frame.function ?? ''}`;
    frame.file = `/srv/${markup}/file.cpp`;
    frame.library = null;
  }
  for (const module of report.modules) module.path = `/lib/${markup}.so`;
  for (const incident of report.incidents) Object.assign(incident, { verdict: markup, advice: markup, api: markup });
  for (const group of report.leak_groups) Object.assign(group, { api: markup, where: markup, kind: markup });
  for (const device of report.devices) device.name = markup;
  // Names of members that every object of JavaScript inherits.
  report.accounts.push({ device: 0, incident: null, item: 'constructor', bytes: 2 ** 30 });
  report.totals.push({ ...report.totals[0], kind: 'toString' });
  report.timeline.push({ ...report.timeline[0], kind: '__proto__', device: null, max_bytes: 2 ** 30, last_bytes: 1 });
  report.leak_groups.push({ ...report.leak_groups[0], kind: 'constructor', growth: 'valueOf' });
  for (const part of report.accounts) if (part.item === 'unexplained') part.bytes = -3 * 2 ** 30;
  report.tool.reasons = [markup];
  report.tool.complete = false;
  report.settings.push({ name: 'CUWARDEN_X', value: markup, source: markup });
  return write('hostile.json', report);
}

/** Returns a report of `count` stacks, each with a group of its own. */
export function manyStacks(from, count) {
  const report = read(from);
  const frames = [];
  for (let id = 1; id <= 3000; ++id)
    frames.push({ ...report.frames[0], id, function: `step_${id % 300}::work_${id}`, file: `/src/part_${id % 40}.cpp`, line: id, module: report.modules[0].id, library: null });
  const stacks = [];
  const groups = [];
  for (let id = 1; id <= count; ++id) {
    const depths = Array.from({ length: 12 }, (_, depth) => 1 + ((Math.floor(id / 3 ** (11 - depth)) * 31 + depth * 250) % 3000));
    stacks.push({ id, frames: depths.reverse(), truncated: false });
    groups.push({ ...report.leak_groups[0], stack: id, bytes: 256 * (1 + (id % 997)), count: 1 + (id % 13), first_ns: id * 1000, last_ns: id * 2000, fingerprint: id.toString(16).padStart(16, '0') });
  }
  Object.assign(report, { frames, stacks, leak_groups: groups, peak_holders: [], incident_holders: [], incidents: [], implicit_groups: [] });
  report.leaks.bytes = groups.reduce((sum, group) => sum + group.bytes, 0);
  return write('many.json', report);
}

/** Returns a report of a million live allocations, and two million that were freed, made by a thousand stacks. */
export function millionAllocations(from) {
  const report = read(manyStacks(from, 1000));
  for (const group of report.leak_groups) Object.assign(group, { count: 1000, bytes: 256_000 });
  const [total] = report.totals;
  Object.assign(total, { allocations: 3_000_000, allocated_bytes: 768_000_000, live_count: 1_000_000, live_bytes: 256_000_000, peak_count: 1_000_000, peak_bytes: 256_000_000 });
  report.totals = [total];
  Object.assign(report.leaks, { bytes: 256_000_000, count: 1_000_000 });
  return write('million.json', report);
}

/**
 * Returns a report with a timeline of `count` series, which have 240 spans each, as most series of a report can. `kinds`:
 * names of the kinds of memory on devices.
 */
export function longTimeline(from, count, kinds) {
  const report = read(from);
  const spans = 240;
  const width = Math.ceil(report.process.end_ns / spans);
  const [device] = report.devices;
  const on = (at) => Math.floor(at / kinds.length);
  report.devices = Array.from({ length: on(count - 1) + 1 }, (_, ordinal) => ({ ...device, device: ordinal, uuid: null }));
  report.timeline = Array.from({ length: count * spans }, (_, row) => {
    const at = Math.floor(row / spans);
    const span = row % spans;
    const bytes = 2 ** 20 * (1 + ((row * 7919) % 1000));
    return { time_ns: span * width, width_ns: width, device: on(at), kind: kinds[at % kinds.length], max_bytes: bytes, last_bytes: bytes - 2 ** 19 };
  });
  return write('timeline.json', report);
}

/** Returns the reports of a job with that many ranks. A request of ranks 5 and 2 failed, that of rank 5 first. */
export function manyRanks(from, count) {
  return Array.from({ length: count }, (_, rank) => {
    const report = read(from);
    Object.assign(report.job, { scheduler: 'slurm', job_id: '4711', rank });
    report.process.pid = 1000 + rank;
    // Rank 2 started a second later than the others, so that its request failed later, though sooner after its start.
    if (rank === 2) {
      report.process.start = new Date(Date.parse(report.process.start) + 1000).toISOString();
      for (const incident of report.incidents) incident.time_ns = Math.floor(incident.time_ns / 2);
    }
    if (rank !== 5 && rank !== 2) report.incidents = [];
    return write(`rank_${rank}.json`, report);
  });
}

/**
 * Returns a report of a device that two kinds of memory and another process filled, with the figures of a framework, steps,
 * and stacks that differ in their callers alone. Its request failed half a second before the end.
 */
export function crowdedDevice(from) {
  const report = read(from);
  const gib = 2 ** 30;
  const end = 4e9;
  const [incident] = report.incidents;
  const [device] = report.devices;
  Object.assign(report.process, { end_ns: end, steps: 3 });
  Object.assign(device, { total_bytes: 16 * gib, used_bytes: 6 * gib, free_bytes: 10 * gib, time_ns: end, at: 'exit' });
  report.devices = [device];
  Object.assign(incident, { time_ns: 3.5e9, bytes: 2 * gib, device: 0, outcome: 'failed' });
  report.incidents = [incident];
  report.accounts = [
    ...[['live_device', 6], ['live_stream_ordered', 3], ['slab_waste', 0.5], ['context', 0.5], ['other_processes', 5]]
      .map(([item, size]) => ({ device: 0, incident: incident.id, item, bytes: size * gib })),
    ...[['live_device', 4], ['live_stream_ordered', 1], ['context', 0.5], ['unexplained', 0.5]]
      .map(([item, size]) => ({ device: 0, incident: null, item, bytes: size * gib })),
  ];
  const span = (kind, second, size, on = 0) => ({ time_ns: second * 1e9, width_ns: 1e9, device: on, kind, max_bytes: size * gib, last_bytes: size * gib });
  report.timeline = [
    ...[2, 4, 7, 6].map((size, second) => span('device', second, size)),
    ...[0, 2, 3, 1].map((size, second) => span('stream_ordered', second, size)),
    ...[0, 1, 2, 2].map((size, second) => span('framework_block', second, size)),
    ...[1, 1, 1, 1].map((size, second) => span('host_rss', second, size, null)),
  ];
  const total = (kind, peak, second, live, all) => ({
    ...report.totals[0], kind, device: 0, allocations: 1000, allocated_bytes: all * gib, live_bytes: live * gib, peak_bytes: peak * gib, peak_time_ns: second * 1e9,
  });
  report.totals = [total('device', 7, 2.25, 4, 60), total('stream_ordered', 3, 2.75, 1, 8)];
  const figures = (id, time, reserved, allocated) => ({
    framework: 'PyTorch', pool: null, device: 0, incident: id, source: 'framework', time_ns: time * 1e9, reserved_bytes: reserved * gib,
    allocated_bytes: allocated * gib, peak_allocated_bytes: id === null ? 3 * gib : null, hole_count: 0, hole_bytes: 0, largest_free_bytes: 0,
  });
  report.frameworks = [figures(incident.id, 3.5, 5, 2.5), figures(null, 3.75, 4.5, 2.25)];
  report.steps = [
    { number: 1, time_ns: 0.5e9, name: null, name_end_ns: null },
    { number: 2, time_ns: 1.5e9, name: 'validate', name_end_ns: 2.5e9 },
    { number: 3, time_ns: 3e9, name: null, name_end_ns: null },
  ];
  // Four stacks with the same innermost frame of the program; the first two have different callers, the others the same.
  const frame = (id, name, line) => ({ ...report.frames[0], id, function: name, file: '/src/train.cpp', line, library: null, language: 'native', inlined: false });
  report.frames = [frame(1, 'grow', 10), frame(2, 'load', 20), frame(3, 'evaluate', 30), frame(4, 'main', 40)];
  report.stacks = [[1, 2, 4], [1, 3, 4], [1, 4], [1, 4]].map((frames, at) => ({ id: at + 1, frames, truncated: false }));
  const [group] = report.leak_groups;
  report.leak_groups = report.stacks.map(({ id }) => ({
    ...group, stack: id, kind: 'device', api: 'cudaMalloc', device: 0, bytes: gib, count: 1, suppressed: false, released_by: null, growth: 'one_time',
    lost_count: 0, lost_bytes: 0, reachability: 'reachable',
  }));
  incident.stack = 1;
  report.incident_holders = report.stacks.map(({ id }) => ({ ...report.incident_holders[0], incident: incident.id, stack: id, kind: 'device', count: 1, bytes: gib }));
  report.peak_holders = report.implicit_groups = report.framework_sites = report.slab_holders = report.forecasts = report.library_reserves = [];
  report.worst_slab_holders = [];
  report.allocation_sites = [[1, 30], [2, 20]].map(([stack, size]) => ({ kind: 'device', api: 'cudaMalloc', device: 0, stack, allocations: 300, allocated_bytes: size * gib }));
  report.leaks = { ...report.leaks, bytes: 4 * gib, count: 4 };
  return write('crowded.json', report);
}

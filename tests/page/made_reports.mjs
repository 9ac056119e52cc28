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

/** Returns the reports of a job with that many ranks. */
export function manyRanks(from, count) {
  return Array.from({ length: count }, (_, rank) => {
    const report = read(from);
    Object.assign(report.job, { scheduler: 'slurm', job_id: '4711', rank });
    report.process.pid = 1000 + rank;
    if (rank !== 5) report.incidents = [];
    return write(`rank_${rank}.json`, report);
  });
}

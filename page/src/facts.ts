// The section about the process: facts about it, the settings in force, and the reasons why the report lacks something.
import type { RawReport } from './data';
import { h, section } from './dom';
import { DataTable } from './table';
import { bytes, count, duration } from './words';

function facts(report: RawReport): [string, string | null][] {
  const { process, devices } = report;
  const or = (value: string | null | undefined): string | null => value ?? null;
  const limit = process.cgroup_limit ?? null;
  return [
    ['Report', process.path],
    ['Program', process.program],
    ['Command line', process.command === '' ? null : process.command],
    ['Process', `pid ${process.pid ?? 'unknown'} on ${process.host ?? 'an unknown host'}`],
    ['Start', process.epoch === null ? or(process.start) : `${new Date(process.epoch).toLocaleString()} (${process.start})`],
    ['End', process.ending],
    ['Steps', process.steps === null ? null : count(process.steps)],
    ['Job', process.job === null ? null : `${process.scheduler ?? ''} ${process.job}${process.rank === null ? '' : `, rank ${process.rank}`}`],
    ['CUDA_VISIBLE_DEVICES', process.visible],
    ['Devices', devices.device.map((device, at) => `GPU ${device}: ${devices.name[at] ?? 'unknown'} (${devices.uuid[at] ?? 'UUID unknown'})`).join('; ') || null],
    ['CUDA', [process.driver === null ? '' : `driver for CUDA ${process.driver}`, process.package ?? '', process.runtime === null ? '' : `runtime ${process.runtime}`].filter((text) => text !== '').join(', ') || null],
    ['Memory limit of the cgroup', limit === null ? null : `${bytes(limit)}, peak ${bytes(process.cgroup_peak)}`],
    ['Cost of recording', (process.shim_us ?? null) === null ? null : `${duration(process.shim_us)} in ${count(process.recorded_calls)} calls`],
    ['Written by', process.tool === null ? null : `cuwarden ${process.tool}`],
    ['Redacted', process.redacted === 1 ? 'yes: host, user, command line, folders and environment were taken out' : null],
  ];
}

/** Returns the section about the process. */
export function factsSection(report: RawReport): HTMLElement {
  const lacks = report.lacks.length === 0
    ? h('p', { class: 'complete' }, 'The report is complete: cuwarden saw all calls and lost no record.')
    : h('div', { class: 'lacks' }, h('h3', {}, 'What the report lacks'), h('ul', { class: 'plainlist' }, ...report.lacks.map((reason) => h('li', {}, reason))));
  const list = h('dl', { class: 'facts' });
  for (const [name, value] of facts(report)) if (value !== null) list.append(h('dt', {}, name), h('dd', {}, value));
  const table = new DataTable<RawReport['settings'][number]>({
    caption: 'Settings and variables',
    empty: 'The report has no settings.',
    most: 60,
    columns: [
      { title: 'Name', text: (row) => row.name },
      { title: 'Value', long: true, text: (row) => row.value ?? '' },
      { title: 'From', text: (row) => row.source ?? '' },
    ],
  });
  // Settings that the user has chosen come before those with default values.
  table.show([...report.settings].sort((one, other) => Number(one.source === 'default') - Number(other.source === 'default')));
  return section('facts', 'Process and settings', '', lacks, list, h('details', {}, h('summary', {}, 'Settings and variables'), table.element));
}

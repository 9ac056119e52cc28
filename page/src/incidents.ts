// The section about refused requests, and about the call stacks that held memory at each of them.
import { apartByStack } from './apart';
import type { Page, RawReport } from './data';
import { fill, h, section } from './dom';
import { stackList } from './stack_list';
import { adviceOf, withShortNames } from './summary';
import { DataTable } from './table';
import { bytes, count, location, moment } from './words';

/** The section about refused requests. */
export interface IncidentsPart {
  element: HTMLElement;
  /** Shows the call stacks that held memory at the incident with this id. */
  show: (id: number) => void;
}

function holdersTable(page: Page, report: RawReport, id: number): HTMLElement {
  const { holders } = report;
  const table = new DataTable<number>({
    caption: `Holders of memory at incident ${id}`,
    empty: 'The report names no holders at that moment.',
    sorted: 1,
    most: 12,
    columns: [
      { title: 'Held by', text: (at) => location(page.usersFrame(holders.stack[at] ?? 0)) },
      { title: 'Bytes', number: true, text: (at) => bytes(holders.bytes[at]), order: (at) => holders.bytes[at] ?? 0 },
      { title: 'In', number: true, text: (at) => count(holders.count[at]), order: (at) => holders.count[at] ?? 0 },
      { title: 'Memory', text: (at) => page.memory(holders.kind[at] ?? '', null) },
      { title: 'Grows by', number: true, text: (at) => ((holders.growth[at] ?? 0) > 0 ? `${bytes(holders.growth[at])} a minute` : ''), order: (at) => holders.growth[at] ?? 0 },
      { title: 'Locks', number: true, text: (at) => ((holders.locked[at] ?? 0) > 0 ? bytes(holders.locked[at]) : ''), order: (at) => holders.locked[at] ?? 0 },
    ],
    details: (at) => stackList(page, holders.stack[at] ?? 0),
    apart: apartByStack(page, (at) => holders.stack[at] ?? 0),
  });
  table.show(holders.incident.flatMap((incident, at) => (incident === id ? [at] : [])));
  return table.element;
}

/** Makes the section about the refused requests of the report, which has one or more. */
export function incidentsPart(page: Page, report: RawReport): IncidentsPart {
  const { incidents } = report;
  const holder = h('div', { class: 'holders' });
  const show = (id: number): void => {
    const at = incidents.id.indexOf(id);
    const told = report.summary.find((row) => row.incident === id);
    const notice = told && withShortNames(page, report, told);
    const advice = notice && adviceOf(notice);
    fill(holder, h('h3', { tabindex: '-1' }, `Incident ${id}: ${incidents.verdict[at] ?? ''}`),
      notice ? h('p', {}, notice.title) : null, advice === undefined ? null : h('p', { class: 'advice' }, advice),
      holdersTable(page, report, id));
  };
  const table = new DataTable<number>({
    caption: 'List of refused requests',
    empty: 'No request was refused.',
    most: 10,
    columns: [
      { title: 'Request', text: (at) => `${incidents.api[at] ?? 'a request'}${(incidents.bytes[at] ?? null) === null ? '' : ` of ${bytes(incidents.bytes[at])}`}` },
      { title: 'When', long: true, text: (at) => moment(report.process, incidents.time[at] ?? null), order: (at) => incidents.time[at] ?? 0 },
      { title: 'Refusals', number: true, text: (at) => count((incidents.repeats[at] ?? 0) + 1), order: (at) => incidents.repeats[at] ?? 0 },
      { title: 'Outcome', text: (at) => (incidents.outcome[at] ?? '').replace(/_/g, ' '), shown: (at) => {
        const outcome = incidents.outcome[at] ?? '';
        return h('span', { class: outcome === 'failed' ? 'chip bad' : outcome === 'rescued' ? 'chip good' : 'chip' }, outcome.replace(/_/g, ' '));
      } },
      { title: 'Verdict', text: (at) => incidents.verdict[at] ?? '' },
      { title: 'Holders', text: () => '', order: () => 0, shown: (at) => h('button', {
        type: 'button', class: 'quiet', 'aria-label': `Show the holders at incident ${incidents.id[at] ?? 0}`, onclick: () => { show(incidents.id[at] ?? 0); },
      }, 'Show') },
    ],
    details: (at) => stackList(page, incidents.stack[at] ?? 0),
    apart: apartByStack(page, (at) => incidents.stack[at] ?? 0),
  });
  table.show(incidents.id.map((_, at) => at));
  show(incidents.id[Math.max(0, incidents.outcome.indexOf('failed'))] ?? 0);
  return { element: section('incidents', 'Refused requests', 'Requests that failed in the driver for lack of memory, and the stacks that held memory at that moment.', table.element, holder), show };
}

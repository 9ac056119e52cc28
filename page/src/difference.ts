// The section about the difference between the leaks of two reports, compared by fingerprint.
import type { Change, Difference, Page } from './data';
import { h, section } from './dom';
import { stackMatcher } from './groups';
import { stackList } from './stack_list';
import { DataTable } from './table';
import { bytes, count, location } from './words';

/** Returns the change of the leak's bytes in words, such as "+1.5 GiB" or "−2.0 MiB". */
function changed(row: Change): string {
  const by = row.bytes - row.bytes_before;
  return by > 0 ? `+${bytes(by)}` : bytes(by);
}

/** Returns the section about the leaks that differ between two reports. */
export function differenceSection(page: Page, difference: Difference): HTMLElement {
  const sum = (change: Change['change']): string => {
    const rows = difference.rows.filter((row) => row.change === change);
    return `${rows.length} ${change}`;
  };
  const table = new DataTable<Change>({
    caption: 'Leaks that differ between the two reports',
    empty: 'No leak differs: both reports have the same ones.',
    sorted: 2,
    columns: [
      { title: 'Allocated at', text: (row) => location(page.usersFrame(row.stack)) },
      { title: 'Leak is', text: (row) => row.change, shown: (row) => h('span', { class: row.change === 'gone' || row.change === 'smaller' ? 'chip good' : 'chip bad' }, row.change) },
      { title: 'Change', number: true, text: changed, order: (row) => Math.abs(row.bytes - row.bytes_before) },
      { title: 'Before', number: true, text: (row) => (row.change === 'new' ? '–' : bytes(row.bytes_before)), order: (row) => row.bytes_before },
      { title: 'Now', number: true, text: (row) => (row.change === 'gone' ? '–' : bytes(row.bytes)), order: (row) => row.bytes },
      { title: 'In before', number: true, text: (row) => count(row.count_before), order: (row) => row.count_before },
      { title: 'In now', number: true, text: (row) => count(row.count), order: (row) => row.count },
      { title: 'Memory', text: (row) => page.memory(row.kind, null) },
      { title: 'Function', text: (row) => row.api },
    ],
    filter: (text) => {
      const matches = stackMatcher(page, text);
      const wanted = text.toLowerCase();
      return (row) => matches(row.stack) || `${row.change} ${row.kind} ${row.api} ${row.fingerprint}`.toLowerCase().includes(wanted);
    },
    details: (row) => h('div', {}, h('p', { class: 'line' }, 'Fingerprint: ', h('code', {}, row.fingerprint)), stackList(page, row.stack)),
  });
  table.show(difference.rows);
  return section('difference', 'What changed', `Leaks of the second report, compared with the first by fingerprint: ${(['new', 'grown', 'smaller', 'gone'] as const).map(sum).join(', ')}, ${count(difference.unchanged)} unchanged.`, table.element);
}

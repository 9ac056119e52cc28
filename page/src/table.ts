// A table that the user can sort and filter. It shows more rows on demand, and a row can be opened. Arrow keys go from
// row to row.
import { fill, h, searchField } from './dom';

/** A column of a table. */
export interface Column<Row> {
  title: string;
  /** Returns the text of a row in this column. */
  text: (row: Row) => string;
  /** Returns the value by which rows are sorted; left out: they are sorted by the text. */
  order?: (row: Row) => number | string;
  /** True: the texts are numbers, which stand at the right side. */
  number?: boolean;
  /** True: the text may be long, and is broken into lines. */
  long?: boolean;
  /** Returns an element that is shown in place of the text. */
  shown?: (row: Row) => Node;
}

/** All that a table needs beside its rows. */
export interface TableOptions<Row> {
  caption: string;
  columns: Column<Row>[];
  /** Index of the column by which rows are sorted at first, from the largest on; left out: rows keep their order. */
  sorted?: number;
  /** Returns the content that is shown below a row when it is opened; left out: rows cannot be opened. */
  details?: (row: Row) => Node;
  /**
   * Returns, for each of the rows, words that distinguish it from the others; empty: there are none. The rows have the
   * same text in the first column. `texts`: for each row, the texts of all columns, joined by tabs. Left out: rows get
   * no such words.
   */
  apart?: (rows: Row[], texts: string[]) => string[];
  /** Returns a test of rows for the text that the user has typed into the filter; left out: the table has no filter. */
  filter?: (text: string) => (row: Row) => boolean;
  /** Most rows of the table that are shown before the user asks for more; left out: 25. */
  most?: number;
  /** Text that is shown if the table has no rows. */
  empty: string;
}

/** A table that the user can sort and filter. */
export class DataTable<Row> {
  readonly element = h('div', { class: 'table' });
  private readonly holder = h('div', { class: 'scroll', tabindex: '0', role: 'region' });
  private readonly status = h('p', { class: 'status', role: 'status' });
  private readonly more = h('div', { class: 'more' });
  private readonly body = h('tbody');
  private readonly heads: HTMLTableCellElement[] = [];
  private rows: Row[] = [];
  private found: Row[] = [];
  private column: number;
  private isRising = false;
  private most: number;
  private text = '';
  private timer = 0;

  constructor(private readonly options: TableOptions<Row>) {
    this.column = options.sorted ?? -1;
    this.most = options.most ?? 25;
    this.holder.setAttribute('aria-label', options.caption);
    const caption = h('caption', { class: 'hidden' }, options.caption);
    this.holder.append(h('table', {}, caption, h('thead', {}, this.headRow()), this.body));
    this.body.addEventListener('keydown', (event) => { this.moveBetweenRows(event); });
    this.element.append(...(options.filter ? [this.filterField()] : []), this.holder, this.status, this.more);
  }

  show(rows: Row[]): void {
    this.rows = rows;
    this.most = this.options.most ?? 25;
    this.apply();
  }

  private filterField(): HTMLElement {
    return searchField('Filter', (text) => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => {
        this.text = text;
        this.apply();
      }, 120);
    });
  }

  private headRow(): HTMLElement {
    const row = h('tr');
    this.options.columns.forEach((column, at) => {
      const button = h('button', { type: 'button', onclick: () => { this.sortBy(at); } }, column.title);
      const head = h('th', { scope: 'col', class: column.number ? 'number' : null }, button);
      this.heads.push(head);
      row.append(head);
    });
    return row;
  }

  private sortBy(column: number): void {
    this.isRising = this.column === column ? !this.isRising : !this.options.columns[column]?.number;
    this.column = column;
    this.apply();
  }

  private apply(): void {
    const text = this.text.trim();
    this.found = text !== '' && this.options.filter ? this.rows.filter(this.options.filter(text)) : [...this.rows];
    const column = this.options.columns[this.column];
    if (column) {
      const order = column.order ?? column.text;
      const sign = this.isRising ? 1 : -1;
      const keys = new Map(this.found.map((row) => [row, order(row)]));
      this.found.sort((left, right) => {
        const one = keys.get(left) ?? 0;
        const other = keys.get(right) ?? 0;
        return one === other ? 0 : one < other ? -sign : sign;
      });
    }
    this.heads.forEach((head, at) => {
      if (at === this.column) head.setAttribute('aria-sort', this.isRising ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
    });
    this.draw();
  }

  private draw(): void {
    const shown = Math.min(this.most, this.found.length);
    const body = document.createDocumentFragment();
    const rows = this.found.slice(0, shown);
    const notes = this.notesOf(rows);
    for (const row of rows) body.append(this.row(row, notes.get(row) ?? ''));
    this.body.replaceChildren(body);
    this.holder.hidden = this.found.length === 0;
    const all = this.found.length.toLocaleString('en-US');
    const filtered = this.found.length < this.rows.length ? ` (of ${this.rows.length.toLocaleString('en-US')})` : '';
    fill(this.status, this.found.length === 0 ? (this.rows.length === 0 ? this.options.empty : 'No row matches the filter.')
      : shown < this.found.length ? `${shown.toLocaleString('en-US')} of ${all} rows${filtered}`
        : `${all} ${this.found.length === 1 ? 'row' : 'rows'}${filtered}`);
    const rest = this.found.length - shown;
    fill(this.more, ...[100, 1000].filter((count, at) => rest > (at === 0 ? 0 : 100) || count < rest).map((count) => h('button', {
      type: 'button', class: 'quiet', onclick: () => {
        this.most += count;
        this.draw();
      },
    }, rest <= count ? 'Show all' : `Show ${count.toLocaleString('en-US')} more`)));
  }

  /** Returns, by row, words that distinguish rows with the same text in the first column (TableOptions.apart). */
  private notesOf(rows: Row[]): Map<Row, string> {
    const { columns, apart } = this.options;
    const notes = new Map<Row, string>();
    const first = columns[0];
    if (!apart || !first) return notes;
    const alike = new Map<string, Row[]>();
    for (const row of rows) {
      const text = first.text(row);
      const others = alike.get(text);
      if (others) others.push(row);
      else alike.set(text, [row]);
    }
    for (const group of alike.values()) {
      if (group.length < 2) continue;
      const words = apart(group, group.map((row) => columns.map((column) => column.text(row)).join('\t')));
      group.forEach((row, at) => notes.set(row, words[at] ?? ''));
    }
    return notes;
  }

  private row(row: Row, note: string): Node {
    const line = h('tr');
    const { columns, details } = this.options;
    columns.forEach((column, at) => {
      const content = column.shown ? column.shown(row) : column.text(row);
      const cell = h(at === 0 ? 'th' : 'td', { class: column.number ? 'number' : column.long ? 'long' : null, scope: at === 0 ? 'row' : null });
      if (at === 0 && details) {
        const button = h('button', { type: 'button', class: 'open', 'aria-expanded': 'false' }, content, note === '' ? null : h('span', { class: 'apart' }, note));
        button.addEventListener('click', () => { this.toggle(line, button, row); });
        cell.append(button);
      } else {
        cell.append(content);
      }
      line.append(cell);
    });
    return line;
  }

  private toggle(line: HTMLElement, button: HTMLElement, row: Row): void {
    const isOpen = button.getAttribute('aria-expanded') === 'true';
    button.setAttribute('aria-expanded', String(!isOpen));
    if (isOpen) {
      line.nextElementSibling?.remove();
    } else if (this.options.details) {
      const cell = h('td', { colspan: this.options.columns.length }, this.options.details(row));
      line.after(h('tr', { class: 'details' }, cell));
    }
  }

  private moveBetweenRows(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || !(event.target instanceof HTMLElement)) return;
    const buttons = [...this.body.querySelectorAll<HTMLElement>('button.open')];
    const at = buttons.indexOf(event.target);
    const next = buttons[at + step];
    if (at < 0 || !next) return;
    event.preventDefault();
    next.focus();
  }
}

// Makes elements of the page. Texts of reports become text nodes only, so that markup in them has no effect.

type Child = Node | string | null;
type Value = string | number | boolean | null | ((event: never) => void);

/**
 * Makes an element. `properties`: its attributes; one with a function as its value, such as `onclick`, is a listener;
 * null and false are left out. `children`: null is left out.
 */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag, properties: Record<string, Value> = {}, ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value as EventListener);
    else if (name === 'class') element.className = String(value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** Replaces all children of the element by these. Null is left out. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(...children.filter((child): child is Node | string => child !== null));
}

/** Makes a small square of a colour, to stand before the name of the coloured thing. */
export function swatch(colour: string): HTMLElement {
  const square = h('span', { class: 'swatch', 'aria-hidden': 'true' });
  square.style.background = colour;
  return square;
}

let numbers = 0;
/** Returns an id that no other element has: `prefix` with a number behind it. */
function freshId(prefix: string): string {
  return `${prefix}-${++numbers}`;
}

/** Makes the text that stands in place of a control on paper. A screen does not show it. */
function printedText(text: string): HTMLElement {
  return h('span', { class: 'printed' }, text);
}

/**
 * Makes a list with a label, of which the user chooses one option. `chosen`: value of the option that is chosen at
 * first. `changed`: is called with the value of each option that the user chooses. A printed page shows the text of the
 * chosen option.
 */
export function choice(
  label: string, options: { value: string; text: string }[], chosen: string, changed: (value: string) => void,
): HTMLElement {
  const id = freshId('choice');
  const textOf = (value: string): string => options.find((option) => option.value === value)?.text ?? '';
  const printed = printedText(textOf(chosen));
  const select = h('select', { id, onchange: () => {
    fill(printed, textOf(select.value));
    changed(select.value);
  } }, ...options.map(({ value, text }) => h('option', { value, selected: value === chosen }, text)));
  return h('div', { class: 'choice' }, h('label', { for: id }, label), select, printed);
}

/**
 * Makes a field for a text by which the user searches, with a label. `typed`: is called with the text after each
 * change. A printed page shows the text, unless it is empty.
 */
export function searchField(label: string, typed: (text: string) => void): HTMLElement {
  const id = freshId('search');
  const printed = printedText('');
  const field = h('input', {
    id, type: 'search', placeholder: 'Function, file, module…', autocomplete: 'off', oninput: () => {
      const text = field.value.trim();
      fill(printed, text);
      element.classList.toggle('unused', text === '');
      typed(field.value);
    },
  });
  const element = h('div', { class: 'choice unused' }, h('label', { for: id }, label), field, printed);
  return element;
}

/**
 * Makes a section of the page with a heading. `id`: id of the element, for links. `hint`: a sentence about the use of
 * the section; empty: none.
 */
export function section(id: string, title: string, hint: string, ...children: Child[]): HTMLElement {
  const heading = `${id}-title`;
  return h('section', { id, 'aria-labelledby': heading, class: 'card' },
    h('h2', { id: heading, tabindex: '-1' }, title), hint === '' ? null : h('p', { class: 'hint' }, hint), ...children);
}

/** Returns the colour that the style sheet gives the variable of this name, such as "--line". */
export function styleColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

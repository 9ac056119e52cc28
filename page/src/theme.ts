// Switches between light and dark colours. At first the page has those of the system. A choice of the user's holds
// until the page is closed.
import { h } from './dom';

const listeners: (() => void)[] = [];

/** Registers a function that is called whenever the page changes between light and dark colours, or is printed. */
export function onThemeChange(listener: () => void): void {
  listeners.push(listener);
}

function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen === undefined ? matchMedia('(prefers-color-scheme: dark)').matches : chosen === 'dark';
}

/** Makes the button switch between light and dark colours. */
export function startTheme(button: HTMLElement): void {
  const show = (): void => {
    button.replaceChildren(h('span', {}, isDark() ? 'Light colours' : 'Dark colours'));
    for (const listener of listeners) listener();
  };
  button.addEventListener('click', () => {
    document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
    show();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show);
  // Paper is light, so that canvases must be drawn anew before and after printing.
  matchMedia('print').addEventListener('change', show);
  show();
}

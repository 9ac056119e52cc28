// A call stack as a list of frames, innermost first. Frames of libraries are folded.
import type { Frame, Page } from './data';
import { h } from './dom';

const codeWords: Record<Frame['code'], string> = {
  own: 'native', python: 'Python', library: 'library', cuda: 'CUDA', system: 'system',
};

function frameItem(frame: Frame, isUsers: boolean): HTMLElement {
  const where = frame.file === '' ? frame.module : `${frame.file}${frame.line > 0 ? `:${frame.line}` : ''}`;
  return h('li', { class: isUsers ? `frame ${frame.code} users` : `frame ${frame.code}` },
    h('span', { class: 'tag' }, frame.python && frame.code === 'library' ? 'Python' : codeWords[frame.code]),
    frame.name === frame.short ? h('span', { class: 'function' }, frame.short)
      : h('details', { class: 'function' }, h('summary', { title: 'Show the whole name' }, frame.short), h('span', { class: 'whole' }, frame.name)),
    h('span', { class: 'file' }, `${where}${frame.inlined ? ' (inlined)' : ''}`));
}

/** Returns an element that lists the frames of a call stack. `stack`: number of the stack; 0: unknown. */
export function stackList(page: Page, stack: number): HTMLElement {
  const frames = page.stack(stack);
  if (frames.length === 0) return h('p', { class: 'hint' }, 'No stack was recorded.');
  const users = page.usersFrame(stack);
  const list = h('ol', { class: 'stack' });
  for (let at = 0; at < frames.length;) {
    const first = frames[at];
    if (!first) break;
    let end = at + 1;
    while (first.library !== '' && end < frames.length && frames[end]?.library === first.library) ++end;
    const part = frames.slice(at, end);
    if (part.length > 1 || (first.code === 'cuda' && at === 0 && end < frames.length)) {
      const folded = h('li', { class: `frame ${first.code}` });
      folded.append(h('button', {
        type: 'button', class: 'quiet', onclick: () => { folded.replaceWith(...part.map((frame) => frameItem(frame, frame === users))); },
      }, `… ${part.length} ${part.length === 1 ? 'frame' : 'frames'} of ${first.library}`));
      list.append(folded);
    } else {
      list.append(...part.map((frame) => frameItem(frame, frame === users)));
    }
    at = end;
  }
  if (page.isTruncated(stack)) list.append(h('li', { class: 'frame system' }, '… the outer frames were not recorded'));
  return list;
}

/**
 * Returns an element that shows `title`, and also the frames of a call stack once it is opened. `stack`: number of the
 * stack; 0: unknown. `note`: an element behind the title; null: none.
 */
export function foldedStack(page: Page, stack: number, title: string, note: HTMLElement | null = null): HTMLElement {
  const details = h('details', {}, h('summary', {}, title, note));
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(stackList(page, stack));
  });
  return details;
}

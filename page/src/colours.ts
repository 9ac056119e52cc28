// Colours of kinds of memory in the page's charts. The style sheet has all other colours.
import { own } from './words';

/**
 * Colours of kinds of memory and of parts of a device, by their names in reports. They can be distinguished on a light
 * and on a dark background.
 */
const colours: Record<string, string> = {
  device: '#3f7fd9', live_device: '#3f7fd9',
  stream_ordered: '#8b62d6', live_stream_ordered: '#8b62d6',
  managed: '#22a38b', live_managed: '#22a38b',
  vmm: '#2f9fce', live_vmm: '#2f9fce',
  array: '#bd9a17', live_array: '#bd9a17',
  imported: '#84905a', live_imported: '#84905a',
  graph: '#c05aa3', live_graph: '#c05aa3',
  pinned: '#e07f2f', registered: '#c9605c', host_rss: '#868e9c', framework_block: '#d35f8d',
  slab_waste: '#dc4a55', rounding_waste: '#ef9096', mempool_idle: '#b99be8', pool: '#68c4b0',
  context: '#5f7191', modules: '#8093b5', local_memory: '#9aaac6', heap: '#b4c1d6', streams: '#6d8f9d',
  graphs: '#a77398', libraries: '#c7a46c', page_cache: '#ded6b8', other_processes: '#5b4a3f', unexplained: '#9a9fa8',
};

/** Returns the colour of a kind of memory or of a part of a device. `name`: its name in reports. */
export function colourOf(name: string): string {
  return own(colours, name) ?? '#9a9fa8';
}

/** Returns the colour, black or white, in which text is easier to read on this colour (#rrggbb). */
export function inkOn(colour: string): string {
  const light = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const brightness = 0.2126 * (light[0] ?? 0) + 0.7152 * (light[1] ?? 0) + 0.0722 * (light[2] ?? 0);
  return brightness > 0.179 ? '#000000' : '#ffffff';
}

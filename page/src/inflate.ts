// Decompresses the data that the page has in itself.
import type { RawPage } from './data';

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; ++at) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/**
 * Returns the data of the page. Throws an error if the file was cut short, or if the browser cannot decompress data.
 */
export async function pageData(): Promise<RawPage> {
  const holder = document.getElementById('data');
  if (typeof DecompressionStream === 'undefined')
    throw new Error('this browser is too old: it cannot decompress data (use one of 2023 or newer)');
  const stream = new Blob([bytesOf(holder?.textContent ?? '')])
    .stream()
    .pipeThrough(new DecompressionStream('deflate'));
  const data = JSON.parse(await new Response(stream).text()) as RawPage;
  holder?.remove();
  return data;
}

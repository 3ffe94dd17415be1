"use strict";
/* Packed data is base64 of a zlib stream of JSON. `inflated` (RFC 1951) is for browsers without DecompressionStream. */
const SOURCE = document.querySelector("meta[name=source]")?.content;

/* The packed data of a name: from this page, or from the server that the page names. */
async function held(name) {
  if (!SOURCE) return document.getElementById(name).textContent;
  const answer = await fetch(`${SOURCE}&part=${name}`);
  if (!answer.ok) throw new Error(`the server has no ${name}`);
  return answer.text();
}

async function unpack(name) {
  const raw = atob((await held(name)).trim());
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  if (typeof DecompressionStream === "function") {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }
  return JSON.parse(new TextDecoder().decode(inflated(bytes.subarray(2))));
}

function inflated(data) {
  let out = new Uint8Array(Math.max(1024, data.length * 6)), size = 0, at = 0, buffer = 0, n = 0;
  const bits = (count) => {
    while (n < count) { buffer |= data[at++] << n; n += 8; }
    const value = buffer & ((1 << count) - 1);
    buffer >>>= count; n -= count;
    return value;
  };
  const put = (byte) => {
    if (size === out.length) { const more = new Uint8Array(size * 2); more.set(out); out = more; }
    out[size++] = byte;
  };
  const coded = (lengths) => {
    const counts = new Uint16Array(16), offsets = new Uint16Array(16), symbols = new Uint16Array(lengths.length);
    for (const length of lengths) counts[length]++;
    counts[0] = 0;
    for (let i = 1; i < 16; i++) offsets[i] = offsets[i - 1] + counts[i - 1];
    lengths.forEach((length, symbol) => { if (length) symbols[offsets[length]++] = symbol; });
    return { counts, symbols };
  };
  const symbol = ({ counts, symbols }) => {
    let value = 0, first = 0, index = 0;
    for (let length = 1; length < 16; length++) {
      value |= bits(1);
      const count = counts[length];
      if (value - first < count) return symbols[index + value - first];
      index += count; first = (first + count) << 1; value <<= 1;
    }
    throw new Error("damaged data");
  };
  const BASE = [3,4,5,6,7,8,9,10,11,13,15,17,19,23,27,31,35,43,51,59,67,83,99,115,131,163,195,227,258];
  const EXTRA = [0,0,0,0,0,0,0,0,1,1,1,1,2,2,2,2,3,3,3,3,4,4,4,4,5,5,5,5,0];
  const FAR = [1,2,3,4,5,7,9,13,17,25,33,49,65,97,129,193,257,385,513,769,1025,1537,2049,3073,4097,6145,8193,12289,16385,24577];
  const ORDER = [16,17,18,0,8,7,9,6,10,5,11,4,12,3,13,2,14,1,15];
  for (let last = 0; !last;) {
    last = bits(1);
    const kind = bits(2);
    if (kind === 0) {
      buffer = n = 0;
      const length = data[at] | (data[at + 1] << 8);
      at += 4;
      for (let i = 0; i < length; i++) put(data[at++]);
      continue;
    }
    let literals, distances;
    if (kind === 1) {
      literals = coded(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)));
      distances = coded(new Array(30).fill(5));
    } else {
      const nLiterals = bits(5) + 257, nDistances = bits(5) + 1, nCodes = bits(4) + 4, lengths = new Array(19).fill(0);
      for (let i = 0; i < nCodes; i++) lengths[ORDER[i]] = bits(3);
      const codes = coded(lengths), all = [];
      while (all.length < nLiterals + nDistances) {
        const s = symbol(codes);
        if (s < 16) all.push(s);
        else {
          const value = s === 16 ? all[all.length - 1] : 0, times = s === 16 ? 3 + bits(2) : s === 17 ? 3 + bits(3) : 11 + bits(7);
          for (let i = 0; i < times; i++) all.push(value);
        }
      }
      literals = coded(all.slice(0, nLiterals));
      distances = coded(all.slice(nLiterals));
    }
    for (let s = symbol(literals); s !== 256; s = symbol(literals)) {
      if (s < 256) { put(s); continue; }
      const length = BASE[s - 257] + bits(EXTRA[s - 257]), d = symbol(distances);
      const from = size - FAR[d] - bits(d < 2 ? 0 : (d >> 1) - 1);
      for (let i = 0; i < length; i++) put(out[from + i]);
    }
  }
  return out.subarray(0, size);
}

// As much of the protocol-buffers encoding as writing an ONNX model takes.

/** A message from its fields: [number, value] with a number (varint), a string, bytes, or a nested list of fields. */
export function message(fields) {
  const parts = [];
  for (const [number, value] of fields) {
    if (typeof value === 'number' || typeof value === 'bigint') {
      parts.push(varint(number * 8), varint(value));
      continue;
    }
    const bytes =
      typeof value === 'string'
        ? Buffer.from(value)
        : Array.isArray(value)
          ? message(value)
          : value;
    parts.push(varint(number * 8 + 2), varint(bytes.length), bytes);
  }
  return Buffer.concat(parts);
}

function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest > 0n ? low | 0x80 : low);
  } while (rest > 0n);
  return Buffer.from(bytes);
}

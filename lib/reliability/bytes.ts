import { endianness } from 'node:os';

// The files are little-endian, as nearly every machine is: floats are then copied as they lie.
const littleEndian = endianness() === 'LE';

/** Little-endian writing into a growing buffer. */
export class ByteWriter {
  #buffer: Buffer;
  #size = 0;

  constructor(capacity = 256) {
    this.#buffer = Buffer.allocUnsafe(capacity);
  }

  get size(): number {
    return this.#size;
  }

  u8(value: number): this {
    this.#size = this.#room(1).writeUInt8(value, this.#size);
    return this;
  }

  u32(value: number): this {
    this.#size = this.#room(4).writeUInt32LE(value, this.#size);
    return this;
  }

  u64(value: number): this {
    return this.u32(value % 2 ** 32).u32(Math.floor(value / 2 ** 32));
  }

  f32(value: number): this {
    this.#size = this.#room(4).writeFloatLE(value, this.#size);
    return this;
  }

  f64(value: number): this {
    this.#size = this.#room(8).writeDoubleLE(value, this.#size);
    return this;
  }

  bytes(value: Uint8Array): this {
    this.#room(value.byteLength).set(value, this.#size);
    this.#size += value.byteLength;
    return this;
  }

  /** A u32 of the UTF-8 length, then the bytes. */
  string(value: string): this {
    const length = Buffer.byteLength(value);
    this.u32(length);
    this.#room(length).write(value, this.#size, 'utf8');
    this.#size += length;
    return this;
  }

  floats(values: Float32Array): this {
    if (littleEndian) {
      return this.bytes(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    }
    for (const value of values) this.f32(value);
    return this;
  }

  /** What was written: a view that later writes leave alone only if they need no more room. */
  done(): Buffer {
    return this.#buffer.subarray(0, this.#size);
  }

  #room(bytes: number): Buffer {
    const need = this.#size + bytes;
    if (need > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.max(need, this.#buffer.length * 2));
      this.#buffer.copy(grown, 0, 0, this.#size);
      this.#buffer = grown;
    }
    return this.#buffer;
  }
}

/** Reading what {@link ByteWriter} wrote; a read past the end throws RangeError, which callers turn into FINCH_CORRUPT. */
export class ByteReader {
  readonly #buffer: Buffer;
  #offset: number;

  constructor(buffer: Buffer, offset = 0) {
    this.#buffer = buffer;
    this.#offset = offset;
  }

  get offset(): number {
    return this.#offset;
  }

  get left(): number {
    return this.#buffer.length - this.#offset;
  }

  u8(): number {
    return this.#buffer.readUInt8(this.#take(1));
  }

  u32(): number {
    return this.#buffer.readUInt32LE(this.#take(4));
  }

  u64(): number {
    return this.u32() + this.u32() * 2 ** 32;
  }

  f32(): number {
    return this.#buffer.readFloatLE(this.#take(4));
  }

  f64(): number {
    return this.#buffer.readDoubleLE(this.#take(8));
  }

  /** A view, not a copy. */
  bytes(length: number): Buffer {
    const from = this.#take(length);
    return this.#buffer.subarray(from, from + length);
  }

  string(): string {
    return this.bytes(this.u32()).toString('utf8');
  }

  floats(length: number): Float32Array {
    let from = this.#take(length * 4);
    const values = new Float32Array(length);
    if (littleEndian) {
      new Uint8Array(values.buffer).set(this.#buffer.subarray(from, from + length * 4));
      return values;
    }
    for (let i = 0; i < length; i++, from += 4) values[i] = this.#buffer.readFloatLE(from);
    return values;
  }

  #take(bytes: number): number {
    const from = this.#offset;
    if (bytes > this.left)
      throw new RangeError(`${bytes} bytes expected at ${from}, ${this.left} left`);
    this.#offset = from + bytes;
    return from;
  }
}

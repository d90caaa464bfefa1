import { FinchError } from '../../errors.js';
import { reasonOf } from '../files.js';
import { typeOfKey } from './keys.js';
import type { Script } from './scripts.js';

/**
 * How Redis is reached: the options of the official client's `createClient`, handed on as they are. Named here are the
 * usual ones. Reconnecting, queueing and the protocol version are set by the library.
 */
export interface RedisOptions {
  /** `redis[s]://[[username][:password]@][host][:port][/database]`; `rediss` is TLS. */
  readonly url?: string | undefined;
  /** The ACL user. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly database?: number | undefined;
  /** `host`, `port`, `path`, `connectTimeout`, and with `tls: true` the options of `tls.connect` (`ca`, `cert`, `key`, `servername`). */
  readonly socket?: Readonly<Record<string, unknown>> | undefined;
  readonly [option: string]: unknown;
}

/** A reply, its strings as bytes. */
export type Reply = Buffer | number | null | Reply[];

interface Client {
  on(event: 'error', listener: (error: Error) => void): unknown;
  connect(): Promise<unknown>;
  sendCommand(args: Array<string | Buffer>, options?: object): Promise<unknown>;
  destroy(): void;
  readonly isOpen: boolean;
}

/** The official client, loaded when first needed: it is an optional peer dependency. */
async function loadClient() {
  try {
    return await import('redis');
  } catch (cause) {
    throw new FinchError(
      'FINCH_DEVICE',
      'replicas meet in Redis through its official client, which is not installed (or cannot be loaded); install it ' +
        'with: npm install redis',
      { cause },
    );
  }
}

/** Fails early where the client is missing. @throws FinchError FINCH_DEVICE */
export async function needClient(): Promise<void> {
  await loadClient();
}

/** Where a cluster said that the keys are. */
export interface Address {
  host: string;
  port: number;
}

function clientOptions(redis: RedisOptions, address: Address | undefined): object {
  const { url, ...rest } = redis;
  const socket: Record<string, unknown> = { ...rest.socket, reconnectStrategy: false };
  const options: Record<string, unknown> = {
    disableClientInfo: true,
    maintNotifications: 'disabled',
    ...rest,
    socket,
    RESP: 2,
    disableOfflineQueue: true,
  };
  if (url === undefined) {
    if (address !== undefined) Object.assign(socket, address);
    return options;
  }
  if (address === undefined) return { ...options, url };
  const moved = new URL(url);
  moved.hostname = address.host.includes(':') ? `[${address.host}]` : address.host;
  moved.port = String(address.port);
  return { ...options, url: moved.href };
}

/** One connection. It does not reconnect: whoever made it makes another. */
export class RedisLink {
  readonly #client: Client;
  readonly #typeMapping: object;
  readonly #timeoutMs: number;
  #failure: Error | undefined;
  readonly #onFailure: Array<(error: Error) => void> = [];

  private constructor(client: Client, typeMapping: object, timeoutMs: number) {
    this.#client = client;
    this.#typeMapping = typeMapping;
    this.#timeoutMs = timeoutMs;
    client.on('error', (error) => this.#fail(error));
  }

  /** @throws what the client throws, and FinchError FINCH_DEVICE (no client), FINCH_IO (no answer in time). */
  static async connect(
    redis: RedisOptions,
    timeoutMs: number,
    address: Address | undefined,
    signal: AbortSignal,
  ): Promise<RedisLink> {
    const { createClient, RESP_TYPES } = await loadClient();
    let client: Client;
    try {
      client = createClient(clientOptions(redis, address)) as unknown as Client;
    } catch (cause) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `options.redis was refused by the Redis client: ${reasonOf(cause)}; expected the options of its createClient`,
        { cause },
      );
    }
    const link = new RedisLink(client, { [RESP_TYPES.BLOB_STRING]: Buffer }, timeoutMs);
    const stop = () => link.destroy();
    signal.addEventListener('abort', stop, { once: true });
    try {
      if (signal.aborted) throw new Error('the connection was closed');
      await Promise.race([link.#inTime(client.connect(), timeoutMs, 'connecting'), link.ended()]);
    } catch (error) {
      link.destroy();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
    return link;
  }

  get isDestroyed(): boolean {
    return this.#failure !== undefined;
  }

  /** Rejects when the connection ends, and never resolves. */
  ended(): Promise<never> {
    return new Promise((_, reject) => {
      if (this.#failure !== undefined) reject(this.#failure);
      else this.#onFailure.push(reject);
    });
  }

  /** Sends a command; without an answer within the time limit (and `extraMs`) the connection is given up. */
  async command(args: Array<string | Buffer>, extraMs = 0): Promise<Reply> {
    const reply = this.#client.sendCommand(args, { typeMapping: this.#typeMapping });
    try {
      return (await this.#inTime(reply, this.#timeoutMs + extraMs, String(args[0]))) as Reply;
    } catch (error) {
      if (!reasonOf(error).startsWith('WRONGTYPE')) throw error;
      throw await this.#wrongType(keysOf(args), error);
    }
  }

  /** Redis does not say which key it is that holds something else: the keys are asked. */
  async #wrongType(keys: readonly string[], cause: unknown): Promise<FinchError> {
    const found: string[] = [];
    for (const key of keys) {
      const type = text(await this.command(['TYPE', key]));
      if (type !== 'none' && type !== typeOfKey(key))
        found.push(`${key} is a ${type}, expected a ${typeOfKey(key)}`);
    }
    const what = found.length > 0 ? found.join('; ') : `one of ${keys.join(', ')} has another type`;
    return new FinchError(
      'FINCH_CORRUPT',
      `Redis holds what no replica wrote: ${what}. Delete or rename it, or give the replicas another prefix or catalogue`,
      { cause },
    );
  }

  async script(
    { sha, text }: Script,
    keys: readonly string[],
    args: ReadonlyArray<string | Buffer>,
  ): Promise<Reply> {
    const rest = [String(keys.length), ...keys, ...args];
    try {
      return await this.command(['EVALSHA', sha, ...rest]);
    } catch (error) {
      if (!reasonOf(error).startsWith('NOSCRIPT')) throw error;
      return this.command(['EVAL', text, ...rest]);
    }
  }

  destroy(): void {
    this.#fail(new Error('the connection was closed'));
    try {
      if (this.#client.isOpen) this.#client.destroy();
    } catch {
      // Closed already.
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const reject of this.#onFailure.splice(0)) reject(error);
  }

  async #inTime<T>(work: Promise<T>, timeoutMs: number, what: string): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = new FinchError(
          'FINCH_IO',
          `Redis gave no answer to ${what} in ${timeoutMs} ms`,
        );
        reject(error);
        this.#fail(error);
        this.destroy();
      }, timeoutMs);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The keys of a command: of a script all it names, of XREAD the first behind STREAMS, of others the first argument. */
function keysOf(args: ReadonlyArray<string | Buffer>): string[] {
  const [name, ...rest] = args.map(String);
  if (name === 'EVAL' || name === 'EVALSHA') return rest.slice(2, 2 + Number(rest[1]));
  const streams = rest.indexOf('STREAMS');
  return rest.slice(streams + 1, streams + 2);
}

/** The texts of a reply that is a list. */
export function texts(reply: Reply): string[] {
  if (!Array.isArray(reply)) throw new TypeError('Redis gave no list where one is due');
  return reply.map(text);
}

export function text(reply: Reply | undefined): string {
  if (Buffer.isBuffer(reply)) return reply.toString('utf8');
  return reply === null || reply === undefined ? '' : String(reply);
}

/** Where a cluster says that a slot is, from its error. */
export function movedTo(error: unknown): Address | undefined {
  const match = /^MOVED \d+ (.*):(\d+)$/.exec(reasonOf(error));
  if (match === null || match[1] === '') return undefined;
  return { host: match[1] as string, port: Number(match[2]) };
}

/**
 * JSON endpoints over HTTP, for encoders and rerankers: retries, timeouts, turns, and errors that tell no secret.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { kindOf } from './describe-value.js';
import { FinchError } from './errors.js';

/** `fetch`, or what does as it does. */
export type Fetch = (url: URL, init: RequestInit) => Promise<Response>;

export interface HttpLimits {
  /** Requests at a time. */
  maxConcurrency: number;
  /** Milliseconds for one try, headers and body. */
  timeoutMs: number;
  /** Milliseconds for a whole call: what messages name. */
  deadlineMs: number;
  /** Further tries after the first. */
  retries: number;
  /** First wait before a retry, doubled each time, with jitter. */
  backoffMs: number;
  maxResponseBytes: number;
}

export interface HttpEndpointOptions {
  /** What is asked for, such as `embeddings`: begins every message. */
  what: string;
  /** `https://host`, `https://host/v1` or the whole path; no user or password. Its query string appears in no error. */
  baseUrl: string;
  /** Last part of the path, such as `embeddings`. */
  path: string;
  apiKey?: string | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  limits: HttpLimits;
  fetch?: Fetch | undefined;
}

/** Milliseconds between two tries at most. */
export const longestBackoff = 8000;
const retried = new Set([
  408, 409, 425, 429, 500, 502, 503, 504, 507, 520, 521, 522, 523, 524, 529,
]);

/** Why a try failed, whether another may help, and how long the endpoint asks to wait. */
interface Failure {
  error: FinchError;
  retry: boolean;
  after?: number | undefined;
}

/** A reply that came whole and was well-formed HTTP, but cannot be used; asking again may help (`retry`). */
export class BadReply extends Error {
  readonly retry: boolean;
  readonly error: FinchError;

  constructor(error: FinchError, retry: boolean) {
    super(error.message);
    this.error = error;
    this.retry = retry;
  }
}

/** Reads a body as UTF-8, no further than `maxBytes`. */
export async function readBody(
  response: Response,
  maxBytes: number,
): Promise<{ text: string; whole: boolean }> {
  if (response.body === null) return { text: '', whole: true };
  const reader = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { text: Buffer.concat(chunks).toString('utf8'), whole: true };
    chunks.push(value);
    size += value.byteLength;
    if (size > maxBytes) {
      await reader.cancel().catch(() => undefined);
      return { text: Buffer.concat(chunks).subarray(0, maxBytes).toString('utf8'), whole: false };
    }
  }
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((left, secret) => left.replaceAll(secret, '***'), text);
}

/** Whether an error, or one that caused it, tells a secret in its text. */
function holdsSecret(error: unknown, secrets: readonly string[]): boolean {
  if (secrets.length === 0 || error === undefined) return false;
  const text = inspect(error, {
    depth: 8,
    maxStringLength: null,
    breakLength: Number.POSITIVE_INFINITY,
  });
  return secrets.some((secret) => text.includes(secret));
}

/**
 * What must appear in no message: the key, the headers' values, the credentials of an `Authorization` by themselves, and the
 * values of the query string, as written and decoded. The longest first: one may be part of another.
 */
function secretsOf(
  apiKey: string | undefined,
  headers: Readonly<Record<string, string>> | undefined,
  url: URL,
): string[] {
  const given = [apiKey ?? '', ...Object.values(headers ?? {})];
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (/authorization$/i.test(name)) given.push(value.trim().split(/\s+/).at(-1) as string);
  }
  for (const part of url.search.slice(1).split('&')) given.push(part.slice(part.indexOf('=') + 1));
  given.push(...url.searchParams.values());
  return [...new Set(given)]
    .filter((value) => value.length > 3)
    .sort((a, b) => b.length - a.length);
}

/** A body made fit for an error message: one line, at most 200 characters, without the secrets. */
export function excerpt(body: string, secrets: readonly string[]): string {
  const text = withoutSecrets(body, secrets).replace(/\s+/g, ' ').trim();
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** A reply as JSON. @throws BadReply with FINCH_CORRUPT */
export function parseReply(text: string, secrets: readonly string[]): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // Cut or garbled on the way, or an error page: the same request may go through.
    throw new BadReply(
      new FinchError(
        'FINCH_CORRUPT',
        `the reply is not JSON (cut short, NaN, or an error page): ${excerpt(text, secrets)}`,
        { cause },
      ),
      true,
    );
  }
}

/** `Retry-After` in milliseconds from `now`: seconds or an HTTP date; undefined when absent or neither. */
export function retryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** A number's default and range, such as those of {@link HttpLimits}. */
export interface NumberRange {
  readonly fallback: number;
  readonly least: number;
  readonly most: number;
}

/** The numbers of `ranges` that `options` gives, or their defaults; FINCH_INVALID_ARGUMENT outside a range. */
export function numbersOf<Name extends string>(
  ranges: Readonly<Record<Name, NumberRange>>,
  options: Readonly<Partial<Record<NoInfer<Name>, number | undefined>>>,
): Record<Name, number> {
  const taken = {} as Record<Name, number>;
  for (const name of Object.keys(ranges) as Name[]) {
    const { fallback, least, most } = ranges[name];
    // Only what is left out has a default: null is no number.
    const value = options[name] === undefined ? fallback : options[name];
    if (!Number.isInteger(value) || value < least || value > most) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${name} is ${kindOf(value)}; expected a whole number from ${least} to ${most}`,
      );
    }
    taken[name] = value;
  }
  return taken;
}

/** One address that is asked by POST, JSON in and out. */
export class HttpEndpoint {
  /** What must appear in no message. */
  readonly secrets: readonly string[];
  readonly #options: HttpEndpointOptions;
  readonly #url: URL;
  readonly #headers: Headers;
  readonly #fetch: Fetch;
  readonly #waiting: Array<() => void> = [];
  #running = 0;

  /** @throws FinchError FINCH_INVALID_ARGUMENT, which repeats no key */
  constructor(options: HttpEndpointOptions) {
    const { apiKey, headers } = options;
    checkSecrets(apiKey, headers);
    this.#options = options;
    this.#url = endpointOf(options.baseUrl, options.path);
    this.#fetch = options.fetch ?? fetch;
    this.secrets = secretsOf(apiKey, headers, this.#url);
    try {
      this.#headers = new Headers({ ...headers, 'content-type': 'application/json' });
      if (apiKey !== undefined) this.#headers.set('authorization', `Bearer ${apiKey}`);
    } catch {
      // The cause would repeat the value, which may be a key.
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        'apiKey or headers hold a character that HTTP headers cannot carry (a line break?)',
      );
    }
    this.#headers.set('accept', 'application/json');
  }

  get host(): string {
    return this.#url.host;
  }

  /**
   * Sends `body` as JSON and gives what `parse` makes of the reply's text; tries again where that may help.
   *
   * @param parse throws {@link BadReply} for a reply that cannot be used
   * @param deadline milliseconds since the epoch, for all tries and waits
   * @throws FinchError FINCH_IO (network, status, time), FINCH_CORRUPT (cut short, too long), FINCH_ABORTED, and what
   *   `parse` refuses
   */
  async post<T>(
    body: object,
    parse: (text: string) => T,
    stop: AbortSignal,
    deadline: number,
  ): Promise<T> {
    await this.#takeTurn(stop);
    try {
      const text = JSON.stringify(body);
      const { retries, backoffMs, deadlineMs } = this.#options.limits;
      for (let attempt = 0; ; attempt++) {
        if (stop.aborted) throw new FinchError('FINCH_ABORTED', 'the request was stopped');
        const left = deadline - Date.now();
        if (left <= 0) throw this.#error(`no answer within deadlineMs (${deadlineMs} ms)`);
        const answer = await this.#try(text, parse, stop, left);
        if ('value' in answer) return answer.value;
        const failure = answer;
        if (stop.aborted || !failure.retry || attempt >= retries) {
          throw attempt === 0 ? failure.error : afterTries(failure.error, attempt + 1);
        }
        // Full jitter: clients that failed together come back apart.
        const backoff = Math.min(longestBackoff, backoffMs * 2 ** attempt);
        const wait = failure.after ?? backoff * (0.5 + 0.5 * Math.random());
        if (Date.now() + wait >= deadline) {
          throw afterTries(
            failure.error,
            attempt + 1,
            `; waiting ${Math.round(wait)} ms more would pass deadlineMs (${deadlineMs} ms)`,
          );
        }
        await sleep(wait, undefined, { signal: stop }).catch(() => undefined);
      }
    } finally {
      this.#endTurn();
    }
  }

  async #takeTurn(stop: AbortSignal): Promise<void> {
    if (this.#running < this.#options.limits.maxConcurrency) {
      this.#running++;
      return;
    }
    // Whoever ends a turn hands it on, so `running` does not change in between.
    await new Promise<void>((resolve, reject) => {
      const take = () => {
        stop.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        reject(new FinchError('FINCH_ABORTED', 'the request was stopped'));
      };
      this.#waiting.push(take);
      if (stop.aborted) leave();
      else stop.addEventListener('abort', leave, { once: true });
    });
  }

  #endTurn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running--;
    else next();
  }

  async #try<T>(
    body: string,
    parse: (text: string) => T,
    stop: AbortSignal,
    left: number,
  ): Promise<{ value: T } | Failure> {
    const { timeoutMs, maxResponseBytes } = this.#options.limits;
    const time = Math.min(timeoutMs, left);
    const controller = new AbortController();
    const onStop = () => controller.abort();
    stop.addEventListener('abort', onStop, { once: true });
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      controller.abort();
    }, time);
    // A fetch of the caller's may not heed its signal: it is then left to settle unheard.
    const stopped = new Promise<never>((_, reject) => {
      const leave = () => reject(controller.signal.reason);
      controller.signal.addEventListener('abort', leave, { once: true });
    });
    const unlessStopped = <T>(work: Promise<T>) => Promise.race([work, stopped]);
    let response: Response | undefined;
    try {
      response = await unlessStopped(
        this.#fetch(this.#url, {
          method: 'POST',
          headers: this.#headers,
          // A redirect would carry the headers, keys among them, to a host that nobody named.
          redirect: 'manual',
          signal: controller.signal,
          body,
        }),
      );
      if (!response.ok) return await unlessStopped(this.#refusal(response));
      const { text, whole } = await unlessStopped(readBody(response, maxResponseBytes));
      if (!whole) {
        const error = this.#error(
          `the reply is longer than maxResponseBytes (${maxResponseBytes})`,
          'FINCH_CORRUPT',
        );
        return { error, retry: false };
      }
      return { value: parse(text) };
    } catch (cause) {
      if (cause instanceof BadReply) {
        return {
          error: this.#error(cause.error.message, cause.error.code, cause.error.cause),
          retry: cause.retry,
        };
      }
      if (stop.aborted) {
        return { error: new FinchError('FINCH_ABORTED', 'the request was stopped'), retry: false };
      }
      if (timedOut) {
        const part = response === undefined ? 'no answer' : 'the reply was not complete';
        return { error: this.#error(`${part} within ${time} ms`), retry: true };
      }
      if (response !== undefined) {
        const error = this.#error(
          `the reply broke off (${reasonOf(cause)})`,
          'FINCH_CORRUPT',
          cause,
        );
        return { error, retry: true };
      }
      return {
        error: this.#error(`no connection (${reasonOf(cause)})`, 'FINCH_IO', cause),
        retry: true,
      };
    } finally {
      clearTimeout(timer);
      stop.removeEventListener('abort', onStop);
    }
  }

  async #refusal(response: Response): Promise<Failure> {
    const { status } = response;
    const location = response.headers.get('location');
    if (status >= 300 && status < 400 && location !== null) {
      await response.body?.cancel();
      const error = this.#error(
        `status ${status}, a redirect to ${this.#placeOf(location)}; set baseUrl to the final address`,
      );
      return { error, retry: false };
    }
    const { text } = await readBody(response, 4096);
    const advice =
      status === 401 || status === 403
        ? '. Check apiKey'
        : status === 404
          ? '. Check baseUrl and model'
          : '';
    const body = excerpt(text, this.secrets);
    return {
      error: this.#error(`status ${status}${body === '' ? '' : `: ${body}`}${advice}`),
      retry: retried.has(status),
      after: retryAfter(response.headers.get('retry-after'), Date.now()),
    };
  }

  /** Where a redirect goes, without what may be a key: user, password, query string. */
  #placeOf(location: string): string {
    if (!URL.canParse(location, this.#url.href)) return 'no URL';
    const url = new URL(location, this.#url);
    return excerpt(`${url.origin}${url.pathname}`, this.secrets);
  }

  #error(message: string, code: FinchError['code'] = 'FINCH_IO', cause?: unknown): FinchError {
    // The query string may hold a key: only the path is shown.
    const place = `${this.#url.origin}${this.#url.pathname}`;
    const told = withoutSecrets(message, this.secrets);
    // A cause is printed with its error: one that holds a secret is left out.
    const safe = holdsSecret(cause, this.secrets) ? undefined : cause;
    return new FinchError(code, `${this.#options.what} from ${place}: ${told}`, { cause: safe });
  }
}

function afterTries(error: FinchError, tries: number, more = ''): FinchError {
  const note = `${more} (${tries} ${tries === 1 ? 'try' : 'tries'})`;
  return new FinchError(error.code, `${error.message}${note}`, { cause: error.cause });
}

function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown; message?: unknown } };
  const inner = cause?.code ?? cause?.message;
  return typeof inner === 'string' ? inner : error instanceof Error ? error.message : String(error);
}

function checkSecrets(apiKey: unknown, headers: unknown): void {
  const isTable = typeof headers === 'object' && headers !== null;
  const areStrings = isTable && Object.values(headers).every((value) => typeof value === 'string');
  if (
    (apiKey !== undefined && typeof apiKey !== 'string') ||
    (headers !== undefined && !areStrings)
  ) {
    // What they hold may be a secret: it is not repeated.
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      'apiKey or headers are of another type; expected a string, and an object of strings',
    );
  }
}

function endpointOf(baseUrl: string, last: string): URL {
  let url: URL;
  try {
    url = new URL(baseUrl);
  } catch {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      'baseUrl is not a URL; expected one such as https://host/v1',
    );
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      // What stands before the first colon may be a user's name.
      'baseUrl begins with neither http: nor https:; expected a URL such as https://host/v1',
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      'baseUrl holds a user name or password; give them by apiKey or headers',
    );
  }
  const path = url.pathname.replace(/\/+$/, '');
  if (path === '') url.pathname = `/v1/${last}`;
  else url.pathname = path.endsWith(`/${last}`) ? path : `${path}/${last}`;
  url.hash = '';
  return url;
}

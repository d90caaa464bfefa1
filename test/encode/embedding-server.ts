import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { vectorOf } from './fake-encoder.js';

export interface EmbeddingRequest {
  path: string;
  headers: IncomingMessage['headers'];
  body: { model: string; input: string[]; dimensions?: number; encoding_format?: string };
}

export type Behaviour = (
  request: EmbeddingRequest,
  response: ServerResponse,
  socket: Socket,
) => void | Promise<void>;

/** The reply of an endpoint in order. */
export function reply(request: EmbeddingRequest, dimension = 8): { data: Array<object> } {
  const { input, encoding_format } = request.body;
  return {
    data: input.map((text, index) => {
      const row = vectorOf(text, dimension).map((value) => value * 3);
      const embedding =
        encoding_format === 'base64' ? Buffer.from(row.buffer).toString('base64') : [...row];
      return { object: 'embedding', index, embedding };
    }),
  };
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

export const behave: Behaviour = (request, response) => sendJson(response, reply(request));

/** A real embeddings endpoint on the loopback, which behaves as told: one entry per request, then well. */
export class EmbeddingServer implements AsyncDisposable {
  readonly requests: EmbeddingRequest[] = [];
  readonly times: number[] = [];
  script: Behaviour[] = [];
  always: Behaviour = behave;
  concurrent = 0;
  mostConcurrent = 0;
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch(() => response.destroy());
  });

  static async start(): Promise<EmbeddingServer> {
    const server = new EmbeddingServer();
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.times.push(performance.now());
    this.concurrent++;
    this.mostConcurrent = Math.max(this.mostConcurrent, this.concurrent);
    response.on('close', () => {
      this.concurrent--;
    });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const seen: EmbeddingRequest = {
      path: request.url ?? '',
      headers: request.headers,
      body: JSON.parse(Buffer.concat(chunks).toString()) as EmbeddingRequest['body'],
    };
    this.requests.push(seen);
    await (this.script.shift() ?? this.always)(seen, response, request.socket);
  }
}

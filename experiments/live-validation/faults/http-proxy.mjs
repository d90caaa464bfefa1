import { once } from 'node:events';
import { createServer, request as forward } from 'node:http';
import { spoils, spoilt } from './fault.mjs';

/**
 * A gateway in front of one HTTP server: a port that stays while the process behind it comes and goes, a check of the
 * client's token, and the faults.
 */
export class HttpProxy {
  /** Port of the process behind; 0 while there is none. */
  upstream = 0;
  /** The token that is accepted. */
  token = 'first';
  /** @type {import('./fault.mjs').Fault | null} */
  fault = null;
  #server = createServer((request, response) => {
    this.#handle(request, response).catch(() => response.destroy());
  });

  /** @returns {Promise<string>} the gateway's address */
  async listen() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const { port } = /** @type {import('node:net').AddressInfo} */ (this.#server.address());
    return `http://127.0.0.1:${port}`;
  }

  /** @returns {Promise<void>} */
  async close() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(() => resolve(undefined)));
  }

  /**
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:http').ServerResponse} response
   */
  async #handle(request, response) {
    const fault = this.fault;
    const body = await text(request);
    const accepted = fault?.kind === 'token' ? `${this.token}, renewed` : this.token;
    if (request.headers.authorization !== `Bearer ${accepted}`) {
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end('{"error":"the access token has expired"}');
      return;
    }
    if (fault?.kind === 'errors') {
      response.writeHead(500).end('internal error');
      return;
    }
    const answer = await this.#ask(request, response, body);
    if (fault?.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
    const wrong = spoils(fault, argumentsOf(request, body));
    response.writeHead(answer.status, { 'content-type': answer.type });
    response.end(wrong ? spoiltText(answer.text) : answer.text);
  }

  /**
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:http').ServerResponse} response
   * @param {string} body
   * @returns {Promise<{ status: number, type: string, text: string }>}
   */
  #ask(request, response, body) {
    return new Promise((resolve, reject) => {
      const { host: _, ...headers } = request.headers;
      const asked = forward(
        {
          host: '127.0.0.1',
          port: this.upstream,
          method: request.method,
          path: request.url,
          headers,
          agent: false,
        },
        (answer) => {
          text(answer).then(
            (read) =>
              resolve({
                status: answer.statusCode ?? 502,
                type: answer.headers['content-type'] ?? 'application/json',
                text: read,
              }),
            reject,
          );
        },
      );
      asked.on('error', reject);
      // The client has given up: the process behind need not go on.
      response.once('close', () => asked.destroy());
      asked.end(body);
    });
  }
}

/** @param {AsyncIterable<Buffer>} stream */
async function text(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * What a tool was called with: of a JSON-RPC call its arguments, of a plain request its address and body.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {string} body
 */
function argumentsOf(request, body) {
  const message = body === '' ? undefined : JSON.parse(body);
  if (message?.jsonrpc === undefined) return [decodeURIComponent(request.url ?? ''), message];
  return message.method === 'tools/call' ? message.params?.arguments : undefined;
}

/** @param {string} answer */
function spoiltText(answer) {
  const message = JSON.parse(answer);
  return message.jsonrpc === undefined ? 'null' : JSON.stringify(spoilt(message));
}

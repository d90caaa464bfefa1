import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

// Below what systems give to outgoing connections (from 32768 on Linux): such a connection could take a port between the
// look and its use, and a client that tries one of those ports again and again in the end connects to itself.
const first = 20_000;
const end = 32_768;
const given = new Set();

/** A port of 127.0.0.1 at which nobody listens; each only once in a process. */
export async function freePort() {
  for (;;) {
    const port = randomInt(first, end);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/**
 * Listens on a free port of the loopback interface, says which on standard output, and ends the process with its input.
 *
 * @param {import('node:http').Server} server
 * @returns {Promise<void>}
 */
export function listen(server) {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      process.stdout.write(`${JSON.stringify({ port })}\n`);
      process.stdin.on('end', () => process.exit(0)).resume();
      resolve();
    });
  });
}

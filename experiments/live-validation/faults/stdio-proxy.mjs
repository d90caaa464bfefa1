// Stands between an MCP client and a server on standard streams: `node stdio-proxy.mjs COMMAND ARGS…`. Faults are switched on
// and off at run time over a connection to FAULT_CONTROL_PORT, one JSON value a line. Whatever ends first (the client's
// stream, the server, the control connection) ends the others: nothing is orphaned, whoever is killed.
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { spoils, spoilt } from './fault.mjs';

const [command = '', ...args] = process.argv.slice(2);
const { FAULT_CONTROL_PORT, FAULT_SERVER, ...env } = process.env;
const server = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'ignore'] });

/** @type {import('./fault.mjs').Fault | null} */
let fault = null;
/** Ids of calls whose answers are to be spoilt. */
const spoiling = new Set();

const control = connect(Number(FAULT_CONTROL_PORT), '127.0.0.1');
control.on('connect', () => tell({ server: FAULT_SERVER, pid: server.pid }));
control.on('error', end);
control.on('close', end);
createInterface({ input: control }).on('line', (line) => {
  const next = JSON.parse(line);
  if (fault?.kind === 'hang') server.kill('SIGCONT');
  if (next?.kind === 'hang') server.kill('SIGSTOP');
  fault = next;
  tell({ fault: fault?.kind ?? null });
  if (fault?.kind === 'crash') server.kill('SIGKILL');
});

server.on('error', end);
// Answers already on their way reach the client before its stream ends.
server.on('close', end);
server.stdin.on('error', () => undefined);
process.stdin.on('end', end);

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  const refusal = message.method === 'tools/call' ? refuse() : undefined;
  if (refusal !== undefined) {
    reply({ jsonrpc: '2.0', id: message.id, error: refusal });
    return;
  }
  if (message.method === 'tools/call' && spoils(fault, message.params?.arguments)) {
    spoiling.add(message.id);
  }
  server.stdin.write(`${line}\n`);
});

createInterface({ input: server.stdout }).on('line', (line) => {
  const message = JSON.parse(line);
  reply(spoiling.delete(message.id) ? spoilt(message) : message);
});

function refuse() {
  switch (fault?.kind) {
    case 'errors':
      return { code: -32603, message: 'Internal error: 500 from the service behind' };
    case 'token':
      return { code: -32001, message: 'Unauthorized: the access token has expired' };
    default:
      return undefined;
  }
}

/** @param {object} message */
function reply(message) {
  const send = () => process.stdout.write(`${JSON.stringify(message)}\n`);
  if (fault?.kind === 'slow') setTimeout(send, fault.delayMs);
  else send();
}

/** @param {object} message */
function tell(message) {
  control.write(`${JSON.stringify(message)}\n`);
}

function end() {
  server.kill('SIGKILL');
  process.exit();
}

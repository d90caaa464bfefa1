import { describe, expect, it } from 'vitest';
import { expandMcpServer, readMcpConfig } from '../../lib/catalog/index.js';
import { refused } from './fixture.js';

const text = `{
  // What hosts write: comments and trailing commas too.
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "server // not a comment", "\${ROOT:-/srv},]"], "env": { "LEVEL": 3, "KEY": "\${API_KEY}" }, "cwd": "\${HOME}/x" },
    "remote": { "type": "streamable-http", "url": "https://\${HOST}/mcp", "headers": { "Authorization": "Bearer \${env:TOKEN}" } },
    "old": { "type": "sse", "url": "http://localhost:1/sse" },
    "either": { "url": "http://localhost:1/mcp" },
    "off": { "command": "x", "disabled": true },
    "off2": { "url": "http://x", "enabled": false }, /* the
    end */
  },
}`;

describe('readMcpConfig', () => {
  it("reads the hosts' format", () => {
    const { servers, disabled } = readMcpConfig(text);
    expect([...servers.keys()]).toEqual(['files', 'remote', 'old', 'either']);
    expect(disabled).toEqual(['off', 'off2']);
    expect([...servers.values()].map((server) => server.type)).toEqual([
      'stdio',
      'http',
      'sse',
      'auto',
    ]);
    expect(servers.get('files')).toMatchObject({ env: { LEVEL: '3', KEY: `\${API_KEY}` } });
  });

  it("reads VS Code's format", () => {
    expect(readMcpConfig('{"servers":{"a":{"type":"stdio","command":"x"}}}').servers.size).toBe(1);
    expect(readMcpConfig('{"mcp":{"servers":{"a":{"command":"x"}}}}').servers.size).toBe(1);
  });

  it('fills in variables when a server is wanted', () => {
    const { servers } = readMcpConfig(text);
    const [files, remote] = [servers.get('files'), servers.get('remote')];
    if (files === undefined || remote === undefined) throw new Error('unreachable');
    const environment = { API_KEY: `k\${HOST}`, HOST: 'h', TOKEN: 't', HOME: '/home/me' };
    expect(expandMcpServer('files', files, environment)).toEqual({
      type: 'stdio',
      command: 'npx',
      args: ['-y', 'server // not a comment', '/srv,]'],
      env: { LEVEL: '3', KEY: `k\${HOST}` },
      cwd: '/home/me/x',
    });
    expect(expandMcpServer('remote', remote, environment)).toMatchObject({
      url: 'https://h/mcp',
      headers: { Authorization: 'Bearer t' },
    });
    refused(
      () => expandMcpServer('files', files, { HOME: '' }),
      'FINCH_INVALID_ARGUMENT',
      "'files'",
      'API_KEY',
    );
    refused(
      () => expandMcpServer('remote', remote, { HOST: 'h' }),
      'FINCH_INVALID_ARGUMENT',
      'TOKEN',
    );
    const editor = { type: 'stdio', command: `\${input:key}`, args: [], env: {} } as const;
    refused(
      () => expandMcpServer('e', editor, {}),
      'FINCH_INVALID_ARGUMENT',
      `\${input:key}`,
      'editor',
    );
    const inherited = { type: 'stdio', command: `\${constructor}`, args: [], env: {} } as const;
    refused(() => expandMcpServer('e', inherited, {}), 'FINCH_INVALID_ARGUMENT', 'constructor');
  });

  // Each took time that grows with the square of its length, minutes at this one.
  it('takes long texts of one mark', () => {
    for (const mark of [`\\"`, '"', '/*', '/', ', ', '{"', '\\']) {
      refused(() => readMcpConfig(mark.repeat(4e5)), 'FINCH_INVALID_ARGUMENT', 'does not parse');
    }
    const long = 'x,] // \\\\\\" /* '.repeat(1e5);
    const server = readMcpConfig(`{"servers":{"a":{"command":"${long}",/*${long}*/},},}`);
    expect(server.servers.get('a')).toMatchObject({ command: JSON.parse(`"${long}"`) });

    const command = `\${`.repeat(4e5);
    const open = { type: 'stdio', command, args: [`\${A}${command}`], env: {} } as const;
    const filled = expandMcpServer('a', open, { A: 'b' });
    expect(filled).toEqual({ ...open, args: [`b${command}`] });
    const closed = { ...open, args: [`${command}}`] };
    const error = refused(
      () => expandMcpServer('a', closed, {}),
      'FINCH_INVALID_ARGUMENT',
      'editor',
    );
    expect(error.message.length).toBeLessThan(400);
  });

  it('takes comments and commas anywhere JSON may have space', () => {
    const texts = [
      '{"servers":{"a":{"command":"x","args":["y" , // z\n /* , */ ] , } /**/ , }}// end',
      '/* , */{"servers"://\n{"a":{"command":"x","args":["y"]}}}//',
      '{"servers":{"a":{"command":"x","args":["y",],},},}\n',
    ];
    for (const each of texts) {
      expect(readMcpConfig(each).servers.get('a')).toMatchObject({ command: 'x', args: ['y'] });
    }
    for (const wrong of ['{"a":1,,}', '{"a":1}/*', '{"a":[1,"b" "c",]}', '{"a":"//}']) {
      refused(() => readMcpConfig(wrong), 'FINCH_INVALID_ARGUMENT', 'does not parse');
    }
  });

  const bad: [string, string, string][] = [
    ['no JSON', 'mcpServers:', 'does not parse'],
    ['no object', '[]', 'an empty array'],
    ['no servers', '{"tools":[]}', "'tools'"],
    ['an empty list', '{"mcpServers":{}}', 'it is empty'],
    [
      'disabled servers only',
      '{"mcpServers":{"a":{"command":"x","disabled":true}}}',
      'all 1 servers are disabled',
    ],
    ['an entry that is no object', '{"mcpServers":{"a":"npx"}}', "'a': its entry"],
    ['a server without a name', '{"mcpServers":{"":{"command":"x"}}}', 'its name'],
    ['neither command nor url', '{"mcpServers":{"a":{}}}', 'url is missing'],
    [
      'an unknown type',
      '{"mcpServers":{"a":{"type":"ws","url":"ws://x"}}}',
      "type is the string 'ws'",
    ],
    [
      'a type from a prototype',
      '{"mcpServers":{"a":{"type":"constructor","command":"x"}}}',
      'type',
    ],
    ['an empty command', '{"mcpServers":{"a":{"command":""}}}', 'command'],
    [
      'a command of another type',
      '{"mcpServers":{"a":{"type":"stdio","command":["x"]}}}',
      'command is an array',
    ],
    ['args that are no array', '{"mcpServers":{"a":{"command":"x","args":"-y"}}}', 'args'],
    ['an arg that is no string', '{"mcpServers":{"a":{"command":"x","args":["a",1]}}}', 'args[1]'],
    ['env that is no object', '{"mcpServers":{"a":{"command":"x","env":[]}}}', 'env'],
    [
      'a variable that is no string',
      '{"mcpServers":{"a":{"command":"x","env":{"K":{}}}}}',
      'env.K',
    ],
    ['a cwd of another type', '{"mcpServers":{"a":{"command":"x","cwd":1}}}', 'cwd'],
    [
      'a header that is no string',
      '{"mcpServers":{"a":{"url":"http://x","headers":{"H":null}}}}',
      'headers.H',
    ],
  ];
  for (const [what, config, part] of bad) {
    it(`refuses ${what}`, () => {
      refused(() => readMcpConfig(config), 'FINCH_INVALID_ARGUMENT', part);
    });
  }
});

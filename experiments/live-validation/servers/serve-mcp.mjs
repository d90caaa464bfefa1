// One real MCP server as a process: `node serve-mcp.mjs NAME stdio|http`. Over HTTP it listens on a free port of the loopback
// interface, which it prints as one line of JSON. It ends when its standard input does, so that none outlives its parent.
import { createServer } from 'node:http';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { listen } from './listen.mjs';

/**
 * @typedef {object} ServedTool
 * @property {string} name
 * @property {string} description
 * @property {{ type: 'object', properties: Record<string, unknown>, required?: string[] }} inputSchema
 * @property {(args: Record<string, any>) => unknown} run returns text, or what is sent as JSON; a throw is a failed call
 */

const [name = '', transport = 'stdio'] = process.argv.slice(2);
/** @type {{ about: string, tools: ServedTool[] }} */
const { about, tools } = await import(new URL(`mcp/${name}.mjs`, import.meta.url).href);

function server() {
  const made = new Server(
    { name, version: '1.0.0' },
    { capabilities: { tools: {} }, instructions: about },
  );
  made.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map(({ run: _, ...listed }) => listed),
  }));
  made.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    try {
      const tool = tools.find((each) => each.name === params.name);
      if (tool === undefined) throw new Error(`no tool ${params.name}`);
      const given = params.arguments ?? {};
      const missing = (tool.inputSchema.required ?? []).filter((key) => given[key] === undefined);
      if (missing.length > 0) throw new Error(`missing argument: ${missing.join(', ')}`);
      return { content: [{ type: 'text', text: asText(tool.run(given)) }] };
    } catch (error) {
      return {
        content: [{ type: 'text', text: error instanceof Error ? error.message : String(error) }],
        isError: true,
      };
    }
  });
  return made;
}

/** @param {unknown} value */
function asText(value) {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

if (transport === 'stdio') {
  await server().connect(new StdioServerTransport());
} else {
  // Without sessions, as servers behind a balancer are: a restarted process goes on where the last one ended.
  const http = createServer(async (request, response) => {
    if (request.method !== 'POST') {
      response.writeHead(405, { allow: 'POST' }).end();
      return;
    }
    const each = server();
    const exchange = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    response.on('close', () => {
      exchange.close().catch(() => undefined);
    });
    await each.connect(exchange);
    await exchange.handleRequest(request, response);
  });
  await listen(http);
}

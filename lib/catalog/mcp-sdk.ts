import { FinchError } from '../errors.js';

/** The parts of the MCP SDK that are used, loaded when first needed: it is an optional peer dependency. */
export async function loadMcpSdk() {
  try {
    const [client, stdio, http, sse, types] = await Promise.all([
      import('@modelcontextprotocol/sdk/client/index.js'),
      import('@modelcontextprotocol/sdk/client/stdio.js'),
      import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
      import('@modelcontextprotocol/sdk/client/sse.js'),
      import('@modelcontextprotocol/sdk/types.js'),
    ]);
    return {
      Client: client.Client,
      StdioClientTransport: stdio.StdioClientTransport,
      StreamableHTTPClientTransport: http.StreamableHTTPClientTransport,
      StreamableHTTPError: http.StreamableHTTPError,
      SSEClientTransport: sse.SSEClientTransport,
      ResultSchema: types.ResultSchema,
      ErrorCode: types.ErrorCode,
      McpError: types.McpError,
    };
  } catch (cause) {
    throw new FinchError(
      'FINCH_DEVICE',
      'MCP servers are reached through the official SDK, which is not installed (or cannot be loaded); install it with: ' +
        'npm install @modelcontextprotocol/sdk',
      { cause },
    );
  }
}

export type McpSdk = Awaited<ReturnType<typeof loadMcpSdk>>;

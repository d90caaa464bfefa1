import { createHash } from 'node:crypto';
import { object, oneOf, string } from '../schema.mjs';

export const about = 'Tools of a security team: digests and encodings.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'message_digest',
    description: 'Cryptographic digest (checksum) of a message: md5, sha1, sha256 or sha512.',
    inputSchema: object({
      message: string('The message'),
      algorithm: oneOf(['md5', 'sha1', 'sha256', 'sha512'], 'Digest algorithm'),
    }),
    run: ({ message, algorithm }) => ({
      digest: createHash(algorithm).update(message, 'utf8').digest('hex'),
    }),
  },
  {
    name: 'to_base64',
    description: 'Base64 of a message.',
    inputSchema: object({ message: string('The message to encode') }),
    run: ({ message }) => ({ base64: Buffer.from(message, 'utf8').toString('base64') }),
  },
  {
    name: 'from_base64',
    description: 'The message that a Base64 string holds.',
    inputSchema: object({ base64: string('The Base64 string to decode') }),
    run: ({ base64 }) => ({ message: Buffer.from(base64, 'base64').toString('utf8') }),
  },
];

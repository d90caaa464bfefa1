import { createHash, createHmac } from 'node:crypto';
import { object, oneOf, string } from '../schema.mjs';

export const about = 'Checksums of texts.';

const algorithms = ['md5', 'sha1', 'sha256', 'sha512'];

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'hash_text',
    description: 'Compute the hash of a text with MD5, SHA-1, SHA-256 or SHA-512, in hexadecimal.',
    inputSchema: object({
      text: string('What to hash'),
      algorithm: oneOf(algorithms, 'The hash function'),
    }),
    run: ({ text, algorithm }) => createHash(algorithm).update(text, 'utf8').digest('hex'),
  },
  {
    name: 'sign_text',
    description:
      'Sign a text with a secret key: its keyed hash, HMAC with SHA-256, in hexadecimal.',
    inputSchema: object({ text: string('What to sign'), key: string('The secret key') }),
    run: ({ text, key }) => createHmac('sha256', key).update(text, 'utf8').digest('hex'),
  },
];

import { createHash, createHmac } from 'node:crypto';
import { hasInOrder, hasNumber, hasText } from './answers.mjs';
import { words } from './kind.mjs';

/** @type {import('./kind.mjs').TaskKind[]} */
export const kinds = [
  {
    name: 'value of JSON',
    tools: ['json-query/query_json', 'data-desk/extract_json_value'],
    templates: [
      'Get the value at {path} out of this JSON: {json}',
      'What is at the path {path} in the JSON document {json}?',
      'Extract {path} from this JSON data: {json}',
      'Query the JSON {json} for {path}',
    ],
    draw: (random) => {
      const [a = '', b = '', c = ''] = random.some(words, 3);
      const number = random.between(1000, 9999);
      return random.pick([
        {
          slots: { json: JSON.stringify({ [a]: { [b]: number, [c]: 1 } }), path: `${a}.${b}` },
          check: hasNumber(number),
        },
        {
          slots: { json: JSON.stringify({ [a]: [1, { [b]: number }] }), path: `${a}[1].${b}` },
          check: hasNumber(number),
        },
      ]);
    },
  },
  {
    name: 'keys of JSON',
    tools: ['json-query/list_json_keys'],
    templates: [
      'List the keys of this JSON object: {json}',
      'Which keys does the JSON {json} have?',
      'Name the top-level keys in {json}',
      'Show me the keys of the object {json}',
    ],
    draw: (random) => {
      const keys = random.some(words, 3);
      return {
        slots: { json: JSON.stringify(Object.fromEntries(keys.map((key, i) => [key, 70 + i]))) },
        check: (answer) => hasInOrder(keys)(answer) && !answer.includes('70'),
      };
    },
  },
  {
    name: 'column of a table',
    tools: ['csv/summarise_csv_column', 'data-desk/column_totals'],
    templates: [
      'What are the sum and the mean of the column {column} of this CSV table: {csv}',
      'Summarise the column {column} in the CSV data {csv}',
      'Total and average of {column} in this table: {csv}',
      'Statistics of the numeric column {column} of the CSV {csv}',
    ],
    draw: (random) => {
      const [name = '', column = ''] = random.some(words, 2);
      const values = Array.from({ length: 4 }, () => random.between(10, 99));
      const rows = values.map((value, i) => `${words[i]},${value}`);
      return {
        slots: { csv: [`${name},${column}`, ...rows].join('\n'), column },
        check: hasNumber(values.reduce((a, b) => a + b, 0)),
      };
    },
  },
  {
    name: 'rows of a table',
    tools: ['csv/count_csv_rows'],
    templates: [
      'How many rows does this CSV table have: {csv}',
      'Count the rows of the CSV {csv}',
      'Number of rows, without the header, in this CSV: {csv}',
      'How long is this CSV table, in rows? {csv}',
    ],
    draw: (random) => {
      const count = random.between(3, 8);
      const rows = Array.from({ length: count }, () => `${random.pick(words)},x`);
      return { slots: { csv: ['name,mark', ...rows].join('\n') }, check: hasNumber(count) };
    },
  },
  {
    name: 'sort',
    tools: ['lists/sort_list', 'data-desk/order_values'],
    templates: [
      'Sort these words in {order} order: {items}',
      'Put the list {items} into {order} alphabetical order',
      'Order the values {items}, {order}',
      'Arrange {items} alphabetically, {order}',
    ],
    draw: (random) => {
      const items = random.some(words, 5);
      const order = random.pick(['ascending', 'descending']);
      const wanted = [...items].sort();
      if (order === 'descending') wanted.reverse();
      return { slots: { items, order }, check: hasInOrder(wanted) };
    },
  },
  {
    name: 'remove duplicates',
    tools: ['lists/remove_duplicates'],
    templates: [
      'Remove the duplicates from this list: {items}',
      'Which different items are in {items}? Drop the repeated ones.',
      'Deduplicate the list {items}',
      'Keep each item of {items} only once',
    ],
    draw: (random) => {
      const once = random.some(words, 4);
      return { slots: { items: [...once, once[0], once[2]] }, check: hasInOrder(once) };
    },
  },
  {
    name: 'hash',
    tools: ['hashing/hash_text', 'security/message_digest'],
    templates: [
      'Compute the {algorithm} hash of {text}',
      'What is the {algorithm} checksum of the text {text}?',
      'Give me the {algorithm} digest of the message {text}',
      'Hash {text} with {algorithm}',
    ],
    draw: (random) => {
      const text = random.some(words, 2).join(' ');
      const algorithm = random.pick(['md5', 'sha1', 'sha256', 'sha512', 'sha512']);
      const wanted = createHash(algorithm).update(text).digest('hex');
      return { slots: { text, algorithm }, check: hasText(wanted) };
    },
  },
  {
    name: 'sign',
    tools: ['hashing/sign_text'],
    templates: [
      'Sign the text {text} with the secret key {key}',
      'Compute the HMAC of {text} with the key {key}',
      'Keyed hash of the message {text}, the key is {key}',
      'I need an HMAC-SHA256 signature of {text} made with {key}',
    ],
    draw: (random) => {
      const [text = '', key = ''] = random.some(words, 2);
      return {
        slots: { text, key },
        check: hasText(createHmac('sha256', key).update(text).digest('hex')),
      };
    },
  },
  {
    name: 'to Base64',
    tools: ['encoding/base64_encode', 'security/to_base64'],
    templates: [
      'Encode the text {text} as Base64',
      'What is {text} in Base64?',
      'Base64 encoding of the message {text}',
      'Turn {text} into a Base64 string',
    ],
    draw: (random) => {
      const text = random.some(words, 3).join(' ');
      return { slots: { text }, check: hasText(btoa(text)) };
    },
  },
  {
    name: 'from Base64',
    tools: ['encoding/base64_decode', 'security/from_base64'],
    templates: [
      'Decode the Base64 string {base64}',
      'What does {base64} say? It is Base64.',
      'Turn this Base64 back into text: {base64}',
      'Which message is hidden in the Base64 {base64}?',
    ],
    draw: (random) => {
      const text = random.some(words, 3).join(' ');
      return { slots: { base64: btoa(text) }, check: hasText(text) };
    },
  },
  {
    name: 'parts of a URL',
    tools: ['urls/parse_url', 'encoding/split_url'],
    templates: [
      'Parse the URL {url} into its parts',
      'What are the host and the path of {url}?',
      'Split the web address {url} into protocol, host and path',
      'Take this URL apart for me: {url}',
    ],
    draw: (random) => {
      const [a, b, c] = random.some(words, 3);
      return {
        slots: { url: `https://${a}.example:8080/${b}?q=${c}` },
        check: (answer) =>
          hasText(`"${a}.example"`, `"/${b}"`)(answer) && answer.includes('hostname'),
      };
    },
  },
  {
    name: 'percent-encode',
    tools: ['urls/percent_encode'],
    templates: [
      'Percent-encode the text {text} for the query of a URL',
      'Escape {text} so that it can stand in a web address',
      'URL-encode this: {text}',
      'How is {text} written in a URL’s query string?',
    ],
    draw: (random) => {
      const [a, b] = random.some(words, 2);
      return { slots: { text: `${a} & ${b}/ü` }, check: hasText(`${a}%20%26%20${b}%2F%C3%BC`) };
    },
  },
];

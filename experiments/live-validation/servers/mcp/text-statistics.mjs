import { sentences, words } from '../abilities/words.mjs';
import { object, string } from '../schema.mjs';

export const about = 'Counting in texts.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'count_words',
    description: 'Count how many words a text has.',
    inputSchema: object({ text: string('The text') }),
    run: ({ text }) => `${words(text).length} words`,
  },
  {
    name: 'most_frequent_word',
    description: 'Find the word that occurs most often in a text, and how many times.',
    inputSchema: object({ text: string('The text') }),
    run: ({ text }) => {
      /** @type {Map<string, number>} */
      const counts = new Map();
      for (const word of words(text)) counts.set(word, (counts.get(word) ?? 0) + 1);
      const [best] = [...counts].sort((a, b) => b[1] - a[1]);
      return best === undefined ? 'no words' : `${best[0]}: ${best[1]} times`;
    },
  },
  {
    name: 'count_sentences',
    description: 'Count how many sentences a text has.',
    inputSchema: object({ text: string('The text') }),
    run: ({ text }) => `${sentences(text).length} sentences`,
  },
];

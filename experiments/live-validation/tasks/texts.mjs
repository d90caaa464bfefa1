import { hasNumber, hasText } from './answers.mjs';
import { sentence, words } from './kind.mjs';

/** @type {import('./kind.mjs').TaskKind[]} */
export const kinds = [
  {
    name: 'count words',
    tools: ['text-statistics/count_words', 'writer/word_count'],
    templates: [
      'How many words does this text have: {text}',
      'Count the words of “{text}”',
      'Give me the word count of my text: {text}',
      'Number of words in: {text}',
    ],
    draw: (random) => {
      const count = random.between(5, 14);
      return { slots: { text: sentence(random, count) }, check: hasNumber(count) };
    },
  },
  {
    name: 'most frequent word',
    tools: ['text-statistics/most_frequent_word'],
    templates: [
      'Which word occurs most often in: {text}',
      'What is the most frequent word of “{text}”',
      'Find the word that is repeated most in this text: {text}',
      'Most common word in the following: {text}',
    ],
    draw: (random) => {
      const [often = '', ...others] = random.some(words, 5);
      const text = random.shuffled([often, often, often, ...others]).join(' ');
      return { slots: { text }, check: hasText(often, '3') };
    },
  },
  {
    name: 'count sentences',
    tools: ['text-statistics/count_sentences'],
    templates: [
      'How many sentences are in this text: {text}',
      'Count the sentences of “{text}”',
      'Number of sentences in the following text: {text}',
      'Tell me how many sentences I wrote: {text}',
    ],
    draw: (random) => {
      const count = random.between(2, 5);
      const text = Array.from({ length: count }, () => sentence(random, 4)).join(' ');
      return { slots: { text }, check: hasNumber(count) };
    },
  },
  {
    name: 'Markdown to HTML',
    tools: ['markdown/markdown_to_html', 'writer/render_markdown', 'design/renderPage'],
    templates: [
      'Convert this Markdown to HTML: {markdown}',
      'Render the Markdown text as HTML: {markdown}',
      'Make HTML of this Markdown document: {markdown}',
      'I need the HTML for this Markdown: {markdown}',
    ],
    draw: (random) => {
      const [a = '', b = ''] = random.some(words, 2);
      return random.pick([
        {
          slots: { markdown: `# ${a}\n\nThe **${b}**` },
          check: hasText(`<h1>${a}</h1>`, `<strong>${b}</strong>`),
        },
        {
          slots: { markdown: `- ${a}\n- [${b}](https://example.org)` },
          check: hasText(`<li>${a}</li>`, `>${b}</a>`),
        },
      ]);
    },
  },
  {
    name: 'outline',
    tools: ['markdown/table_of_contents'],
    templates: [
      'List the headings of this Markdown document: {markdown}',
      'Make an outline of the headings in: {markdown}',
      'Table of contents for this Markdown, please: {markdown}',
      'Which headings does this Markdown document have? {markdown}',
    ],
    draw: (random) => {
      const [a = '', b = '', c = ''] = random.some(words, 3);
      return {
        slots: { markdown: `# ${a}\n\n${c}\n\n## ${b}` },
        check: (answer) => answer.trim() === `${a}\n${b}`,
      };
    },
  },
  {
    name: 'slug',
    tools: ['writer/make_slug'],
    templates: [
      'Make a slug for the headline {title}',
      'Turn the title “{title}” into a slug for the page’s address',
      'URL slug of the headline {title}',
      'What slug should the article {title} get?',
    ],
    draw: (random) => {
      const chosen = random.some(words, 3);
      const title = chosen.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' ');
      return { slots: { title }, check: hasText(chosen.join('-')) };
    },
  },
  {
    name: 'find by pattern',
    tools: ['regex/find_matches', 'review/search_with_regex'],
    templates: [
      'Find everything that matches the regular expression {pattern} in: {text}',
      'Search this text with the regex {pattern}: {text}',
      'Which parts of “{text}” match the pattern {pattern}?',
      'Show all matches of the regular expression {pattern} in the text {text}',
    ],
    draw: (random) => {
      const [a, b] = [random.between(100, 999), random.between(100, 999)];
      const [x, y] = random.some(words, 2);
      return {
        slots: { text: `${x} ${a} ${y} ${b}`, pattern: '[0-9]{3}' },
        // Not the whole text: the matches alone.
        check: (answer) =>
          hasText(String(a), String(b))(answer) && !answer.includes(/** @type {string} */ (x)),
      };
    },
  },
  {
    name: 'replace by pattern',
    tools: ['regex/replace_matches'],
    templates: [
      'Replace every match of the regular expression {pattern} with {replacement} in: {text}',
      'In the text “{text}”, substitute {replacement} for whatever matches {pattern}',
      'Regex replace {pattern} by {replacement} in this text: {text}',
      'Swap all matches of {pattern} in {text} for {replacement}',
    ],
    draw: (random) => {
      const [x, y, z = ''] = random.some(words, 3);
      const text = `${x} ${random.between(100, 999)} ${y}`;
      return {
        slots: { text, pattern: '[0-9]+', replacement: z },
        check: hasText(`${x} ${z} ${y}`),
      };
    },
  },
  {
    name: 'compare texts',
    tools: ['diff/diff_texts', 'review/compare_versions'],
    templates: [
      'What changed between “{before}” and “{after}”?',
      'Compare the old text {before} with the new text {after}',
      'Show the difference between the two versions {before} and {after}',
      'Which lines differ between {before} and {after}?',
    ],
    draw: (random) => {
      const [a, b, c, d] = random.some(words, 4);
      return {
        slots: { before: `${a}\n${b}\n${c}`, after: `${a}\n${d}\n${c}` },
        check: hasText(`-${b}`, `+${d}`),
      };
    },
  },
  {
    name: 'echo',
    tools: ['everything/echo'],
    templates: [
      'Echo this message back to me: {text}',
      'Repeat the input string {text} as an echo',
      'Send back what I say: {text}',
      'Echo: {text}',
    ],
    draw: (random) => {
      const text = random.some(words, 3).join(' ');
      return { slots: { text }, check: hasText(text) };
    },
  },
];

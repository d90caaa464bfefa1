import { entities, files, notes } from '../fleet/folder.mjs';
import { hasText } from './answers.mjs';
import { sentence, words } from './kind.mjs';

const filesystem = ['files', 'archive'];
const graphs = ['memory', 'library'];

/** @param {string[]} servers @param {...string} names */
const of = (servers, ...names) =>
  servers.flatMap((server) => names.map((name) => `${server}/${name}`));

/**
 * Tasks on files, notes and knowledge graphs.
 *
 * @param {string} folder the servers' folder
 * @returns {import('./kind.mjs').TaskKind[]}
 */
export function kindsOn(folder) {
  return [
    {
      name: 'save a note',
      tools: ['notes/save_note', 'journal/write_memo'],
      templates: [
        'Save a note titled {title} that says: {body}',
        'Write down a memo called {title}: {body}',
        'Keep this as a note with the title {title}: {body}',
        'Note to self, title {title}: {body}',
      ],
      draw: (random) => {
        const title = `${random.some(words, 2).join(' ')} ${random.between(100, 999)}`;
        const body = sentence(random, 5);
        return { slots: { title, body }, check: hasText(title, body) };
      },
    },
    {
      name: 'read a note',
      tools: ['notes/read_note', 'journal/open_memo'],
      templates: [
        'Read me the note titled {title}',
        'What does my note {title} say?',
        'Open the memo called {title}',
        'Show the note with the title {title}',
      ],
      draw: (random) => {
        const [title, text] = random.pick(Object.entries(notes));
        return { slots: { title }, check: hasText(text) };
      },
    },
    {
      name: 'list a folder',
      tools: of(filesystem, 'list_directory', 'list_directory_with_sizes', 'directory_tree'),
      templates: [
        'List the files in the directory {path}',
        'What is in the folder {path}?',
        'Show me the contents of the directory {path}',
        'Which files does {path} hold?',
      ],
      draw: () => ({
        slots: { path: `${folder}/files` },
        check: hasText(...Object.keys(files)),
      }),
    },
    {
      name: 'read a file',
      tools: of(filesystem, 'read_text_file', 'read_file'),
      templates: [
        'Read the text file {path}',
        'What does the file {path} say?',
        'Show me the contents of the file {path}',
        'Open the file {path} and read it as text',
      ],
      draw: (random) => {
        const [name, text] = random.pick(Object.entries(files));
        return { slots: { path: `${folder}/files/${name}` }, check: hasText(text) };
      },
    },
    {
      name: 'size of a file',
      tools: of(filesystem, 'get_file_info'),
      templates: [
        'How big is the file {path}?',
        'Get the metadata of the file {path}',
        'When was {path} modified, and what is its size?',
        'File information about {path}',
      ],
      draw: (random) => {
        const [name, text] = random.pick(Object.entries(files));
        return {
          slots: { path: `${folder}/files/${name}` },
          check: hasText('size', String(Buffer.byteLength(text))),
        };
      },
    },
    {
      name: 'search the graph',
      tools: of(graphs, 'search_nodes'),
      templates: [
        'Search the knowledge graph for {query}',
        'What does the knowledge graph know about {query}?',
        'Find nodes about {query} in the knowledge graph',
        'Look up {query} in the knowledge graph',
      ],
      draw: (random) => {
        const [name, observation] = random.pick(Object.entries(entities));
        return { slots: { query: name }, check: hasText(observation) };
      },
    },
    {
      name: 'read the graph',
      tools: of(graphs, 'read_graph'),
      templates: [
        'Read the entire knowledge graph',
        'Show me everything that is in the knowledge graph',
        'Give me the whole knowledge graph',
        'Dump all of the knowledge graph',
      ],
      draw: () => ({ slots: {}, check: hasText(...Object.values(entities)) }),
    },
  ];
}

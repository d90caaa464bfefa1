import { NotesFolder } from '../abilities/notes-folder.mjs';
import { object, string } from '../schema.mjs';

export const about = 'A notebook kept in files.';

const notes = new NotesFolder();

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'save_note',
    description: 'Save a note with a title and a text in the notebook.',
    inputSchema: object({ title: string('The note’s title'), body: string('What it says') }),
    run: ({ title, body }) => `saved ${title}: ${notes.write(title, body)}`,
  },
  {
    name: 'read_note',
    description: 'Read the note with a given title from the notebook.',
    inputSchema: object({ title: string('The note’s title') }),
    run: ({ title }) => notes.read(title),
  },
  {
    name: 'list_notes',
    description: 'List the titles of all notes.',
    inputSchema: object({}),
    run: () => notes.titles().join('\n'),
  },
];

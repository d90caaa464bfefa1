import { NotesFolder } from '../abilities/notes-folder.mjs';
import { object, string } from '../schema.mjs';

export const about = 'A journal of notes and memos.';

const notes = new NotesFolder();

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'write_memo',
    description: 'Write down a memo (a short note) under a title, to be kept.',
    inputSchema: object({ title: string('Its title'), content: string('Its text') }),
    run: ({ title, content }) => ({ stored: title, content: notes.write(title, content) }),
  },
  {
    name: 'open_memo',
    description: 'Open a memo or note by its title and return its text.',
    inputSchema: object({ title: string('Its title') }),
    run: ({ title }) => ({ content: notes.read(title) }),
  },
];

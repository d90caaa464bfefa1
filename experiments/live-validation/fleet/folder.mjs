import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Files that the filesystem servers serve. @type {Record<string, string>} */
export const files = {
  'minutes.txt': 'The board met on the 4th and chose the blue logo.',
  'recipe.txt': 'Two eggs, 120 g of flour, a pinch of salt.',
  'todo.txt': 'Renew the passport and water the ferns.',
  'wifi.txt': 'The guest network is called Nightjar.',
};

/** Notes in both notebooks. @type {Record<string, string>} */
export const notes = {
  'garden plan': 'Tomatoes along the south wall, beans behind them.',
  'gift ideas': 'A kite for Ada, a teapot for Sam.',
  'car service': 'Brake pads at 60,000 km, oil every spring.',
};

/** Entities in both knowledge graphs: name and what is known of it. @type {Record<string, string>} */
export const entities = {
  Marlowe: 'plays the cello in the city orchestra',
  Ingrid: 'repairs lighthouses along the coast',
  Okafor: 'teaches chemistry in Lagos',
  Tanaka: 'breeds silkworms near Kyoto',
};

/**
 * What the servers find when they start.
 *
 * @param {string} folder
 */
export async function prepareFolder(folder) {
  const write = async (/** @type {string} */ file, /** @type {string} */ text) => {
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  };
  for (const [name, text] of Object.entries(files)) {
    await write(path.join(folder, 'files', name), text);
  }
  for (const server of ['notes', 'journal']) {
    for (const [title, text] of Object.entries(notes)) {
      await write(path.join(folder, server, `${encodeURIComponent(title)}.txt`), text);
    }
  }
  const lines = Object.entries(entities).map(([name, observation]) =>
    JSON.stringify({ type: 'entity', name, entityType: 'person', observations: [observation] }),
  );
  for (const server of ['memory', 'library']) {
    await write(path.join(folder, `${server}.jsonl`), lines.join('\n'));
  }
}

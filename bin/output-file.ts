import { randomUUID } from 'node:crypto';
import { open, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { checkPicture } from '../lib/evaluate/picture.js';
import { FinchError } from '../lib/index.js';

/**
 * Checks that a file can be written, by making and removing one beside it, so that work is not done for nothing.
 *
 * @param option its name, such as `--out`
 * @throws FinchError FINCH_IO
 */
export async function checkOutput(option: string, file: string): Promise<void> {
  const folder = path.dirname(path.resolve(file));
  const refused = (why: string, cause?: unknown) =>
    new FinchError('FINCH_IO', `${option} is '${file}', which cannot be written: ${why}.`, {
      cause,
    });
  const kind = (place: string) =>
    stat(place).then(
      (found) => (found.isDirectory() ? 'folder' : 'file'),
      () => 'none',
    );
  if (file === '') throw refused('it is empty; name a file');
  if ((await kind(file)) === 'folder') throw refused('it is a folder; name a file in it');
  if ((await kind(folder)) !== 'folder') {
    throw refused(`there is no folder ${folder}; make it, or name a file elsewhere`);
  }
  const probe = path.join(folder, `.${randomUUID()}.tmp`);
  try {
    await (await open(probe, 'wx')).close();
    await rm(probe, { force: true });
  } catch (cause) {
    throw refused(
      `${(cause as Error).message}; check the folder's permissions and its disk, or name a file elsewhere`,
      cause,
    );
  }
}

/** The same for a picture, which must also be one that can be drawn here. */
export async function checkPlot(file: string | undefined): Promise<void> {
  if (file === undefined) return;
  await checkPicture(file);
  await checkOutput('--plot', file);
}

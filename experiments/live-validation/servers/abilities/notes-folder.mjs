import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Notes as files of the folder that the environment variable NOTES_FOLDER names. */
export class NotesFolder {
  constructor() {
    this.folder = process.env.NOTES_FOLDER ?? '';
    if (this.folder === '') throw new Error('set NOTES_FOLDER to a folder for the notes');
    mkdirSync(this.folder, { recursive: true });
  }

  /** @param {string} title */
  #file(title) {
    return path.join(this.folder, `${encodeURIComponent(title.toLowerCase())}.txt`);
  }

  /**
   * @param {string} title
   * @param {string} body
   */
  write(title, body) {
    writeFileSync(this.#file(title), body);
    // Read back: the answer tells what is on the disk.
    return this.read(title);
  }

  /** @param {string} title */
  read(title) {
    const file = this.#file(title);
    if (!existsSync(file)) throw new Error(`there is no note ${title}`);
    return readFileSync(file, 'utf8');
  }

  titles() {
    return readdirSync(this.folder).map((file) => decodeURIComponent(file.replace(/\.txt$/, '')));
  }
}

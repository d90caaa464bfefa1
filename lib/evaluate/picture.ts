import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { aList, aNumber, aString, fields, optional } from '../check.js';
import { FinchError } from '../errors.js';

export interface PngOptions {
  /** Pixels per unit of the SVG, above 0 up to 8. Default 2. */
  readonly scale?: number;
  /** Font files (.ttf, .otf) to use in place of the system's; the first is the default. */
  readonly fontFiles?: readonly string[];
}

const anOptions = fields({ scale: optional(aNumber), fontFiles: optional(aList(aString)) });

interface Rendered {
  readonly width: number;
  readonly pixels: Uint8Array;
  asPng(): Uint8Array;
}

interface Resvg {
  renderAsync(svg: string, options: object): Promise<Rendered>;
}

/**
 * Writes a picture as the end of its path says: `.svg` as it is, `.png` drawn by the optional package
 * `@resvg/resvg-js`. The file appears whole or not at all.
 *
 * @param path ends in .svg or .png; an existing file is replaced
 * @param svg a picture of this package
 * @throws FinchError FINCH_INVALID_ARGUMENT (another ending, scale), FINCH_DEVICE (no renderer, or no font to draw
 * text with), FINCH_IO
 */
export async function writePicture(
  path: string,
  svg: string,
  options: PngOptions = {},
): Promise<void> {
  aString(path, 'path');
  aString(svg, 'svg');
  anOptions(options, 'options');
  const ending = pictureEnding(path);
  const content = ending === '.svg' ? svg : await renderPng(svg, options);
  const beside = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(beside, content);
    await rename(beside, path);
  } catch (cause) {
    await rm(beside, { force: true }).catch(() => undefined);
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new FinchError('FINCH_IO', `${path} cannot be written: ${reason}`, { cause });
  }
}

/**
 * Whether {@link writePicture} can draw what a path asks for, without drawing or writing it.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT, FINCH_DEVICE, as {@link writePicture}
 */
export async function checkPicture(path: string): Promise<void> {
  if (pictureEnding(path) === '.svg') return;
  await checkFonts(await loadResvg(), { loadSystemFonts: true }, undefined);
}

function pictureEnding(path: string): '.svg' | '.png' {
  const ending = extname(path).toLowerCase();
  if (ending === '.svg' || ending === '.png') return ending;
  throw new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `${path}: pictures are written as .svg or .png, by the end of the name; found '${ending}'`,
  );
}

/**
 * The bytes of a PNG of an SVG of this package, on a white ground. Drawing runs off the event loop.
 *
 * @throws FinchError as {@link writePicture}
 */
export async function renderPng(svg: string, options: PngOptions = {}): Promise<Uint8Array> {
  aString(svg, 'svg');
  anOptions(options, 'options');
  const { scale = 2, fontFiles } = options;
  if (!(scale > 0 && scale <= 8)) {
    throw new FinchError('FINCH_INVALID_ARGUMENT', `scale is ${scale}; expected above 0, up to 8`);
  }
  const resvg = await loadResvg();
  const font =
    fontFiles === undefined
      ? { loadSystemFonts: true }
      : { loadSystemFonts: false, fontFiles: [...fontFiles] };
  await checkFonts(resvg, font, fontFiles);
  try {
    const drawn = await resvg.renderAsync(svg, {
      font,
      fitTo: { mode: 'zoom', value: scale },
      background: '#ffffff',
      logLevel: 'off',
    });
    return drawn.asPng();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new FinchError('FINCH_INVALID_ARGUMENT', `the SVG cannot be drawn: ${reason}`, { cause });
  }
}

async function loadResvg(): Promise<Resvg> {
  try {
    const loaded = await import('@resvg/resvg-js');
    return { renderAsync: loaded.renderAsync };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
    throw new FinchError(
      'FINCH_DEVICE',
      'PNG pictures need the optional package @resvg/resvg-js: run `npm install @resvg/resvg-js`, or write .svg ' +
        `(${reason})`,
      { cause },
    );
  }
}

/** The renderer leaves text out silently when it finds no font, so a word is drawn first and its ink looked for. */
async function checkFonts(
  resvg: Resvg,
  font: object,
  files: readonly string[] | undefined,
): Promise<void> {
  const probe =
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">' +
    '<text x="2" y="15" font-size="16" font-family="sans-serif">k</text></svg>';
  const { pixels } = await resvg.renderAsync(probe, { font, logLevel: 'off' });
  if (pixels.some((value, i) => i % 4 === 3 && value > 0)) return;
  throw new FinchError(
    'FINCH_DEVICE',
    files === undefined
      ? 'no font was found on this system to draw text with: install one (Debian and Ubuntu: apt-get install ' +
          'fonts-dejavu-core; Alpine: apk add font-dejavu; Fedora: dnf install dejavu-sans-fonts), name a font file, ' +
          'or write .svg'
      : `none of the font files can be used to draw text: ${files.join(', ') || 'none was named'}; expected .ttf or ` +
          '.otf files that can be read',
  );
}

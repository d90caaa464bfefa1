import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FinchError } from '../../lib/errors.js';
import { renderPng, writePicture } from '../../lib/evaluate/picture.js';
import { evaluationPlot } from '../../lib/evaluate/plot.js';

const svg = evaluationPlot({
  title: 'A picture',
  series: [{ name: 'one', values: [0.1, 0.5, 0.7] }],
  distribution: { name: 'kept', counts: [0, 2, 1] },
});

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'toolfinch-picture-'));
});
afterEach(async () => {
  vi.doUnmock('@resvg/resvg-js');
  vi.resetModules();
  await rm(folder, { recursive: true, force: true });
});

/** The PNG, or undefined on a machine without any font, where the error must say how to get one. */
async function pngUnlessNoFont(scale: number): Promise<Buffer | undefined> {
  const path = join(folder, `at-${scale}.png`);
  try {
    await writePicture(path, svg, { scale });
  } catch (error) {
    if (!(error instanceof FinchError)) throw error;
    expect(error.code).toBe('FINCH_DEVICE');
    expect(error.message).toContain('fonts-dejavu-core');
    return undefined;
  }
  return readFile(path);
}

describe('writePicture', () => {
  it('writes an SVG as it is and replaces an older file', async () => {
    const path = join(folder, 'plot.SVG');
    await writeFile(path, 'old');
    await writePicture(path, svg);
    expect(await readFile(path, 'utf8')).toBe(svg);
    expect(await readdir(folder)).toEqual(['plot.SVG']);
  });

  it('draws a PNG of the size asked for', async () => {
    for (const scale of [1, 2]) {
      const png = await pngUnlessNoFont(scale);
      if (png === undefined) return;
      expect(png.subarray(0, 8)).toEqual(
        Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
      );
      expect(png.toString('latin1', 12, 16)).toBe('IHDR');
      expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([1200 * scale, 560 * scale]);
      expect(png.toString('latin1', png.length - 8, png.length - 4)).toBe('IEND');
    }
    expect((await readdir(folder)).sort()).toEqual(['at-1.png', 'at-2.png']);
  });

  it('refuses another ending, a bad scale and what is no SVG', async () => {
    const refused = { code: 'FINCH_INVALID_ARGUMENT' };
    await expect(writePicture(join(folder, 'plot.jpg'), svg)).rejects.toMatchObject(refused);
    await expect(writePicture(join(folder, 'plot'), svg)).rejects.toMatchObject(refused);
    for (const scale of [0, -1, 9, Number.NaN]) {
      await expect(renderPng(svg, { scale })).rejects.toMatchObject(refused);
    }
    expect(await readdir(folder)).toEqual([]);
  });

  it('says why a file cannot be written and leaves nothing behind', async () => {
    await expect(writePicture(join(folder, 'absent', 'plot.svg'), svg)).rejects.toMatchObject({
      code: 'FINCH_IO',
    });
    await mkdir(join(folder, 'plot.svg'));
    await expect(writePicture(join(folder, 'plot.svg'), svg)).rejects.toMatchObject({
      code: 'FINCH_IO',
    });
    expect(await readdir(folder)).toEqual(['plot.svg']);
  });

  it('refuses to draw text without a font', async () => {
    const path = join(folder, 'plot.png');
    for (const fontFiles of [[], [join(folder, 'absent.ttf')]]) {
      const drawing = writePicture(path, svg, { fontFiles });
      await expect(drawing).rejects.toMatchObject({ code: 'FINCH_DEVICE' });
      await expect(drawing).rejects.toThrow('none of the font files');
    }
    expect(await readdir(folder)).toEqual([]);
  });

  it('names the package to install when there is no renderer', async () => {
    vi.resetModules();
    vi.doMock('@resvg/resvg-js', () => {
      throw new Error("Cannot find package '@resvg/resvg-js'");
    });
    const without = await import('../../lib/evaluate/picture.js');
    const drawing = without.writePicture(join(folder, 'plot.png'), svg);
    await expect(drawing).rejects.toMatchObject({ code: 'FINCH_DEVICE' });
    await expect(drawing).rejects.toThrow('npm install @resvg/resvg-js');
    await without.writePicture(join(folder, 'plot.svg'), svg);
    expect(await readdir(folder)).toEqual(['plot.svg']);
  });
});

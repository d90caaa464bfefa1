/** @param {string} hex */
export function rgbOf(hex) {
  const [, digits] = /^#?([0-9a-f]{6})$/i.exec(hex) ?? [];
  if (digits === undefined) throw new Error(`${hex} is no colour #rrggbb`);
  return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16));
}

/** Relative luminance of WCAG 2. @param {string} hex */
function luminance(hex) {
  const [r = 0, g = 0, b = 0] = rgbOf(hex).map((value) => {
    const c = value / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/**
 * Contrast of WCAG 2, from 1 to 21.
 *
 * @param {string} a
 * @param {string} b
 */
export function contrast(a, b) {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return Number(((light + 0.05) / (dark + 0.05)).toFixed(2));
}

/**
 * Names that most systems resolve to a clear sans-serif; the last ones are what Linux servers tend to have. Without
 * quotes, which CSS allows here: resvg 2.6 does not find quoted names.
 */
const fontFamily =
  'Inter, Segoe UI, Roboto, Helvetica Neue, Arial, Liberation Sans, Noto Sans, DejaVu Sans, sans-serif';

export type Attributes = Readonly<Record<string, string | number | undefined>>;

/** Ink on a white ground: text has a contrast of at least 4.5 : 1, lines of at least 3 : 1. */
export const ink = {
  text: '#1f2933',
  muted: '#52606d',
  axis: '#7b8794',
  grid: '#e4e7eb',
  ground: '#ffffff',
  kept: '#0072b2',
  dropped: '#7b8794',
  cut: '#b5361c',
} as const;

/**
 * Colours of series: told apart with the common colour blindnesses (after Okabe and Ito, darkened to 3 : 1 on white),
 * and by dash and marker besides.
 */
export const seriesStyles = [
  { colour: '#0072b2', dash: undefined, marker: 'circle' },
  { colour: '#d55e00', dash: '9 4', marker: 'square' },
  { colour: '#00815f', dash: '2 4', marker: 'triangle' },
  { colour: '#a3487d', dash: '12 4 2 4', marker: 'diamond' },
  { colour: '#4a4a4a', dash: '6 3', marker: 'circle' },
  { colour: '#8a6d00', dash: '1 3', marker: 'square' },
] as const;

export type SeriesStyle = (typeof seriesStyles)[number];

/** The style of series i; they come round again after the last. */
export function seriesStyle(i: number): SeriesStyle {
  return seriesStyles[i % seriesStyles.length] as SeriesStyle;
}

/** One element; undefined attributes are left out, numbers are cut to two decimals. */
export function element(name: string, attributes: Attributes, children = ''): string {
  let out = `<${name}`;
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    out += ` ${key}="${typeof value === 'number' ? decimals(value) : escapeXml(value)}"`;
  }
  return children === '' ? `${out}/>` : `${out}>${children}</${name}>`;
}

/** A line of text; `content` is escaped. */
export function label(content: string, x: number, y: number, attributes: Attributes = {}): string {
  return element(
    'text',
    { x, y, fill: ink.text, 'font-size': 13, ...attributes },
    escapeXml(content),
  );
}

export function line(
  x1: number,
  y1: number,
  x2: number,
  y2: number,
  attributes: Attributes,
): string {
  return element('line', { x1, y1, x2, y2, ...attributes });
}

/** A path through points, in order. */
export function polyline(
  points: readonly (readonly [number, number])[],
  attributes: Attributes,
): string {
  const list = points.map(([x, y]) => `${decimals(x)},${decimals(y)}`).join(' ');
  return element('polyline', { points: list, fill: 'none', ...attributes });
}

/** The marker of a series, about 9 units across. */
export function marker(style: SeriesStyle, x: number, y: number): string {
  const paint = { fill: style.colour, stroke: ink.ground, 'stroke-width': 1 };
  switch (style.marker) {
    case 'circle':
      return element('circle', { cx: x, cy: y, r: 4.5, ...paint });
    case 'square':
      return element('rect', { x: x - 4, y: y - 4, width: 8, height: 8, ...paint });
    case 'triangle':
      return element('path', { d: closed(x, y - 5, x + 5, y + 4, x - 5, y + 4), ...paint });
    default:
      return element('path', {
        d: closed(x, y - 5.5, x + 5.5, y, x, y + 5.5, x - 5.5, y),
        ...paint,
      });
  }
}

/** A whole picture on a white ground; `title` and `description` are read out by screen readers. */
export function picture(
  { width, height, title, description }: PictureFrame,
  content: string,
): string {
  const body =
    element('title', {}, escapeXml(title) || ' ') +
    element('desc', {}, escapeXml(description) || ' ') +
    element('rect', { width, height, fill: ink.ground }) +
    content;
  const attributes = {
    xmlns: 'http://www.w3.org/2000/svg',
    viewBox: `0 0 ${decimals(width)} ${decimals(height)}`,
    width,
    height,
    role: 'img',
    'font-family': fontFamily,
  };
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('svg', attributes, body)}\n`;
}

export interface PictureFrame {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  readonly description: string;
}

/** At most `max` characters, the last one an ellipsis where something was cut. */
export function shorten(text: string, max: number): string {
  const characters = Array.from(text);
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : text;
}

/** Text made safe for XML 1.0; characters that XML cannot hold become U+FFFD. */
export function escapeXml(text: string): string {
  return text
    .replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function closed(...numbers: number[]): string {
  return `M${numbers.map(decimals).join(' ')}Z`;
}

function decimals(value: number): string {
  return String(Math.round(value * 100) / 100);
}

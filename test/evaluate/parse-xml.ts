export interface XmlElement {
  readonly name: string;
  readonly attributes: Record<string, string>;
  readonly children: XmlElement[];
  /** The character data directly inside, decoded. */
  text: string;
}

/**
 * A strict reader of the XML that pictures use: elements, attributes in double quotes, decimal character references,
 * one declaration. Throws on anything else, on tags that do not match and on characters XML 1.0 forbids.
 */
export function parseXml(source: string): XmlElement {
  const body = source.replace(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n/, '');
  if (/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u.test(body)) {
    throw new Error('a character that XML does not allow');
  }
  const root: XmlElement = { name: '', attributes: {}, children: [], text: '' };
  const open = [root];
  const token = /<(\/?)([a-z]+)((?: [A-Za-z0-9:-]+="[^"<]*")*)(\/?)>|([^<]+)/gy;
  let end = 0;
  for (let match = token.exec(body); match !== null; match = token.exec(body)) {
    end = token.lastIndex;
    const [, slash, name = '', attributes = '', closed, text] = match;
    const parent = open.at(-1) as XmlElement;
    if (text !== undefined) {
      parent.text += decode(text);
    } else if (slash) {
      if (parent.name !== name || attributes !== '')
        throw new Error(`</${name}> closes <${parent.name}>`);
      open.pop();
    } else {
      const element: XmlElement = { name, attributes: {}, children: [], text: '' };
      for (const [, key = '', value = ''] of attributes.matchAll(/ ([A-Za-z0-9:-]+)="([^"]*)"/g)) {
        if (Object.hasOwn(element.attributes, key)) throw new Error(`${name} has ${key} twice`);
        element.attributes[key] = decode(value);
      }
      parent.children.push(element);
      if (!closed) open.push(element);
    }
  }
  if (end !== body.length) throw new Error(`not XML at ${end}: ${body.slice(end, end + 40)}`);
  const [only] = root.children;
  if (
    open.length !== 1 ||
    root.children.length !== 1 ||
    root.text.trim() !== '' ||
    only === undefined
  ) {
    throw new Error('not one element, closed');
  }
  return only;
}

function decode(text: string): string {
  const decoded = text.replace(/&#(\d+);/g, (_, code: string) =>
    String.fromCodePoint(Number(code)),
  );
  if (/&/.test(text.replace(/&#\d+;/g, ''))) throw new Error(`a bare & in ${text}`);
  return decoded;
}

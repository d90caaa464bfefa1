import { aString } from '../check.js';

/**
 * The words of a name or a text in lower case: `getHTTPResponse` is get, http, response; `list-user_IDs.v2` is list,
 * user, ids, v2. Splits at everything that is neither letter nor digit, at changes of case and before the last capital
 * of a run; digits stay with the letters before them (`sha256`, `s3`) and end a word when a longer one follows
 * (`top10songs` is top10, songs). Product names written in mixed case stay whole (`GitHub`, `OAuth2`).
 *
 * Deterministic, linear in the length of the text.
 */
export function splitWords(text: string): string[] {
  aString(text, 'text');
  const words: string[] = [];
  let end = -1;
  for (const match of text.matchAll(word)) {
    const piece = match[0].toLowerCase();
    const index = match.index;
    const last = words.length - 1;
    const before = words[last];
    // A brand is joined only where its parts touched in the text.
    if (before !== undefined && index === end && isBrand(before + piece)) {
      words[last] = before + piece;
    } else {
      words.push(piece);
    }
    end = index + match[0].length;
  }
  return words;
}

// Titlecase letters (one code point that is a capital and a small letter, as in U+01C5) begin words as capitals do.
const upper = '[\\p{Lu}\\p{Lt}]';
const lower = '[\\p{Ll}\\p{Lo}\\p{Lm}\\p{M}]';
const word = new RegExp(
  [
    // URLs, IDs: capitals and a plural s.
    `${upper}{2,}s(?!${lower})\\p{Nd}*`,
    // HTTP of HTTPResponse, V2.
    `${upper}+(?!${lower})\\p{Nd}*`,
    // get, Response, sha256, and h264a; a longer word after the digits is one of its own.
    `${upper}?${lower}+\\p{Nd}*(?:(?<=\\p{Nd})${lower}{1,2}(?!${lower}))?`,
    // 3d, 2fa, 404.
    `\\p{Nd}+(?:${lower}{1,2}(?!${lower}))?`,
  ].join('|'),
  'gu',
);

/** Names whose capitals are decoration, not words. */
const brands = new Set(
  (
    'airbnb airtable bitbucket chatgpt clickup clickhouse cloudflare coingecko deepl devops docusign doordash dropbox ' +
    'duckduckgo ebay elasticsearch facebook figma github gitlab graphql hubspot instagram ios ipad iphone javascript ' +
    'latex linkedin macos mailchimp mongodb mysql noaa nodejs oauth openai openapi openweather paypal pinterest ' +
    'postgresql powerpoint powershell pubmed quickbooks sendgrid servicenow sharepoint shopify soundcloud sqlite ' +
    'stackoverflow techcrunch tiktok tripadvisor typescript webhook webrtc whatsapp wikidata wikipedia woocommerce ' +
    'wordpress youtube zoominfo'
  ).split(' '),
);

function isBrand(joined: string): boolean {
  return brands.has(joined.replace(/\p{Nd}+$/u, ''));
}

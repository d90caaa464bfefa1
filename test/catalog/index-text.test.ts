import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { argumentNames } from '../../lib/catalog/argument-names.js';
import {
  contentHash,
  defineTool,
  importTools,
  indexText,
  indexTextRecipe,
  indexTextVersion,
  lexicalFields,
  splitToolName,
  splitWords,
} from '../../lib/catalog/index.js';
import { fixture, refused } from './fixture.js';

describe('splitWords', () => {
  const cases: [string, string][] = [
    ['getHTTPResponse', 'get http response'],
    ['create_calendar_event', 'create calendar event'],
    ['list-pull-requests', 'list pull requests'],
    ['math.factorial', 'math factorial'],
    ['/v1/nutrition', 'v1 nutrition'],
    ['GET /users/{userId}/repos', 'get users user id repos'],
    ['parseXML2JSON', 'parse xml2 json'],
    ['listURLs', 'list urls'],
    ['userIDsByName', 'user ids by name'],
    ['sha256Digest', 'sha256 digest'],
    ['top10songs', 'top10 songs'],
    ['getS3Bucket', 'get s3 bucket'],
    ['render3dModel', 'render3d model'],
    ['createGitHubIssue', 'create github issue'],
    ['githubOAuth2Login', 'github oauth2 login'],
    ['Git Hub', 'git hub'],
    ['SHOUTING_CASE', 'shouting case'],
    ['Straße_öffnenÜber', 'straße öffnen über'],
    ['使用必应搜索', '使用必应搜索'],
    ['ǅungla_ᾈ', 'ǆungla ᾀ'],
    ['naïveCafé', 'naïve café'],
    ['__init__', 'init'],
    ['A', 'a'],
    ['', ''],
    ['—…!', ''],
  ];
  for (const [name, words] of cases) {
    it(`splits ${name}`, () => expect(splitWords(name).join(' ')).toBe(words));
  }

  it('loses no letter or digit and invents none', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        const kept = (text.match(/[\p{L}\p{Nd}\p{M}]/gu) ?? []).map((c) => c.toLowerCase());
        const words = splitWords(text);
        // A sigma's lower case depends on whether a word ends there.
        expect(words.join('').replaceAll('ς', 'σ')).toBe(kept.join('').replaceAll('ς', 'σ'));
        for (const word of words) expect(word).not.toMatch(/\s|[_\-./]/);
      }),
      { numRuns: 1000 },
    );
  });

  it('is linear: a long name of one kind takes no time', () => {
    for (const unit of ['A', 'a', '1', 'aA', 'A1', 'é1b', '_', 'URLs']) {
      expect(splitWords(unit.repeat(50_000)).length).toBeGreaterThanOrEqual(0);
    }
  });
});

const weather = defineTool({
  name: 'mcp__sky__getForecast',
  title: 'Weather forecast',
  description: '  Tells the\n\tweather of the coming days.\u200b ',
  group: 'sky_service',
  parameters: {
    type: 'object',
    properties: {
      placeName: { type: 'string' },
      options: { type: 'object', properties: { units: {}, hourlyDetail: {} } },
    },
  },
});

describe('indexText', () => {
  it('is name, title, description, arguments and group, in words', () => {
    expect(indexText(weather)).toBe(
      'get forecast. Weather forecast. Tells the weather of the coming days. ' +
        'Arguments: place name, options, units, hourly detail. Group: sky service.',
    );
    expect(indexText(weather, { parts: ['group', 'name'] })).toBe(
      'Group: sky service. get forecast.',
    );
  });

  it('leaves output schemas out, and a title that only repeats the name', () => {
    const { tools } = importTools(fixture('mcp-tools-list.json'));
    const texts = tools.map((tool) => indexText(tool));
    expect(texts.join()).not.toMatch(/secretOutput|secret output/);
    const same = defineTool({ name: 'read_note', title: 'Read Note', description: 'x' });
    expect(indexText(same)).toBe('read note. x.');
  });

  it('keeps to its length, in code points, whole words and whole characters', () => {
    fc.assert(
      fc.property(
        fc.record({
          name: fc.string({ minLength: 1, maxLength: 80, unit: 'grapheme' }),
          description: fc.string({ maxLength: 3000, unit: 'binary' }),
          title: fc.string({ maxLength: 500 }),
          group: fc.string({ maxLength: 300 }),
          parameters: fc.dictionary(fc.string({ maxLength: 30 }), fc.constant({}), { maxKeys: 80 }),
        }),
        fc.integer({ min: 16, max: 1200 }),
        (given, maxCharacters) => {
          fc.pre(!/\p{Surrogate}/u.test(given.name));
          const { parameters: properties, ...rest } = given;
          const tool = defineTool({ ...rest, parameters: { type: 'object', properties } });
          const text = indexText(tool, { maxCharacters });
          expect(Array.from(text).length).toBeLessThanOrEqual(maxCharacters);
          expect(text).toBe(indexText(tool, { maxCharacters }));
          expect(text).not.toMatch(/\p{Surrogate}|[\t\n\r]| {2}/u);
          expect(text).toBe(text.trim());
        },
      ),
      { numRuns: 400 },
    );
  });

  it('cuts the description first, so arguments and group still speak', () => {
    const long = defineTool({
      ...weather,
      description: 'lorem ipsum '.repeat(5000),
      definition: '',
    });
    const text = indexText(long);
    expect(text.length).toBeGreaterThan(950);
    expect(text).toContain('hourly detail');
    expect(text).toMatch(/Group: sky service\.$/);
    expect(text).toMatch(/(lorem|ipsum)\. Arguments/);
  });

  it('is never empty', () => {
    expect(indexText(defineTool({ name: '→', description: '' }))).toBe('→');
  });

  it('is bounded on hostile schemas', () => {
    const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, {}]));
    let deep: Record<string, unknown> = {};
    for (let i = 0; i < 100_000; i += 1) deep = { properties: { [`d${i}`]: deep } };
    const many = {
      anyOf: Array.from({ length: 100_000 }, (_, i) => ({ properties: { [`b${i % 7}`]: {} } })),
    };
    const self: Record<string, unknown> = { properties: { child: { $ref: '#' }, other: {} } };
    (self.properties as Record<string, unknown>).me = self;
    const chained = {
      $ref: '#/$defs/a',
      $defs: {
        a: { $ref: '#/$defs/b' },
        b: { properties: { end: {}, again: { $ref: '#/$defs/a' } } },
      },
    };
    const limits = { maxDepth: 64, maxNames: 64 };
    expect(argumentNames({ properties: wide }, limits)).toHaveLength(64);
    expect(argumentNames(deep, limits)).toHaveLength(64);
    expect(argumentNames(many, limits)).toHaveLength(7);
    expect(argumentNames(self, limits)).toEqual(['child', 'other', 'me']);
    expect(argumentNames(chained, limits)).toEqual(['end', 'again']);
    expect(
      argumentNames({ properties: { a: { properties: { b: {} } } } }, { ...limits, maxDepth: 0 }),
    ).toEqual(['a']);
    expect(argumentNames({ items: { properties: { listed: {} } } }, limits)).toEqual(['listed']);
    for (const odd of [
      undefined,
      null,
      3,
      [],
      { properties: [] },
      { $ref: 5 },
      { $ref: '#/x/__proto__' },
      { anyOf: {} },
    ]) {
      expect(argumentNames(odd, limits)).toEqual([]);
    }
  });

  it('refuses options out of range', () => {
    const bad: [object, string][] = [
      [{ maxCharacters: 15 }, 'maxCharacters'],
      [{ maxCharacters: 99.5 }, 'maxCharacters'],
      [{ maxCharacters: Number.NaN }, 'maxCharacters'],
      [{ maxDepth: -1 }, 'maxDepth'],
      [{ maxParameters: 10_001 }, 'maxParameters'],
      [{ parts: [] }, 'parts'],
      [{ parts: ['name', 'output'] }, "'output'"],
      [{ parts: ['name', 'name'] }, 'once'],
    ];
    for (const [options, part] of bad) {
      refused(() => indexText(weather, options), 'FINCH_INVALID_ARGUMENT', part);
    }
  });
});

describe('lexicalFields', () => {
  it('separates leaf, words, description, arguments and group', () => {
    expect(lexicalFields(weather)).toEqual({
      name: 'getForecast',
      words: 'get forecast weather forecast',
      description: 'Tells the weather of the coming days.',
      parameters: 'place name options units hourly detail',
      group: 'sky service',
    });
    expect(lexicalFields(defineTool({ name: 'mcp__git_hub__x', description: 'y' })).group).toBe(
      'git hub',
    );
    expect(splitToolName('mcp__a__b__c')).toEqual({ leaf: 'b__c', server: 'a' });
    expect(splitToolName('mcp__a')).toEqual({ leaf: 'mcp__a' });
  });
});

describe('contentHash', () => {
  const text = indexText(weather);

  it('follows the text, the model and the recipe', () => {
    const base = contentHash(weather, text, 'm');
    expect(base).toMatch(/^[0-9a-f]{64}$/);
    expect(contentHash(defineTool({ ...weather, definition: 'other' }), text, 'm')).toBe(base);
    const others = [
      contentHash(weather, `${text} `, 'm'),
      contentHash(weather, text, 'n'),
      contentHash(weather, text, 'm', indexTextRecipe({ maxDepth: 1 })),
      contentHash(defineTool({ ...weather, version: '1' }), text, 'm'),
    ];
    expect(new Set([base, ...others]).size).toBe(5);
    expect(indexTextRecipe()).toContain(indexTextVersion);
    expect(indexTextRecipe({ maxDepth: 3 })).toBe(indexTextRecipe());
  });

  it('trusts the version its host gives', () => {
    const [one, two] = ['session 1', 'session 2'].map((session) =>
      defineTool({ name: 'a', description: session, version: 'etag' }),
    );
    if (one === undefined || two === undefined) throw new Error('unreachable');
    expect(contentHash(one, indexText(one))).toBe(contentHash(two, indexText(two)));
    const renamed = defineTool({ ...one, id: 'b' });
    expect(contentHash(renamed, indexText(renamed))).not.toBe(contentHash(one, indexText(one)));
  });
});

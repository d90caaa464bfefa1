import { describe, expect, it } from 'vitest';
import { lexicalFields } from '../../lib/catalog/index-text.js';
import { makeTool } from '../../lib/catalog/tool.js';
import { LexicalIndex } from '../../lib/retrieve/lexical-index.js';

function indexOf(...tools: [id: string, name: string, description: string][]): LexicalIndex {
  const index = new LexicalIndex();
  for (const [id, name, description] of tools) {
    index.upsert(id, lexicalFields(makeTool({ id, name, description, definition: '{}' }, 'test')));
  }
  return index;
}

const ids = (hits: readonly { id: string }[]) => hits.map(({ id }) => id);

describe('LexicalIndex', () => {
  const index = indexOf(
    ['clock/set_alarm', 'set_alarm', 'Wakes you at a time.'],
    ['clock/set_timer', 'set_timer', 'Counts down minutes.'],
    ['cal/listEvents', 'listEvents', 'Shows appointments of a day.'],
    ['mcp__git__create_issue', 'mcp__git__create_issue', 'Opens a ticket.'],
  );

  it('finds by the words of snake_case and camelCase names', () => {
    expect(ids(index.search('events please'))[0]).toBe('cal/listEvents');
    expect(ids(index.search('a timer'))).toEqual(['clock/set_timer']);
  });

  it('finds singular for plural and the other way round', () => {
    expect(ids(index.search('event'))).toContain('cal/listEvents');
    expect(ids(index.search('alarms'))).toContain('clock/set_alarm');
  });

  it('gives nothing for stop words, punctuation and the empty text', () => {
    for (const text of ['', '   ', 'the of and', '!?…', '\u0000'])
      expect(index.search(text)).toEqual([]);
  });

  it('scores descend and are above 0', () => {
    const scores = index.search('set alarm timer minutes').map(({ score }) => score);
    expect(scores.length).toBeGreaterThan(1);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
    expect(scores.every((score) => score > 0)).toBe(true);
  });

  it.each([
    ['set_alarm', 'clock/set_alarm'],
    ['set alarm', 'clock/set_alarm'],
    ['clock/set_alarm', 'clock/set_alarm'],
    ['please use set_alarm.', 'clock/set_alarm'],
    ['call `listEvents`!', 'cal/listEvents'],
    ['create_issue', 'mcp__git__create_issue'],
    ['mcp__git__create_issue', 'mcp__git__create_issue'],
  ])('knows that %j names %s', (text, id) => {
    expect([...index.named(text)]).toContain(id);
  });

  it('reads hostile queries in linear time and no further than 8,192 characters', () => {
    for (const text of [
      '.'.repeat(1_000_000),
      `${'.'.repeat(100_000)}x`,
      '_'.repeat(300_000),
      'a/'.repeat(200_000),
    ]) {
      expect([...index.named(text)]).toEqual([]);
      index.search(text);
    }
    expect([...index.named(`${' '.repeat(10_000)}set_alarm`)]).toEqual([]);
  });

  it('does not take a mere mention of a word for a name', () => {
    expect([...index.named('set the table')]).toEqual([]);
  });

  it('forgets removed tools and follows replaced ones', () => {
    const changing = indexOf(
      ['a', 'play_music', 'Plays songs.'],
      ['b', 'stop_music', 'Stops songs.'],
    );
    changing.remove('a');
    changing.remove('never there');
    expect(ids(changing.search('play songs'))).toEqual(['b']);
    expect([...changing.named('play_music')]).toEqual([]);
    changing.upsert(
      'b',
      lexicalFields(makeTool({ id: 'b', name: 'open_door', definition: '{}' }, 'test')),
    );
    expect(changing.search('songs')).toEqual([]);
    expect(ids(changing.search('door'))).toEqual(['b']);
    expect(changing.count).toBe(1);
  });
});

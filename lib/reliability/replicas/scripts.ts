import { createHash } from 'node:crypto';

/** A Lua script, run by its SHA-1 once Redis has it. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** Origins remembered; the one whose latest record is the oldest is forgotten first, by the scripts and by every replica. */
export const maxOrigins = 1024;
/** For how long an opening of a folder is remembered after its latest delivery. */
const sessionMs = 7 * 24 * 3600 * 1000;

/**
 * What there is. KEYS: state, stream, origins. ARGV: origin.
 * Gives epoch, version, meta, count, chain, snapshot, token, the first stream id, the origin's last sequence.
 */
export const look = script(`
local s = redis.call('HMGET', KEYS[1], 'epoch', 'version', 'meta', 'count', 'chain', 'snapshot', 'token')
for i = 1, 7 do if not s[i] then s[i] = '' end end
local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)
s[8] = first[1] and first[1][1] or ''
local origin = redis.call('HGET', KEYS[3], ARGV[1]) or '0 0'
s[9] = string.match(origin, '^%d+')
return s
`);

/** Begins an empty history where there is none. KEYS: state, stream, origins, snapshot. ARGV: epoch, version, meta. */
export const found = script(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'version', ARGV[2], 'meta', ARGV[3],
  'count', '0', 'chain', ARGV[1], 'time', '0', 'snapshot', '0', 'token', '')
return 1
`);

/**
 * Appends an origin's records, each once however often they are sent: those up to the origin's last sequence are skipped.
 * KEYS: state, stream, origins, session. ARGV: epoch, origin, session, 1 to take the session over, the sequence before
 * the first record, then sequence and bytes of each.
 * Gives ok, the origin's last sequence, count | epoch | taken | behind, the origin's last sequence.
 */
export const deliver = script(`
local s = redis.call('HMGET', KEYS[1], 'epoch', 'count', 'chain', 'time')
if s[1] ~= ARGV[1] then return {'epoch'} end
local holder = redis.call('GET', KEYS[4])
if holder and holder ~= ARGV[3] and ARGV[4] ~= '1' then return {'taken'} end
local known = redis.call('HGET', KEYS[3], ARGV[2]) or '0 0'
local last = tonumber(string.match(known, '^%d+'))
if last < tonumber(ARGV[5]) then return {'behind', string.format('%.0f', last)} end
local now = redis.call('TIME')
local time = math.max(tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000), tonumber(s[4]))
local t = string.format('%.0f', time)
local count = tonumber(s[2])
local chain = s[3]
redis.call('SET', KEYS[4], ARGV[3], 'PX', ${sessionMs})
local before = count
for i = 6, #ARGV, 2 do
  local sequence = tonumber(ARGV[i])
  if sequence > last then
    count = count + 1
    last = sequence
    chain = redis.sha1hex(chain .. ':' .. ARGV[2] .. ':' .. ARGV[i] .. ':' .. t .. ':' .. ARGV[i + 1])
    redis.call('XADD', KEYS[2], string.format('%.0f-0', count),
      'o', ARGV[2], 's', ARGV[i], 't', t, 'd', ARGV[i + 1], 'h', chain)
  end
end
local n = string.format('%.0f', count)
if count > before then
  redis.call('HSET', KEYS[1], 'count', n, 'chain', chain, 'time', t)
  redis.call('HSET', KEYS[3], ARGV[2], string.format('%.0f', last) .. ' ' .. n)
  if redis.call('HLEN', KEYS[3]) > ${maxOrigins} then
    local all = redis.call('HGETALL', KEYS[3])
    local oldest, least
    for i = 1, #all, 2 do
      local at = tonumber(string.match(all[i + 1], '%d+$'))
      if not least or at < least then oldest, least = all[i], at end
    end
    redis.call('HDEL', KEYS[3], oldest)
  end
end
return {'ok', string.format('%.0f', last), n}
`);

/**
 * Puts a draft in the snapshot's place unless the one there covers as much, or the draft is of another history, and
 * trims the stream behind it (first: a Redis that cannot has then changed nothing). KEYS: state, stream, snapshot, draft. ARGV: epoch, count, chain, token, records to keep.
 * Gives ok | epoch | older | other.
 */
export const commitSnapshot = script(`
local s = redis.call('HMGET', KEYS[1], 'epoch', 'snapshot')
local n = tonumber(ARGV[2])
local why
if s[1] ~= ARGV[1] then why = 'epoch'
elseif n <= tonumber(s[2]) then why = 'older'
else
  local id = string.format('%.0f-0', n)
  local entry = redis.call('XRANGE', KEYS[2], id, id)[1]
  why = 'other'
  if entry then
    local fields = entry[2]
    for i = 1, #fields, 2 do
      if fields[i] == 'h' and fields[i + 1] == ARGV[3] then why = nil end
    end
  end
end
if why then
  redis.call('DEL', KEYS[4])
  return why
end
local first = math.max(1, n + 1 - math.max(0, tonumber(ARGV[5])))
redis.call('XTRIM', KEYS[2], 'MINID', '=', string.format('%.0f-0', first))
redis.call('RENAME', KEYS[4], KEYS[3])
redis.call('PERSIST', KEYS[3])
redis.call('HSET', KEYS[1], 'snapshot', ARGV[2], 'token', ARGV[4])
return 'ok'
`);

/**
 * Puts a replica's state in the place of what Redis has: where there is nothing, where a history was begun from nothing
 * and has no snapshot yet, or where this very history is shorter than it was.
 * KEYS: state, stream, origins, snapshot, draft. ARGV: the epoch and token seen, the new epoch, version, meta, count,
 * chain, time, token, then each origin and its value.
 * Gives ok | changed.
 */
export const putBack = script(`
local s = redis.call('HMGET', KEYS[1], 'epoch', 'token', 'count', 'time')
local n = tonumber(ARGV[6])
if (s[1] or '') ~= ARGV[1] or (s[2] or '') ~= ARGV[2]
  or (s[1] and s[2] ~= '' and tonumber(s[3]) >= n) then
  redis.call('DEL', KEYS[5])
  return 'changed'
end
redis.call('DEL', KEYS[2], KEYS[3])
redis.call('RENAME', KEYS[5], KEYS[4])
redis.call('PERSIST', KEYS[4])
local time = string.format('%.0f', math.max(tonumber(ARGV[8]), tonumber(s[4] or '0')))
redis.call('HSET', KEYS[1], 'epoch', ARGV[3], 'version', ARGV[4], 'meta', ARGV[5], 'count', ARGV[6],
  'chain', ARGV[7], 'time', time, 'snapshot', ARGV[6], 'token', ARGV[9])
for i = 10, #ARGV, 2 do redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1]) end
return 'ok'
`);

/** Deletes a lock if it is still the caller's. KEYS: lock. ARGV: token. */
export const unlock = script(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`);

/**
 * Shares decisions, and forgets those that are too old or too many. KEYS: decisions, decision-order.
 * ARGV: milliseconds to live, how many to keep, then id and bytes of each.
 */
export const share = script(`
local now = redis.call('TIME')
local time = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local ttl = tonumber(ARGV[1])
for i = 3, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) == 1 then
    redis.call('RPUSH', KEYS[2], string.format('%.0f ', time) .. ARGV[i])
  end
end
local excess = redis.call('LLEN', KEYS[2]) - tonumber(ARGV[2])
while true do
  local oldest = redis.call('LINDEX', KEYS[2], 0)
  if not oldest then break end
  local at, id = string.match(oldest, '^(%d+) (.*)$')
  if excess <= 0 and tonumber(at) > time - ttl then break end
  redis.call('LPOP', KEYS[2])
  redis.call('HDEL', KEYS[1], id)
  excess = excess - 1
end
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('PEXPIRE', KEYS[2], ttl)
return 1
`);

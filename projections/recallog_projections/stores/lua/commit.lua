-- One commit: make the checks of store.py in their order, then write rows, log entries and the checkpoint.
--
-- KEYS  1 the partition's pointer, 2 the generation's checkpoint
-- ARGV  1 generation id, 2 prefix of the generation's keys, 3 expected offset, 4 new offset, 5 the expected checkpoint,
--       6 the new checkpoint, 7 msgpack: {tables, logs}
--         tables: {{name, {key, data, key, data, ...}, {deleted key, ...}}, ...}
--         logs:   {{name, keep, {key, ...}, {unsent, ...}, {{entry, ...}, ...}}, ...}; unsent is the number of entries
--                 before the last `keep` ones, which the same commit would drop
--
-- One redis.call has several items: the call itself costs more than they do. unpack() fails near 8,000.
local CALL_ITEMS = 1000

local pointer = redis.call('HMGET', KEYS[1], 'active', 'building')
if pointer[1] ~= ARGV[1] and pointer[2] ~= ARGV[1] then
  return 'retired'
end
local checkpoint = redis.call('GET', KEYS[2])
if not checkpoint then
  return 'lost'
end
local stored, expected, new = tonumber(string.match(checkpoint, '^%S+')), tonumber(ARGV[3]), tonumber(ARGV[4])
if not stored or (stored == expected and checkpoint ~= ARGV[5]) then
  return 'damaged'
elseif expected > new then
  return 'backwards'
elseif stored == new and stored ~= expected then
  return 'already there'
elseif stored > expected then
  return 'ahead'
elseif stored < expected then
  return 'mismatch'
end

local prefix = ARGV[2]
local changes = cmsgpack.unpack(ARGV[7])

-- The order of a table, and its name, are written only for calls with new rows: most commits replace rows. HSET returns
-- how many rows of a call are new. Calls are small, so that few existing rows are added to the order again.
local function put(name, items)
  local rows, order, first = prefix .. 'rows:' .. name, prefix .. 'rows-order:' .. name, 1
  while first <= #items do
    local last = math.min(first + 31, #items)
    if redis.call('HSET', rows, unpack(items, first, last)) > 0 then
      local scored = {}
      for n = first, last, 2 do
        scored[#scored + 1] = 0
        scored[#scored + 1] = items[n]
      end
      redis.call('ZADD', order, unpack(scored))
      redis.call('SADD', prefix .. 'tables', 'rows:' .. name)
    end
    first = last + 1
  end
end

for _, table_ in ipairs(changes[1]) do
  local name, items, deleted = table_[1], table_[2], table_[3]
  put(name, items)
  for first = 1, #deleted, CALL_ITEMS do
    local last = math.min(first + CALL_ITEMS - 1, #deleted)
    redis.call('HDEL', prefix .. 'rows:' .. name, unpack(deleted, first, last))
    redis.call('ZREM', prefix .. 'rows-order:' .. name, unpack(deleted, first, last))
  end
end

-- A log's total is the length of its list plus the entries that were dropped from it. Most logs never drop an entry and
-- need no counter.
for _, log in ipairs(changes[2]) do
  local name, keep, keys, unsent, entries = log[1], log[2], log[3], log[4], log[5]
  local dropped, order, lists = prefix .. 'dropped:' .. name, prefix .. 'logs-order:' .. name, prefix .. 'log:' .. name .. ':'
  for n, key in ipairs(keys) do
    local list, added, length = lists .. key, entries[n], 0
    for first = 1, #added, CALL_ITEMS do
      length = redis.call('RPUSH', list, unpack(added, first, math.min(first + CALL_ITEMS - 1, #added)))
    end
    if length == #added then
      redis.call('ZADD', order, 0, key)
      redis.call('SADD', prefix .. 'tables', 'logs:' .. name)
    end
    if length > keep or unsent[n] > 0 then
      redis.call('LTRIM', list, -keep, -1)
      redis.call('HINCRBY', dropped, key, length - keep + unsent[n])
    end
  end
end

redis.call('SET', KEYS[2], ARGV[6])
if new > stored then -- wakes the readers that wait for it
  redis.call('XADD', prefix .. 'commits', 'MAXLEN', 1, string.format('%.0f-0', new + 1), 'c', '')
end
return 'applied'

-- Rows and newest log entries of one generation at one moment.
--
-- KEYS  1 the partition's pointer
-- ARGV  1 msgpack: {generation id or '' for the active one,
--                   {{table, {key, ...}}, ...}, {{log, {key, newest, key, newest, ...}}, ...}}
-- Returns the active generation (false if ARGV names one), its checkpoint, the rows table by table in lists of
-- CALL_ITEMS, and for each log its total and its entries; false if the generation has no checkpoint.
local CALL_ITEMS = 1000
local call = redis.call

local wanted = cmsgpack.unpack(ARGV[1])
local id, generation = wanted[1], false
if id == '' then
  local active = call('HMGET', KEYS[1], 'active', 'active-generation')
  if not active[1] then
    return false
  end
  id, generation = active[1], active[2]
end
local prefix = string.sub(KEYS[1], 1, -1 - #'pointer') .. id .. ':'
local checkpoint = call('GET', prefix .. 'checkpoint')
if not checkpoint then
  return false
end

local rows, logs = {}, {}
for _, table_ in ipairs(wanted[2]) do
  local hash, keys = prefix .. 'rows:' .. table_[1], table_[2]
  for first = 1, #keys, CALL_ITEMS do
    rows[#rows + 1] = call('HMGET', hash, unpack(keys, first, math.min(first + CALL_ITEMS - 1, #keys)))
  end
end
for _, log in ipairs(wanted[3]) do
  local dropped, lists, requests = prefix .. 'dropped:' .. log[1], prefix .. 'log:' .. log[1] .. ':', log[2]
  for n = 1, #requests, 2 do
    local key, newest = requests[n], requests[n + 1]
    local list = lists .. key
    logs[#logs + 1] = call('LLEN', list) + (call('HGET', dropped, key) or 0)
    logs[#logs + 1] = newest > 0 and call('LRANGE', list, -newest, -1) or {}
  end
end
return {generation, checkpoint, rows, logs}

-- Rows and newest log entries of one generation at one moment.
--
-- KEYS  1 the partition's pointer
-- ARGV  1 prefix of the partition's keys, 2 generation id, or '' for the active one,
--       3 msgpack: {{{table, {place, ...}}, ...}, {{log, {place, ...}, {newest, ...}}, ...}}
-- Answers the active generation (false where one was named), its checkpoint, the rows in the order asked for, and for
-- each log its total and its entries. Without a checkpoint there is nothing to read: false.
local CALL_ITEMS = 1000

local id, generation = ARGV[2], false
if id == '' then
  local active = redis.call('HMGET', KEYS[1], 'active', 'active-generation')
  if not active[1] then
    return false
  end
  id, generation = active[1], active[2]
end
local prefix = ARGV[1] .. id .. ':'
local checkpoint = redis.call('GET', prefix .. 'checkpoint')
if not checkpoint then
  return false
end

local wanted = cmsgpack.unpack(ARGV[3])
local rows, logs = {}, {}
local function get(key, fields, found)
  for first = 1, #fields, CALL_ITEMS do
    found[#found + 1] = redis.call('HMGET', key, unpack(fields, first, math.min(first + CALL_ITEMS - 1, #fields)))
  end
end
for _, table_ in ipairs(wanted[1]) do
  get(prefix .. 'rows:' .. table_[1], table_[2], rows)
end
for _, log in ipairs(wanted[2]) do
  local name, places, newest = log[1], log[2], log[3]
  local totals = {}
  get(prefix .. 'totals:' .. name, places, totals)
  for n, place in ipairs(places) do
    local total = totals[math.floor((n - 1) / CALL_ITEMS) + 1][(n - 1) % CALL_ITEMS + 1]
    logs[#logs + 1] = total or '0'
    logs[#logs + 1] = total and newest[n] > 0 and redis.call('LRANGE', prefix .. 'log:' .. name .. ':' .. place, -newest[n], -1)
      or {}
  end
end
return {generation, checkpoint, rows, logs}

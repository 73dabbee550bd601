-- Consecutive items of a table, or of the logs of one name, in order of their places.
--
-- KEYS  1 the generation's checkpoint
-- ARGV  1 prefix of the generation's keys, 2 name, 3 items at most, 4 bytes after which no more are taken,
--       5 and 6 the range of places of rows, 7 the range of places of logs begins here (it ends like that of rows),
--       8 the place of the log that the previous call ended in, or '', 9 the first ordinal wanted of that one
-- Answers the checkpoint, '1' where more follows, the rows as {place, data, ...}, and the logs as
-- {place, first ordinal, {entry, ...}, ...}. Without a checkpoint: false.
local CALL_ITEMS = 100

local checkpoint = redis.call('GET', KEYS[1])
if not checkpoint then
  return false
end
local prefix, name, left, bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local function scan_rows()
  local items, from = {}, ARGV[5]
  while true do
    -- One place more than may be taken says whether anything follows.
    local places = redis.call(
      'ZRANGEBYLEX', prefix .. 'rows-order:' .. name, from, ARGV[6], 'LIMIT', 0, math.min(CALL_ITEMS, left + 1)
    )
    if #places == 0 then
      return items, false
    end
    if left == 0 or bytes <= 0 then
      return items, true
    end
    local data = redis.call('HMGET', prefix .. 'rows:' .. name, unpack(places))
    for n = 1, math.min(#places, left) do
      items[#items + 1] = places[n]
      items[#items + 1] = data[n]
      bytes = bytes - #data[n]
      from = '(' .. places[n]
    end
    left = left - math.min(#places, left)
  end
end

local function scan_logs()
  local logs, from = {}, ARGV[7]
  while true do
    local places = redis.call(
      'ZRANGEBYLEX', prefix .. 'logs-order:' .. name, from, ARGV[6], 'LIMIT', 0, math.min(CALL_ITEMS, left + 1)
    )
    if #places == 0 then
      return logs, false
    end
    for _, place in ipairs(places) do
      local key = prefix .. 'log:' .. name .. ':' .. place
      local length = redis.call('LLEN', key)
      local first = tonumber(redis.call('HGET', prefix .. 'dropped:' .. name, place) or 0)
      local skipped = place == ARGV[8] and math.max(0, tonumber(ARGV[9]) - first) or 0
      while skipped < length do
        if left == 0 or bytes <= 0 then
          return logs, true
        end
        local entries = redis.call('LRANGE', key, skipped, skipped + math.min(CALL_ITEMS, left) - 1)
        for _, entry in ipairs(entries) do
          bytes = bytes - #entry
        end
        logs[#logs + 1] = place
        logs[#logs + 1] = first + skipped
        logs[#logs + 1] = entries
        skipped = skipped + #entries
        left = left - #entries
      end
      from = '(' .. place
    end
  end
end

local items, more = scan_rows()
local logs = {}
if #items == 0 and not more then
  logs, more = scan_logs()
end
return {checkpoint, more and '1' or '0', items, logs}

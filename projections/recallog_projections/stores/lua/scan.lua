-- Consecutive items of a table, or of the logs of one name, in order of their packed keys or in reverse.
--
-- KEYS  1 the generation's checkpoint
-- ARGV  1 prefix of the generation's keys, 2 name, 3 items at most, 4 bytes after which it stops,
--       5 and 6 the range of keys of rows, 7 the start of the range of keys of logs (its end is 6), or '' for no logs,
--       8 the key of the log in which the previous call ended, or '', 9 the first ordinal to return of that log,
--       10 whether rows are returned in reverse order (1 or 0)
-- Returns the checkpoint, '1' if more items follow (else '0'), the rows as {key, data, ...}, and the logs as
-- {key, first ordinal, {entry, ...}, ...}; false if the generation has no checkpoint.
local CALL_ITEMS = 100

local checkpoint = redis.call('GET', KEYS[1])
if not checkpoint then
  return false
end
local prefix, name, left, bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local function scan_rows()
  local items, from, upto, range = {}, ARGV[5], ARGV[6], 'ZRANGEBYLEX'
  if ARGV[10] == '1' then
    from, upto, range = ARGV[6], ARGV[5], 'ZREVRANGEBYLEX'
  end
  while true do
    -- One key more than the limit shows whether more items follow.
    local keys = redis.call(
      range, prefix .. 'rows-order:' .. name, from, upto, 'LIMIT', 0, math.min(CALL_ITEMS, left + 1)
    )
    if #keys == 0 then
      return items, false
    end
    if left == 0 or bytes <= 0 then
      return items, true
    end
    local data = redis.call('HMGET', prefix .. 'rows:' .. name, unpack(keys))
    for n = 1, math.min(#keys, left) do
      items[#items + 1] = keys[n]
      items[#items + 1] = data[n] or '' -- fails its checksum: the key, or that of the row, is damaged
      bytes = bytes - #items[#items]
      from = '(' .. keys[n]
    end
    left = left - math.min(#keys, left)
  end
end

local function scan_logs()
  local logs, from = {}, ARGV[7]
  while true do
    local keys = redis.call(
      'ZRANGEBYLEX', prefix .. 'logs-order:' .. name, from, ARGV[6], 'LIMIT', 0, math.min(CALL_ITEMS, left + 1)
    )
    if #keys == 0 then
      return logs, false
    end
    for _, key in ipairs(keys) do
      local list = prefix .. 'log:' .. name .. ':' .. key
      local length = redis.call('LLEN', list)
      local first = tonumber(redis.call('HGET', prefix .. 'dropped:' .. name, key) or 0)
      local skipped = key == ARGV[8] and math.max(0, tonumber(ARGV[9]) - first) or 0
      while skipped < length do
        if left == 0 or bytes <= 0 then
          return logs, true
        end
        local entries = redis.call('LRANGE', list, skipped, skipped + math.min(CALL_ITEMS, left) - 1)
        for _, entry in ipairs(entries) do
          bytes = bytes - #entry
        end
        logs[#logs + 1] = key
        logs[#logs + 1] = first + skipped
        logs[#logs + 1] = entries
        skipped = skipped + #entries
        left = left - #entries
      end
      from = '(' .. key
    end
  end
end

local items, more = scan_rows()
local logs = {}
if #items == 0 and not more and ARGV[7] ~= '' then
  logs, more = scan_logs()
end
return {checkpoint, more and '1' or '0', items, logs}

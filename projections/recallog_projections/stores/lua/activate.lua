-- Cut over to the building generation.
--
-- KEYS  1 the partition's pointer, 2 the building generation's checkpoint
-- ARGV  1 the building generation, 2 prefix of the partition's keys, 3 the last offset that was compared, or ''
-- Returns 1, or 0 if it is not the building one, or if the active one is beyond its checkpoint or ARGV[3].
local pointer = redis.call('HMGET', KEYS[1], 'active', 'building', 'building-generation')
local mine = redis.call('GET', KEYS[2])
if pointer[3] ~= ARGV[1] or not mine then
  return 0
end
local allowed = tonumber(string.match(mine, '^%S+'))
if not allowed then
  return 0 -- damaged, which the next reader of the checkpoint finds
end
local active = pointer[1] and redis.call('GET', ARGV[2] .. pointer[1] .. ':checkpoint')
local processed = active and tonumber(string.match(active, '^%S+'))
if processed then
  if ARGV[3] ~= '' then
    allowed = math.min(allowed, tonumber(ARGV[3]))
  end
  if processed > allowed then
    return 0
  end
end
redis.call('HSET', KEYS[1], 'active', pointer[2], 'active-generation', pointer[3])
redis.call('HDEL', KEYS[1], 'building', 'building-generation')
return 1

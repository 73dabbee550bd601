-- Overwrite keys of sealed records, and take them from their units.
--
-- KEYS  1 the secrets by id, 2 the units by id, 3 the present keys by unit, 4 the state
-- ARGV  1 the partition, 2 the modulus of its sum, then for each key its id and its mark
-- Returns how many were not destroyed before.
local sum, destroyed, retired = tonumber(redis.call('HGET', KEYS[4], ARGV[1]) or '0'), 0, 0
for number = 3, #ARGV, 2 do
  local id = ARGV[number]
  if redis.call('HGET', KEYS[1], id) ~= '' then
    redis.call('HSET', KEYS[1], id, '')
    sum, destroyed = (sum + tonumber(ARGV[number + 1])) % tonumber(ARGV[2]), destroyed + 1
    local unit = redis.call('HGET', KEYS[2], id)
    if unit and redis.call('HGET', KEYS[3], unit) == id then
      redis.call('HDEL', KEYS[3], unit)
      retired = retired + 1
    end
    redis.call('HDEL', KEYS[2], id)
  end
end
redis.call('HSET', KEYS[4], ARGV[1], string.format('%.0f', sum))
redis.call('HINCRBY', KEYS[4], 'retired', retired)
return destroyed

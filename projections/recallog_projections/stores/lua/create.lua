-- Make a generation the building one, with its checkpoint, unless there is a building one, or the active one is not the
-- one that it replaces.
--
-- KEYS  1 the partition's pointer, 2 its set of generation ids, 3 the generation's checkpoint
-- ARGV  1 generation id, 2 the generation, 3 its first checkpoint, 4 the generation that it replaces, or ''
-- Returns the resulting active and building generation.
local pointer = redis.call('HMGET', KEYS[1], 'active-generation', 'building')
if not pointer[2] and (pointer[1] or '') == ARGV[4] then
  redis.call('HSET', KEYS[1], 'building', ARGV[1], 'building-generation', ARGV[2])
  redis.call('SADD', KEYS[2], ARGV[1])
  redis.call('SET', KEYS[3], ARGV[3])
end
return redis.call('HMGET', KEYS[1], 'active-generation', 'building-generation')

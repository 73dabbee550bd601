-- Make a generation the building one, with its checkpoint, unless there is a building one.
--
-- KEYS  1 the partition's pointer, 2 its set of generation ids, 3 the generation's checkpoint
-- ARGV  1 generation id, 2 the generation, 3 its first checkpoint
-- Returns the resulting active and building generation.
if redis.call('HSETNX', KEYS[1], 'building', ARGV[1]) == 1 then
  redis.call('HSET', KEYS[1], 'building-generation', ARGV[2])
  redis.call('SADD', KEYS[2], ARGV[1])
  redis.call('SET', KEYS[3], ARGV[3])
end
return redis.call('HMGET', KEYS[1], 'active-generation', 'building-generation')

-- Give up the building generation.
--
-- KEYS  1 the partition's pointer
-- ARGV  1 the generation
-- Returns 1, or 0 if it is not the building one.
if redis.call('HGET', KEYS[1], 'building-generation') ~= ARGV[1] then
  return 0
end
redis.call('HDEL', KEYS[1], 'building', 'building-generation')
return 1

-- The first step of garbage collection: delete the checkpoints of the generations that the pointer does not name. They
-- are deleted before all else, so that no reader sees a generation that is half deleted.
--
-- KEYS  1 the partition's pointer, 2 its set of generation ids
-- ARGV  1 prefix of the partition's keys
-- Returns the ids of these generations. Ids are unique, so that no later pointer names one of them.
local pointer = redis.call('HMGET', KEYS[1], 'active', 'building')
local garbage = {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  if id ~= pointer[1] and id ~= pointer[2] then
    redis.call('DEL', ARGV[1] .. id .. ':checkpoint')
    garbage[#garbage + 1] = id
  end
end
return garbage

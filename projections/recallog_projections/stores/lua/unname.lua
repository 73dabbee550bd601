-- The first step of a sweep: the checkpoints of the generations that the pointer does not name. They go before anything
-- else does, so that nobody reads the rest of a generation that is half gone.
--
-- KEYS  1 the partition's pointer, 2 its set of generation ids
-- ARGV  1 prefix of the partition's keys
-- Answers the ids. None of them can be named again: an id is never used twice.
local pointer = redis.call('HMGET', KEYS[1], 'active', 'building')
local gone = {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  if id ~= pointer[1] and id ~= pointer[2] then
    redis.call('DEL', ARGV[1] .. id .. ':checkpoint')
    gone[#gone + 1] = id
  end
end
return gone

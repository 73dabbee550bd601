-- Delete a damaged pointer, unless it has been written again meanwhile.
--
-- KEYS  1 the partition's pointer
-- ARGV  1 and 2 a field and its damaged value
-- Returns 1, or 0 if the field has another value by now.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return 0
end
return redis.call('DEL', KEYS[1])
